"""Loop indices: names with extents and block sizes, shared by array and block programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType

from bbrewrite.core.spans import Span


@dataclass(frozen=True)
class Index:
    """A loop index.

    `extent` is None while open. `same_as` names the index whose extent this one has (always a root: an
    index without `same_as`). `block` is the number of elements a block spans, None for a point loop.
    `block_is_fixed` tells a user's choice, which planning keeps, from a starting value; printed programs do not
    show it, so it does not take part in comparison. The positions of one that `is_share` are the shares of a loop that
    planning split: its extent is no choice of callers.
    """

    name: str
    extent: int | None = None
    same_as: str | None = None
    block: int | None = None
    block_is_fixed: bool = field(default=False, compare=False)
    is_share: bool = False


@dataclass(frozen=True)
class EqualExtents:
    """A read of a list at a plain `index` of another root than its `axis`, which declared extents made equal.

    Other extents may not be equal, and then the read means nothing. `items` names what is read, `span` where.
    """

    index: str
    axis: str
    items: str
    span: Span | None


@dataclass(frozen=True)
class IndexTable:
    """The indices of a program in order of declaration."""

    entries: Mapping[str, Index]

    @staticmethod
    def of(indices: list[Index]) -> IndexTable:
        return IndexTable(MappingProxyType({index.name: index for index in indices}))

    def __getitem__(self, name: str) -> Index:
        return self.entries[name]

    def __contains__(self, name: str) -> bool:
        return name in self.entries

    def __iter__(self) -> Iterator[Index]:
        return iter(self.entries.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IndexTable) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def root(self, name: str) -> str:
        """The index that holds the extent of `name`: two indices with one root have equal extents."""
        return self.entries[name].same_as or name

    def extent(self, name: str) -> int | None:
        return self.entries[self.root(name)].extent

    def same_extent(self, a: str, b: str) -> bool:
        """Whether two indices have one extent: one root, or equal extents that are known."""
        return self.root(a) == self.root(b) or (self.extent(a) is not None and self.extent(a) == self.extent(b))

    def is_blocked(self, name: str) -> bool:
        return self.entries[name].block is not None

    def with_extents(self, extents: Mapping[str, int]) -> IndexTable:
        """The table with the extents of root indices replaced."""
        return IndexTable.of(
            [replace(i, extent=extents[i.name]) if i.name in extents and not i.same_as else i for i in self]
        )

    @cached_property
    def shape(self) -> object:
        """What terms over the indices mean whatever the extents are: equal for two tables that differ in nothing but
        them, as long as the same ones are equal.
        """
        extents = [self.extent(index.name) for index in self]
        equal = [None if extent is None else extents.index(extent) for extent in extents]
        return tuple((i.name, self.root(i.name), self.is_blocked(i.name)) for i in self), tuple(equal)

    @property
    def shares(self) -> dict[str, int]:
        """The extents that planning chose."""
        return {index.name: index.extent for index in self if index.is_share and index.extent is not None}

    def with_index(self, index: Index) -> IndexTable:
        """The table with one more index at its end."""
        return IndexTable.of([*self, index])

    def fresh_name(self, stem: str) -> str:
        """A name not yet taken: the stem, or the stem followed by a number."""
        if stem not in self.entries:
            return stem
        number = 1
        while f"{stem}{number}" in self.entries:
            number += 1
        return f"{stem}{number}"
