"""Ways to instantiate a rule: which index variables are one index, and a type for every pattern variable.

A plan fixes what can be told before any number is drawn. Kinds that give the left side a type but not the right are
no plan: such a right side has no meaning and is dropped wherever the rule is used. A right side that has a type only
for special sizes is one (`is_forced`), and one that cannot be right in general.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.terms import At, Local, Map, Reduce, Size, Term, named_indices, walk
from bbrewrite.core.types import Type
from bbrewrite.fuzz.shapes import ShapeFault, Shapes, Symbols, unify_types, variable_types
from bbrewrite.rules.expressions import substituted
from bbrewrite.rules.inference import Inference
from bbrewrite.rules.rules import Comparison, Condition, Fact, IsConst, IsScalar, NotFree, Rule, Siblings

_MOST_PLANS = 60


@dataclass(frozen=True)
class Claim:
    """What a rule says in one direction: each left side equals its right side where the conditions hold."""

    sides: tuple[tuple[Term, Term], ...]
    conditions: tuple[Condition, ...]

    @property
    def lefts(self) -> tuple[Term, ...]:
        return tuple(left for left, _ in self.sides)

    @functools.cached_property
    def variables(self) -> tuple[str, ...]:
        """The pattern variables in order of appearance."""
        nodes = (node for pair in self.sides for side in pair for node in in_order(side))
        return tuple(dict.fromkeys(node.name for node in nodes if isinstance(node, Local)))

    @functools.cached_property
    def indices(self) -> tuple[str, ...]:
        nodes = (node for pair in self.sides for side in pair for node in in_order(side))
        names = [name for node in nodes for name in named_indices(node)]
        names += [condition.index for condition in self.conditions if isinstance(condition, NotFree)]
        names += [
            node.index
            for condition in self.conditions
            if isinstance(condition, Comparison)
            for node in walk(condition.term)
            if isinstance(node, Size)
        ]
        return tuple(dict.fromkeys(names))


@dataclass(frozen=True)
class Plan:
    """See the module text. `left` and `right` hold the types of the sides' terms, `symbols` what is equal for both."""

    claim: Claim
    types: Mapping[str, Type]
    symbols: Symbols
    left_symbols: Symbols
    left: Shapes
    right: Shapes
    is_forced: bool


def claims(rule: Rule) -> tuple[Claim, ...]:
    """What the rule says: one claim, or two where it goes both ways."""
    patterns = dict(rule.matches)
    sides = tuple((patterns[name], substituted(term, patterns)) for name, term in rule.rewrites)
    conditions = tuple(_substituted(condition, patterns) for condition in rule.conditions)
    forward = Claim(sides, conditions)
    if not rule.both_ways:
        return (forward,)
    return (forward, Claim(tuple((right, left) for left, right in sides), conditions))


def plans(claim: Claim, table: OperatorTable) -> list[Plan]:
    """The plans, those with small kinds and distinct indices first."""
    found: list[Plan] = []
    for number, renaming in enumerate(_renamings(claim.indices)):
        renamed = _renamed(claim, renaming)
        mine = [plan for types in _type_choices(renamed, table) if (plan := _plan(renamed, types, table))]
        found += mine[: _MOST_PLANS if number == 0 else 6]
    return found


def in_order(term: Term) -> Iterator[Term]:
    """Every subterm, each before its operands, as it is written."""
    yield term
    for child in term.children:
        yield from in_order(child)


def unbound_variables(term: Term, index: str) -> set[str]:
    """The variables that occur outside every loop over the index."""
    if term.bound_index == index:
        return set()
    if isinstance(term, Local):
        return {term.name}
    return set[str]().union(*(unbound_variables(child, index) for child in term.children))


@functools.lru_cache(maxsize=16)
def independent(claim: Claim) -> frozenset[tuple[str, str]]:
    """(variable, index) such that a condition says that the variable does not depend on the index."""
    return frozenset(
        (name, condition.index)
        for condition in claim.conditions
        if isinstance(condition, NotFree)
        for name in unbound_variables(condition.term, condition.index)
    )


