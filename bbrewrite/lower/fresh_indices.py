"""Fresh point indices for loops over an index that has blocks elsewhere.

The same name serves wherever it will do: names are canonical, so that equal loops are equal terms.
"""

from __future__ import annotations

from collections.abc import Iterable

from bbrewrite.core.indices import Index, IndexTable


class FreshIndices:
    """An index table that grows; `taken` are names of other things."""

    def __init__(self, indices: IndexTable, taken: Iterable[str]) -> None:
        self.indices = indices
        self._taken = {*taken, *(index.name for index in indices)}
        self._made: dict[str, list[str]] = {}

    def point(self, name: str, scope: Iterable[str]) -> str:
        """A point loop over the extent of an index, under a name that is not in scope."""
        root = self.indices.root(name)
        made = self._made.setdefault(root, [])
        used = set(scope)
        for candidate in made:
            if candidate not in used:
                return candidate
        number = 1
        while f"{root}{number}" in self._taken:
            number += 1
        fresh = f"{root}{number}"
        self.indices = self.indices.with_index(Index(fresh, None, root, None))
        self._taken.add(fresh)
        made.append(fresh)
        return fresh
