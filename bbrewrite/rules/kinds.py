"""Kinds of the values in a rule: matrix, vector, scalar, list or pair; what no choice of kinds fits is a fault.

Each term starts with every kind that its operator could give it; operators then narrow what they take and give
until nothing changes. A rule stays generic where several kinds remain (`row_scale` takes vectors too). Extents and
index names are not judged here: a pattern has none.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.spans import Span
from bbrewrite.core.terms import (
    Apply,
    At,
    Cast,
    Component,
    Loaded,
    Local,
    Map,
    Number,
    Pair,
    Reduce,
    Size,
    Stored,
    Term,
    walk,
)
from bbrewrite.lang.diagnostics import Diagnostic, Related

type Kinds = frozenset[str]

_BY_RANK = ("scalar", "vector", "matrix")
BLOCKS: Kinds = frozenset(_BY_RANK)
_SCALAR: Kinds = frozenset({"scalar"})
LISTS: Kinds = frozenset({"list"})
_PAIRS: Kinds = frozenset({"pair"})
ANY: Kinds = BLOCKS | LISTS | _PAIRS


@dataclass(frozen=True)
class Use:
    """An operand where it is written: `parent` is the term whose operand at `position` it is."""

    parent: Term
    position: int
    span: Span

    @property
    def operand(self) -> Term:
        return self.parent.children[self.position]


def kind_fault(
    sides: Sequence[tuple[Term, Term]],
    scalars: frozenset[Term],
    uses: Sequence[Use],
    place: Span,
    table: OperatorTable,
) -> Diagnostic | None:
    """The fault of a rule whose terms have no kinds that fit, else None.

    `sides` are the pairs that the rule equates, `scalars` the terms that a condition says to be
    scalars, `place` the rule's name.
    """
    kinds = _Kinds(table, scalars)
    found = kinds.narrowed([term for pair in sides for term in pair], sides)
    if all(found.values()):
        return None
    variables = _variables(kinds, uses)
    return (
        _conflicting_uses(kinds, uses)
        or _unfit_operand(kinds, uses)
        or _unlike_operands(kinds, uses, variables)
        or _fault_of_sides(kinds, sides, variables, place)
    )


def possible_kinds(terms: Sequence[Term], scalars: frozenset[Term], table: OperatorTable) -> dict[Term, Kinds]:
    """The kinds that each subterm of well-typed terms can have, every operator having had its say."""
    return _Kinds(table, scalars).narrowed(terms, ())


class _Kinds:
    """What each term can be by itself, and what each operator takes."""

    def __init__(self, table: OperatorTable, scalars: frozenset[Term]) -> None:
        self._table = table
        self._scalars = scalars

    def narrowed(
        self, terms: Sequence[Term], sides: Sequence[tuple[Term, Term]], known: Mapping[Term, Kinds] | None = None
    ) -> dict[Term, Kinds]:
        """The kinds of every term once all operators have had their say; an empty set is a contradiction.

        `sides` are pairs of equal kinds; `known` bounds the kinds of some terms from the start.
        """
        nodes = list(dict.fromkeys(node for term in terms for node in walk(term)))
        found = {node: self.given(node) & (known or {}).get(node, ANY) for node in nodes}
        while True:
            before = dict(found)
            for node in nodes:
                self._narrow(node, found)
            for left, right in sides:
                if not isinstance(right, Number):  # a number stands for a block of any shape
                    found[left] = found[right] = found[left] & found[right]
            if found == before or not all(found.values()):
                return found

    def given(self, term: Term) -> Kinds:
        """The kinds that a term can have whatever its operands are."""
        if term in self._scalars:
            return _SCALAR
        match term:
            case Number() | Size():
                return _SCALAR
            case Map() | Stored():
                return LISTS
            case Pair():
                return _PAIRS | LISTS
            case Apply():
                return frozenset[str]().union(*(result for _, result in self._choices(term)))
            case Reduce() | Loaded() | Cast():
                return BLOCKS
            case _:
                return ANY

    def taken(self, parent: Term, position: int) -> Kinds:
        """The kinds that a term takes as an operand whatever the others are."""
        match parent:
            case At() | Loaded():
                return LISTS
            case Component():
                return _PAIRS | LISTS
            case Apply():
                return frozenset[str]().union(*(operands[position] for operands, _ in self._choices(parent)))
            case Reduce() | Cast() | Stored():
                return BLOCKS
            case _:
                return ANY

    def _choices(self, term: Apply) -> list[tuple[tuple[Kinds, ...], Kinds]]:
        """The ways to use an operator: the kinds of its operands and of its result."""
        operator = self._table.operators[term.operator]
        if operator.is_elementwise:
            return [
                (tuple(frozenset({kind}) for kind in kinds), frozenset({max(kinds, key=_BY_RANK.index)}))
                for kinds in itertools.product(_BY_RANK, repeat=operator.arity)
                if len({kind for kind in kinds if kind != "scalar"}) <= 1
            ]
        return [
            (tuple(_of_letters(operand) for operand in signature.operands), _of_letters(signature.result))
            for signature in operator.signatures
        ]

    def _narrow(self, node: Term, found: dict[Term, Kinds]) -> None:
        match node:
            case Apply(_, operands):
                fitting = [
                    (taken, result)
                    for taken, result in self._choices(node)
                    if result & found[node] and all(t & found[o] for t, o in zip(taken, operands, strict=True))
                ]
                found[node] &= frozenset[str]().union(*(result for _, result in fitting))
                for position, operand in enumerate(operands):
                    found[operand] &= frozenset[str]().union(*(taken[position] for taken, _ in fitting))
            case Reduce(monoid, _, (operand,)) if len(self._table.monoids[monoid].state) == 1:
                found[node] = found[operand] = found[node] & found[operand] & BLOCKS
            case _:
                for position, child in enumerate(node.children):
                    found[child] &= self.taken(node, position)


def _of_letters(letters: str) -> Kinds:
    return frozenset({_BY_RANK[len(letters)]})


def _conflicting_uses(kinds: _Kinds, uses: Sequence[Use]) -> Diagnostic | None:
    """Two places that take one term as different kinds."""
    for second, first in ((b, a) for position, b in enumerate(uses) for a in uses[:position]):
        here, there = kinds.taken(second.parent, second.position), kinds.taken(first.parent, first.position)
        if second.operand == first.operand and not here & there:
            name = f"`{second.operand.name}`" if isinstance(second.operand, Local) else "this value"
            note = Related(first.span, f"here it is {_shown(there)}")
            return Diagnostic("kind", f"{name} is {_shown(here)} here", second.span, related=(note,))
    return None


def _unfit_operand(kinds: _Kinds, uses: Sequence[Use]) -> Diagnostic | None:
    """An operand of a kind that its operator does not take."""
    for use in uses:
        taken, given = kinds.taken(use.parent, use.position), kinds.given(use.operand)
        if not taken & given:
            name = use.parent.operator if isinstance(use.parent, Apply) else type(use.parent).__name__.lower()
            message = f"`{name}` takes {_shown(taken)} here, this is {_shown(given)}"
            return Diagnostic("kind", message, use.span)
    return None


def _unlike_operands(kinds: _Kinds, uses: Sequence[Use], variables: Mapping[Term, Kinds]) -> Diagnostic | None:
    """Operands that do not go together, each being what its own operators and the uses of its variables make it."""
    for parent in dict.fromkeys(use.parent for use in uses):
        found = kinds.narrowed([*parent.children], [], variables)
        if all(found.values()) and not all(kinds.narrowed([parent], [], found).values()):
            written = [use for use in uses if use.parent == parent]
            shown = " and ".join(_shown(found[child]) for child in parent.children)
            name = parent.operator if isinstance(parent, Apply) else type(parent).__name__.lower()
            notes = tuple(Related(use.span, f"this is {_shown(found[use.operand])}") for use in written[:-1])
            return Diagnostic("kind", f"`{name}` does not take {shown} together", written[-1].span, related=notes)
    return None


def _fault_of_sides(
    kinds: _Kinds, sides: Sequence[tuple[Term, Term]], variables: Mapping[Term, Kinds], place: Span
) -> Diagnostic:
    for left, right in sides:
        one, other = (kinds.narrowed([side], [], variables)[side] for side in (left, right))
        if one and other and not one & other:
            message = f"the left side is {_shown(one)}, the right side {_shown(other)}"
            return Diagnostic("kind", message, place)
    return Diagnostic("kind", "no kinds of values (matrix, vector, scalar) fit every operator of this rule", place)


def _variables(kinds: _Kinds, uses: Sequence[Use]) -> dict[Term, Kinds]:
    """What all uses of a variable leave of its kinds."""
    found: dict[Term, Kinds] = {}
    for use in uses:
        if isinstance(use.operand, Local):
            found[use.operand] = found.get(use.operand, ANY) & kinds.taken(use.parent, use.position)
    return found


def _shown(kinds: Kinds) -> str:
    return " or ".join(f"a {kind}" for kind in ("matrix", "vector", "scalar", "list", "pair") if kind in kinds)
