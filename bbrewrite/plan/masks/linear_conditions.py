"""Conditions over entries as linear forms: which blocks may meet them.

Comparisons of index values, extents, whole numbers and integers read from tensors become inequalities; `and`, `or`
and `not` are kept, with negations pushed down to the comparisons. What is not linear may be true anywhere.
"""

from __future__ import annotations

from bbrewrite.core.elements import Element
from bbrewrite.core.terms import Apply, IndexValue, Number, Read, Size, Term
from bbrewrite.core.types import Typing
from bbrewrite.plan.masks.visible import ALWAYS, AllOf, AnyOf, Condition, Floored, Linear, Nonnegative

# left OP right as (sign, offset): sign * (left - right) + offset >= 0 over the integers.
_ORDER = {"less": (-1, -1), "less_equal": (-1, 0), "greater": (1, -1), "greater_equal": (1, 0)}
_NEGATED = {"less": "greater_equal", "less_equal": "greater", "greater": "less_equal", "greater_equal": "less"}
_SPREADS = ("row_spread", "col_spread")


def linear_condition(term: Term, holds: bool, typing: Typing) -> Condition:
    """What must be possible for a condition to be true somewhere in a block (or false, where not `holds`)."""
    match term:
        case Apply("not", (inner,)):
            return linear_condition(inner, not holds, typing)
        case Apply("and" | "or" as name, operands):
            inner = tuple(linear_condition(operand, holds, typing) for operand in operands)
            return all_of(inner) if (name == "and") == holds else any_of(inner)
        case Apply("equal" | "not_equal" as name, (left, right)):
            difference = _difference(left, right, typing)
            if difference is None:
                return ALWAYS
            if (name == "equal") == holds:
                return AllOf((Nonnegative(difference), Nonnegative(difference.times(-1))))
            one = Linear((), -1)
            return AnyOf((Nonnegative(difference.plus(one)), Nonnegative(difference.times(-1).plus(one))))
        case Apply(name, (left, right)) if name in _ORDER:
            sign, offset = _ORDER[name if holds else _NEGATED[name]]
            difference = _difference(left, right, typing)
            return ALWAYS if difference is None else Nonnegative(difference.times(sign).plus(Linear((), offset)))
        case Apply(name, (inner,)) if name in _SPREADS:
            return linear_condition(inner, holds, typing)
        case _:
            return ALWAYS


def all_of(conditions: tuple[Condition, ...]) -> Condition:
    """Every one of the conditions, in one list."""
    flat: list[Condition] = []
    for condition in conditions:
        flat += condition.conditions if isinstance(condition, AllOf) else (condition,)
    return flat[0] if len(flat) == 1 else AllOf(tuple(flat))


def any_of(conditions: tuple[Condition, ...]) -> Condition:
    """At least one of the conditions, in one list."""
    if ALWAYS in conditions:
        return ALWAYS
    flat: list[Condition] = []
    for condition in conditions:
        flat += condition.conditions if isinstance(condition, AnyOf) else (condition,)
    return AnyOf(tuple(flat))


def _difference(left: Term, right: Term, typing: Typing) -> Linear | None:
    first, second = _linear(left, typing), _linear(right, typing)
    return None if first is None or second is None else first.plus(second, -1)


def _linear(term: Term, typing: Typing) -> Linear | None:
    """The term as a linear form over integers."""
    match term:
        case Number(value):
            return Linear((), int(value)) if float(value).is_integer() else None
        case IndexValue() | Size():
            return Linear(((term, 1),))
        case Read():
            return Linear(((term, 1),)) if _has_extremes(term, typing) else None
        case Apply("negate", (inner,)):
            found = _linear(inner, typing)
            return None if found is None else found.times(-1)
        case Apply("add" | "subtract" as name, (left, right)):
            first, second = _linear(left, typing), _linear(right, typing)
            if first is None or second is None:
                return None
            return first.plus(second, 1 if name == "add" else -1)
        case Apply("multiply", (left, right)):
            first, second = _linear(left, typing), _linear(right, typing)
            if first is None or second is None or (first.parts and second.parts):
                return None
            return first.times(second.offset) if not second.parts else second.times(first.offset)
        case Apply(name, (inner,)) if name in _SPREADS:
            return _linear(inner, typing)
        case Apply("floor", (quotient,)):
            return _floored(quotient, typing)
        case _:
            return None


def _floored(quotient: Term, typing: Typing) -> Linear | None:
    """A whole form of positions divided by a whole number and rounded down."""
    match quotient:
        case Apply("exact_quotient", (dividend, Number(divisor))) if divisor > 0 and float(divisor).is_integer():
            linear = _linear(dividend, typing)
        case _:
            return None
    if linear is None or any(isinstance(leaf, Read) for leaf, _ in linear.parts):
        return None
    return Linear(((Floored(linear, int(divisor)), 1),))


def _has_extremes(read: Read, typing: Typing) -> bool:
    """Whether a read's block is an integer or a vector of integers at plain indices."""
    block = typing.block(read)
    plain = all(address.plain_index is not None for address in read.addresses)
    return plain and block.element is Element.I32 and len(block.axes) <= 1
