"""Canonical names of bound indices, so that lists equal up to renaming are recognised as one buffer.

Every index is called after how many loops are around it and after its extent, inner ones too: a list that is made for
every position of `c` out of a sum over `c` is the same list where it is made for every position of `e`. The canonical
form is for comparison alone; no kernel is made from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bbrewrite.core.addresses import Address, make_address
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.terms import Apply, At, IndexValue, Map, Read, Reduce, Size, Term

type _Names = Mapping[str, str]


def canonical_list(term: Term, indices: IndexTable) -> Term:
    """A closed list with bound indices named by place and extent: two lists of one canonical form are the same list."""
    return CanonicalLists(indices).of(term)


class CanonicalLists:
    """The canonical forms of the lists of one program; what lists have in common is renamed once for all."""

    def __init__(self, indices: IndexTable) -> None:
        self._indices = indices
        # Shared subterms are visited once for each of their surroundings.
        self._known: dict[tuple[Term, frozenset[tuple[str, str]], int], Term] = {}

    def of(self, term: Term) -> Term:
        """The form of a closed list."""
        return self._inside(term, {}, 0)

    def _inside(self, term: Term, names: _Names, loops: int) -> Term:
        """A term inside so many loops, whose indices are called `names`."""
        key = (term, frozenset((index, names[index]) for index in term.free if index in names), loops)
        if key not in self._known:
            self._known[key] = self._made(term, names, loops)
        return self._known[key]

    def _made(self, term: Term, names: _Names, loops: int) -> Term:
        index = term.bound_index
        if index is not None:
            names = {**names, index: f"#{loops} {self._indices.root(index)}"}
            loops += 1
        children = tuple(self._inside(child, names, loops) for child in term.children)
        return self._renamed(term.with_children(children), names)

    def _renamed(self, node: Term, names: _Names) -> Term:
        """The node alone under these names. Extents that it mentions are those of roots."""
        match node:
            case Map(index) | Reduce(_, index) | IndexValue(index):
                return replace(node, index=names.get(index, index))
            case Size(index):
                return Size(self._indices.root(index))
            case Read(tensor, addresses):
                return Read(tensor, tuple(self._address(address, names) for address in addresses))
            case At(items, address):
                return At(items, self._address(address, names))
            case Apply(operator, operands, indices) if indices:
                return Apply(operator, operands, tuple(names.get(index, index) for index in indices))
            case _:
                return node

    def _address(self, address: Address, names: _Names) -> Address:
        return make_address(
            [(names.get(index, index), coefficient) for index, coefficient in address.indices],
            [(self._indices.root(index), coefficient) for index, coefficient in address.sizes],
            address.offset,
            address.divisor,
        )