@functools.lru_cache(maxsize=16)
def compared_numbers(claim: Claim) -> frozenset[str]:
    """The variables that a comparison needs to be plain numbers."""
    return frozenset(
        node.name
        for condition in claim.conditions
        if isinstance(condition, Comparison)
        for node in walk(condition.term)
        if isinstance(node, Local)
    )


def _plan(claim: Claim, types: Mapping[str, Type], table: OperatorTable) -> Plan | None:
    left_symbols = Symbols()
    left = Shapes(table, types, left_symbols)
    try:
        results = [left.of(term) for term in claim.lefts]
        for condition in claim.conditions:
            if isinstance(condition, IsScalar) and left.block(condition.term).axes:
                return None
            if isinstance(condition, Fact):
                left.of(condition.term)
            if isinstance(condition, NotFree) and condition.index in condition.term.free:
                return None
    except ShapeFault:
        return None
    symbols = left_symbols.copy()
    right = Shapes(table, types, symbols)
    try:
        for result, (_, term) in zip(results, claim.sides, strict=True):
            found = right.of(term)
            if not _is_number(term):
                unify_types(result, found, symbols)
    except ShapeFault:
        return None
    return Plan(claim, types, symbols, left_symbols, left, right, len(symbols.merges) > len(left_symbols.merges))


def _is_number(term: Term) -> bool:
    """Whether the term is made of numbers alone: it then stands for a block of any shape."""
    return all(not isinstance(node, Local | Reduce | At | Map) for node in walk(term))


def _type_choices(claim: Claim, table: OperatorTable) -> Iterator[dict[str, Type]]:
    scalars = {condition.term for condition in claim.conditions if isinstance(condition, IsScalar)}
    scalars |= {Local(name) for name in compared_numbers(claim)}
    terms = [*claim.lefts, *(condition.term for condition in claim.conditions if isinstance(condition, Fact | IsConst))]
    inference = Inference(table, frozenset(scalars)).solve(terms)
    if inference.fits:
        yield from variable_types({name: inference.kinds(Local(name)) for name in claim.variables})


def _renamings(indices: Sequence[str]) -> Iterator[dict[str, str]]:
    """Every way to let index variables stand for the same index, all distinct first."""

    def partitions(names: Sequence[str]) -> Iterator[dict[str, str]]:
        if not names:
            yield {}
            return
        *earlier, last = names
        for known in partitions(earlier):
            yield {**known, last: last}
            for representative in dict.fromkeys(known.values()):
                yield {**known, last: representative}

    yield from sorted(partitions(indices[:4]), key=lambda names: -len(set(names.values())))


def _renamed(claim: Claim, renaming: Mapping[str, str]) -> Claim:
    def renamed(term: Term) -> Term:
        return substituted(term, {}, renaming)

    conditions: list[Condition] = []
    for condition in claim.conditions:
        match condition:
            case NotFree(index, term):
                conditions.append(NotFree(renaming.get(index, index), renamed(term)))
            case _:
                conditions.append(_changed(condition, renamed))
    return Claim(tuple((renamed(left), renamed(right)) for left, right in claim.sides), tuple(conditions))


def _substituted(condition: Condition, patterns: Mapping[str, Term]) -> Condition:
    return _changed(condition, lambda term: substituted(term, patterns))


def _changed(condition: Condition, change: Callable[[Term], Term]) -> Condition:
    match condition:
        case NotFree(index, term):
            return NotFree(index, change(term))
        case IsConst(term):
            return IsConst(change(term))
        case IsScalar(term):
            return IsScalar(change(term))
        case Comparison(term):
            return Comparison(change(term))
        case Fact(fact, term):
            return Fact(fact, change(term))
        case Siblings(first, second):
            return Siblings(change(first), change(second))
