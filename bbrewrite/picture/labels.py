"""Which operators of a kernel are drawn as one vertex, and what is written on it.

Elementwise operators that compose in registers share a vertex, and what needs no data (numbers, sizes, positions) is
part of the label, so that a vertex reads as a small formula: `where(a == -inf, 0, -a)` over one operand `a`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from string import ascii_lowercase

from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.printing import print_term
from bbrewrite.core.terms import Apply, Cast, Component, Local, Read, Reduce, Term, walk

_LONGEST = 44  # characters of a label


class Labels:
    """The vertices of one kernel's terms: each term's label and the terms that it takes as operands."""

    def __init__(self, terms: Iterable[Term], table: OperatorTable) -> None:
        self._table = table
        roots = [seen_through(term) for term in terms]
        everything = {term for root in roots for term in walk(root)}
        self._varying = {term for term in everything if any(isinstance(t, Read | Reduce) for t in walk(term))}
        self._uses = Counter(seen_through(child) for term in everything for child in set(term.children))
        self._uses.update(roots)

    def of(self, term: Term) -> tuple[str, tuple[Term, ...]]:
        """The label of a term that is drawn, and its operands, each once."""
        if isinstance(term, Reduce):
            return f"{term.monoid} over {term.index}", self._operands(term, merged=False)
        operands = self._operands(term, merged=True)
        label = self._label(term, operands)
        if len(label) > _LONGEST:
            operands = self._operands(term, merged=False)
            label = self._label(term, operands)
        return label if len(label) <= _LONGEST else label[: _LONGEST - 1] + "…", operands

    def _operands(self, term: Term, merged: bool) -> tuple[Term, ...]:
        found: dict[Term, None] = {}
        for child in map(seen_through, term.children):
            if child not in self._varying:
                continue
            if merged and self._joins(term, child):
                found |= dict.fromkeys(self._operands(child, merged))
            else:
                found[child] = None
        return tuple(found)

    def _joins(self, term: Term, child: Term) -> bool:
        """Whether an operand is computed within its only user, entry by entry like it."""
        return self._is_elementwise(term) and self._is_elementwise(child) and self._uses[child] == 1

    def _is_elementwise(self, term: Term) -> bool:
        return isinstance(term, Apply) and self._table.operators[term.operator].is_elementwise

    def _label(self, term: Term, operands: tuple[Term, ...]) -> str:
        letters = (letter for letter in ascii_lowercase)
        names = {operand: Local(next(letters, "…")) for operand in operands}

        def named(inner: Term) -> Term:
            inner = seen_through(inner)
            if inner in names:
                return names[inner]
            return inner.with_children(tuple(named(child) for child in inner.children))

        return print_term(term.with_children(tuple(named(child) for child in term.children)), self._table)


def seen_through(term: Term) -> Term:
    """The value itself, without the roundings and choices of a component that cost nothing."""
    while isinstance(term, Cast | Component):
        (term,) = term.children
    return term
