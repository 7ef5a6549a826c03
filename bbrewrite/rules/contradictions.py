"""Conditions of one rule that can never hold together: the numbers that each term may be are narrowed condition by
condition, until none is left.

What a single condition says by itself is for `conditions.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bbrewrite.core.spans import Span
from bbrewrite.core.terms import Apply, Term
from bbrewrite.lang.diagnostics import Diagnostic, Related
from bbrewrite.rules.conditions import range_of, verdict
from bbrewrite.rules.rules import Comparison, Condition, Fact

type Bound = tuple[str, float]

_BOUNDS: dict[str, tuple[Bound, ...]] = {
    "nonzero": (("not_equal", 0.0),),
    "positive": (("greater", 0.0),),
    "nonnegative": (("greater_equal", 0.0),),
    "finite": (("greater", -math.inf), ("less", math.inf)),
}
_MIRRORED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
    "equal": "equal",
    "not_equal": "not_equal",
}


@dataclass(frozen=True)
class _Values:
    """The numbers that a term may be: an interval without some points, its ends perhaps among them."""

    low: float
    high: float
    excluded: frozenset[float] = frozenset()

    @property
    def is_empty(self) -> bool:
        return self.low > self.high or (self.low == self.high and self.low in self.excluded)

    def narrowed(self, bounds: Sequence[Bound]) -> _Values:
        """Those of the numbers that lie within bounds."""
        found = self
        for comparison, value in bounds:
            if comparison in ("less", "less_equal", "equal"):
                found = replace(found, high=min(found.high, value))
            if comparison in ("greater", "greater_equal", "equal"):
                found = replace(found, low=max(found.low, value))
            if comparison in ("less", "greater", "not_equal"):
                found = replace(found, excluded=found.excluded | {value})
        return found


def contradiction_warnings(conditions: Sequence[tuple[Condition, Span]]) -> Iterator[Diagnostic]:
    """A warning for each term of which nothing is left, at the condition that leaves nothing."""
    earlier: dict[Term, list[tuple[tuple[Bound, ...], Span]]] = {}
    told: set[Term] = set()
    for condition, place in conditions:
        known = _bounds(condition) if verdict(condition) is None else None
        if known is None:
            continue
        term, bounds = known
        before = earlier.setdefault(term, [])
        if term not in told and _values(term, [*(found for found, _ in before), bounds]).is_empty:
            told.add(term)
            # One that excludes it alone says more than all of them.
            alone = [pair for pair in before if _values(term, [pair[0], bounds]).is_empty]
            notes = tuple(Related(span, "the other condition") for _, span in alone[:1] or before)
            message = f"this condition and {'the other' if len(notes) == 1 else 'the others'} can never hold together"
            yield Diagnostic("never-holds", message, place, "the rule can never fire", notes, "warning")
        before.append((bounds, place))


def _values(term: Term, bounds: Sequence[Sequence[Bound]]) -> _Values:
    values = _Values(*range_of(term))
    for found in bounds:
        values = values.narrowed(found)
    return values


def _bounds(condition: Condition) -> tuple[Term, tuple[Bound, ...]] | None:
    """The term that a condition is about, and what the condition says of it; None for another kind of condition."""
    match condition:
        case Fact(fact, term):
            return _oriented(term, _BOUNDS[fact])
        case Comparison(Apply(comparison, (left, right))):
            if (value := _number(right)) is not None:
                return _oriented(left, ((comparison, value),))
            if (value := _number(left)) is not None:
                return _oriented(right, ((_MIRRORED[comparison], value),))
            return _oriented(Apply("subtract", (left, right)), ((comparison, 0.0),))
        case _:
            return None


def _number(term: Term) -> float | None:
    low, high = range_of(term)
    return low if low == high else None


def _oriented(term: Term, bounds: tuple[Bound, ...]) -> tuple[Term, tuple[Bound, ...]]:
    """The same with one spelling for a term and its negative: `-x` in terms of `x`, and `y - x` of `x - y`."""
    match term:
        case Apply("negate", (inner,)):
            return _oriented(inner, _negated(bounds))
        case Apply("subtract", (left, right)) if repr(left) > repr(right):
            return Apply("subtract", (right, left)), _negated(bounds)
        case _:
            return term, bounds


def _negated(bounds: tuple[Bound, ...]) -> tuple[Bound, ...]:
    return tuple((_MIRRORED[comparison], -value) for comparison, value in bounds)
