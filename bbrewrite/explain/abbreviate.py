"""Terms for reading: lists that the program defines by their names, what is too deep as an ellipsis."""

from __future__ import annotations

from collections.abc import Mapping

from bbrewrite.core.addresses import Address
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.printing import print_term
from bbrewrite.core.terms import At, Local, Map, Read, Stored, Term
from bbrewrite.plan.extraction.canonical import canonical_list

WIDTH = 160  # about two lines of a terminal
_DEEPEST = 12
_SHALLOWEST = 2
_ELLIPSIS = Local("…")


class Abbreviator:
    """Prints terms of one program. `definitions` has the closed, unfused term of each of its definitions."""

    def __init__(self, definitions: Mapping[str, Term], indices: IndexTable, table: OperatorTable) -> None:
        self._indices = indices
        self._table = table
        self._names = {canonical_list(term, indices): name for name, term in reversed(list(definitions.items()))}
        self._known: dict[Term, Term] = {}

    def text(self, term: Term, width: int = WIDTH) -> str:
        """The term on one line, about as wide as said."""
        named = self._named(term)
        text = ""
        for depth in range(_DEEPEST, _SHALLOWEST - 1, -1):
            text = print_term(_elided(named, depth), self._table)
            if len(text) <= width:
                break
        return text

    def full(self, term: Term) -> str:
        """The whole term on one line."""
        return print_term(term, self._table)

    def _named(self, term: Term) -> Term:
        if term not in self._known:
            self._known[term] = self._find(term)
        return self._known[term]

    def _find(self, term: Term) -> Term:
        if isinstance(term, Map | Stored) and not term.free:
            name = self._names.get(canonical_list(term, self._indices))
            if name is not None:
                return Local(name)
        if isinstance(term, At):
            items, addresses = _list_of(term)
            named = self._named(items)
            if isinstance(named, Local):
                return Read(named.name, addresses)
        return term.with_children(tuple(map(self._named, term.children)))


def _list_of(term: Term) -> tuple[Term, tuple[Address, ...]]:
    addresses: list[Address] = []
    while isinstance(term, At):
        addresses.insert(0, term.address)
        term = term.items
    return term, tuple(addresses)


def _elided(term: Term, depth: int) -> Term:
    if not term.children:
        return term
    if depth == 0:
        return _ELLIPSIS
    return term.with_children(tuple(_elided(child, depth - 1) for child in term.children))
