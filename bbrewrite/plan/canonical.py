"""Canonical names of bound indices, so that lists equal up to renaming are recognised as one buffer."""

from __future__ import annotations

from bbrewrite.core.indices import IndexTable
from bbrewrite.core.renaming import rename_indices
from bbrewrite.core.terms import Map, Term


def canonical_list(term: Term, indices: IndexTable) -> Term:
    """A closed list with the indices of its outer maps named by position and extent.

    Two lists of one canonical form are the same list. Inner binders keep their names, which are canonical by
    construction of the program.
    """
    names: dict[str, str] = {}
    body = term
    while isinstance(body, Map):
        names.setdefault(body.index, f"#{len(names)} {indices.root(body.index)}")
        body = body.body
    return rename_indices(term, names)
