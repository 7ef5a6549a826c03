"""Canonical names of bound indices, so that lists equal up to renaming are recognised as one buffer."""

from __future__ import annotations

from bbrewrite.core.addresses import Address
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.terms import Apply, At, IndexValue, Map, Read, Reduce, Size, Term, rewrite_bottom_up


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


def rename_indices(term: Term, names: dict[str, str]) -> Term:
    """The term with index names replaced everywhere, binders of those names included."""
    if not names:
        return term

    def change(node: Term) -> Term:
        match node:
            case Read(tensor, addresses):
                return Read(tensor, tuple(_renamed(address, names) for address in addresses))
            case At(items, address):
                return At(items, _renamed(address, names))
            case IndexValue(index):
                return IndexValue(names.get(index, index))
            case Size(index):
                return Size(names.get(index, index))
            case Map(index, inner):
                return Map(names.get(index, index), inner)
            case Reduce(monoid, index, operands):
                return Reduce(monoid, names.get(index, index), operands)
            case Apply(operator, operands, indices):
                return Apply(operator, operands, tuple(names.get(index, index) for index in indices))
            case _:
                return node

    return rewrite_bottom_up(term, change)


def _renamed(address: Address, names: dict[str, str]) -> Address:
    return address.renamed(names)
