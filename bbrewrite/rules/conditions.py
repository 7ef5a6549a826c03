"""What can be said of a condition without a program: that it always holds, or never can."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from bbrewrite.core.terms import Apply, Local, Map, Number, Reduce, Size, Term
from bbrewrite.rules.rules import Comparison, Condition, Fact, IsConst, IsScalar, NotFree

type Range = tuple[float, float]

_ANYTHING: Range = (-math.inf, math.inf)
_WAYS: dict[str, Callable[[float, float], float]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": lambda left, right: left / right,
}


def verdict(condition: Condition) -> bool | None:
    """True for a condition that always holds, False for one that never can, None for one that says something."""
    match condition:
        case NotFree(index, term):
            if index in term.free:
                return False
            return None if may_depend(term, index) else True
        case IsConst(Number() | Size()) | IsScalar(Number() | Size()):
            return True
        case Fact(fact, Number(value)):
            return _holds(fact, value)
        case Comparison(Apply(comparison, (left, right))):
            return _compared(comparison, left, right)
        case _:
            return None


def _holds(fact: str, value: float) -> bool:
    match fact:
        case "nonzero":
            return value != 0
        case "positive":
            return value > 0
        case "nonnegative":
            return value >= 0
        case _:
            return math.isfinite(value)


def may_depend(term: Term, index: str) -> bool:
    """Whether a variable stands in a term outside all loops over the index."""
    match term:
        case Local():
            return True
        case Map(bound) | Reduce(_, bound) if bound == index:
            return False
        case _:
            return any(may_depend(child, index) for child in term.children)


def _compared(comparison: str, left: Term, right: Term) -> bool | None:
    if left == right:
        return comparison in ("equal", "less_equal", "greater_equal")
    (low, high), (least, most) = range_of(left), range_of(right)
    match comparison:
        case "less":
            return _decided(high < least, low >= most)
        case "less_equal":
            return _decided(high <= least, low > most)
        case "greater":
            return _decided(low > most, high <= least)
        case "greater_equal":
            return _decided(low >= most, high < least)
        case "equal":
            return _decided(low == high == least == most, high < least or low > most)
        case _:
            return _decided(high < least or low > most, low == high == least == most)


def _decided(holds: bool, fails: bool) -> bool | None:
    return True if holds else False if fails else None


def range_of(term: Term) -> Range:
    """Bounds of a number that a condition compares; extents are at least 0."""
    match term:
        case Number(value):
            return (value, value)
        case Size():
            return (0, math.inf)
        case Apply("negate", (inner,)):
            low, high = range_of(inner)
            return (-high, -low)
        case Apply("add" | "subtract" | "multiply" | "divide" as name, (left, right)):
            return _combined(name, range_of(left), range_of(right))
        case _:
            return _ANYTHING


def _combined(name: str, left: Range, right: Range) -> Range:
    if name == "divide" and right[0] <= 0 <= right[1]:
        return _ANYTHING
    ends = [_WAYS[name](a, b) for a in left for b in right]
    return _ANYTHING if any(math.isnan(end) for end in ends) else (min(ends), max(ends))
