"""Arithmetic on extended real numbers, each result as exact as can be. Other functions are in `functions.py`.

A number is a `Fraction`, a float infinity, a quotient of exponentials of rationals, or an interval of about 70
digits: each operation uses the strongest form that its operands allow, number by number. `UNDEFINED` is the value of
x/0, log of x <= 0, a non-integer power of a negative, 0 to a negative power, 0 * inf, inf - inf and inf / inf, and of
what needs such a value; `UNKNOWN` that of what intervals cannot decide, from which nothing is concluded.

Rationals and sums of exponentials decide all that a prime field with exponentials as a homomorphism would, and need no
luck with the prime; so there is no such field here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum
from fractions import Fraction
from typing import Any

from bbrewrite.fuzz import exponentials, intervals
from bbrewrite.fuzz.exponentials import Exponential, TooLong
from bbrewrite.fuzz.intervals import Interval, IntervalType, TooWide


class Nothing(Enum):
    """The two values that are no numbers."""

    UNDEFINED = "undefined"
    UNKNOWN = "unknown"


UNDEFINED, UNKNOWN = Nothing.UNDEFINED, Nothing.UNKNOWN

type Number = Any  # of those forms; intervals have no types

ZERO, ONE, HALF = Fraction(0), Fraction(1), Fraction(1, 2)


def exact_number(value: float) -> Number:
    """The number that a literal means: the decimal as it is written."""
    return value if math.isinf(value) else Fraction(repr(value))


def as_interval(value: Number) -> Interval:
    """A finite number as an interval. Raises TooWide."""
    if isinstance(value, Fraction):
        return intervals.of_fraction(value)
    if isinstance(value, Exponential):
        above = intervals.of_terms(value.above)
        return (
            above
            if len(value.below) == 1 and ZERO in value.below and value.below[ZERO] == 1
            else intervals.divide(above, intervals.of_terms(value.below))
        )
    return value


def sign(value: Number) -> int | None:
    """-1, 0 or 1, None where it is not known; of a number."""
    if isinstance(value, Fraction):
        return (value > 0) - (value < 0)
    if isinstance(value, float):
        return 1 if value > 0 else -1
    if isinstance(value, Nothing):
        return None
    if isinstance(value, Exponential):
        signs = {part > 0 for part in value.above.values()}, {part > 0 for part in value.below.values()}
        if len(signs[0]) <= 1 and len(signs[1]) == 1:
            return 0 if not signs[0] else 1 if signs[0] == signs[1] else -1
    try:
        return intervals.sign(as_interval(value))
    except TooWide:
        return None


def are_equal(a: Number, b: Number) -> bool | None:
    """Whether two numbers are equal, None where that is not known."""
    if isinstance(a, float) or isinstance(b, float):
        return a == b if isinstance(a, float) and isinstance(b, float) else False
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a == b
    try:
        if not isinstance(a, IntervalType) and not isinstance(b, IntervalType):
            return exponentials.is_equal(exponentials.promoted(a), exponentials.promoted(b))
    except TooLong:
        pass
    try:
        return intervals.are_equal(as_interval(a), as_interval(b))
    except TooWide:
        return None


def strict(function: Callable[..., Number]) -> Callable[..., Number]:
    """The function made total: nothing comes of nothing, and what cannot be decided is unknown."""

    def total(*operands: Number) -> Number:
        for operand in operands:
            if operand is UNDEFINED or operand is UNKNOWN:
                return UNDEFINED if any(other is UNDEFINED for other in operands) else UNKNOWN
        try:
            return function(*operands)
        except (TooLong, TooWide):
            return UNKNOWN

    return total


def _arithmetic(
    a: Number,
    b: Number,
    rational: Callable[[Fraction, Fraction], Fraction],
    formal: Callable[[Exponential, Exponential], Exponential],
    enclosed: Callable[[Interval, Interval], Interval],
) -> Number:
    """The result for finite operands, in the strongest form that both have."""
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return rational(a, b)
    if not isinstance(a, IntervalType) and not isinstance(b, IntervalType):
        try:
            return exponentials.simplified(formal(exponentials.promoted(a), exponentials.promoted(b)))
        except TooLong:
            pass
    return enclosed(as_interval(a), as_interval(b))


@strict
def add(a: Number, b: Number) -> Number:
    """The sum."""
    if isinstance(a, float) or isinstance(b, float):
        if isinstance(a, float) and isinstance(b, float):
            return a if a == b else UNDEFINED
        return a if isinstance(a, float) else b
    return _arithmetic(a, b, lambda x, y: x + y, exponentials.add, lambda x, y: x + y)


@strict
def multiply(a: Number, b: Number) -> Number:
    """The product."""
    if isinstance(a, float) or isinstance(b, float):
        signs = sign(a), sign(b)
        if 0 in signs:
            return UNDEFINED
        if signs[0] is None or signs[1] is None:
            return UNKNOWN
        return math.inf * signs[0] * signs[1]
    return _arithmetic(a, b, lambda x, y: x * y, exponentials.multiply, lambda x, y: x * y)


@strict
def negate(a: Number) -> Number:
    """The number with the other sign."""
    return -a if isinstance(a, float) else multiply(Fraction(-1), a)


@strict
def subtract(a: Number, b: Number) -> Number:
    """The difference."""
    return add(a, negate(b))


@strict
def recip(a: Number) -> Number:
    """1/a."""
    if isinstance(a, float):
        return ZERO
    if sign(a) == 0:
        return UNDEFINED
    if isinstance(a, Fraction):
        return 1 / a
    if isinstance(a, Exponential):
        return exponentials.simplified(exponentials.inverse(a))
    return intervals.divide(as_interval(ONE), a)


@strict
def divide(a: Number, b: Number) -> Number:
    """The quotient."""
    if isinstance(a, float) and isinstance(b, float):
        return UNDEFINED
    inverse = recip(b)
    # inf / b is inf with b's sign; a / inf is 0 as `recip` has it.
    return inverse if inverse is UNDEFINED else multiply(a, inverse)
