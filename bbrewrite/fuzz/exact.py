"""Scalar functions on extended real numbers, each as exactly as can be.

A number is a `Fraction`, a float infinity, a quotient of exponentials of rationals, or an interval of about 70
digits: each operation uses the strongest form that its operands allow, number by number. `UNDEFINED` is the value of
x/0, log of x <= 0, a non-integer power of a negative, 0 to a negative power, 0 * inf, inf - inf and inf / inf, and of
what needs such a value; `UNKNOWN` that of what intervals cannot decide, from which nothing is concluded.
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

type Number = Fraction | float | Exponential | Interval | Nothing

ZERO, ONE, HALF = Fraction(0), Fraction(1), Fraction(1, 2)
_LARGEST_POWER = 64


def exact_number(value: float) -> Number:
    """The number that a literal means: the decimal as it is written."""
    return value if math.isinf(value) else Fraction(repr(value))


def as_interval(value: Number) -> Interval:
    """A finite number as an interval. Raises TooWide."""
    if isinstance(value, Fraction):
        return intervals.of_fraction(value)
    if isinstance(value, Exponential):
        above = intervals.of_terms(value.above)
        return above if len(value.below) == 1 and ZERO in value.below and value.below[ZERO] == 1 else intervals.divide(
            above, intervals.of_terms(value.below)
        )
    return value


def sign(value: Number) -> int | None:
    """-1, 0 or 1, None where it is not known; of a number."""
    if isinstance(value, Fraction):
        return (value > 0) - (value < 0)
    if isinstance(value, float):
        return 1 if value > 0 else -1
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


def _strict(function: Callable[..., Number]) -> Callable[..., Number]:
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


@_strict
def _add(a: Number, b: Number) -> Number:
    if isinstance(a, float) or isinstance(b, float):
        if isinstance(a, float) and isinstance(b, float):
            return a if a == b else UNDEFINED
        return a if isinstance(a, float) else b
    return _arithmetic(a, b, lambda x, y: x + y, exponentials.add, lambda x, y: x + y)


@_strict
def _multiply(a: Number, b: Number) -> Number:
    if isinstance(a, float) or isinstance(b, float):
        signs = sign(a), sign(b)
        if 0 in signs:
            return UNDEFINED
        if signs[0] is None or signs[1] is None:
            return UNKNOWN
        return math.inf * signs[0] * signs[1]
    return _arithmetic(a, b, lambda x, y: x * y, exponentials.multiply, lambda x, y: x * y)


@_strict
def _negate(a: Number) -> Number:
    return -a if isinstance(a, float) else _multiply(Fraction(-1), a)


@_strict
def _subtract(a: Number, b: Number) -> Number:
    return _add(a, _negate(b))


@_strict
def _recip(a: Number) -> Number:
    if isinstance(a, float):
        return ZERO
    if sign(a) == 0:
        return UNDEFINED
    if isinstance(a, Fraction):
        return 1 / a
    if isinstance(a, Exponential):
        return exponentials.simplified(exponentials.inverse(a))
    return intervals.divide(as_interval(ONE), a)


@_strict
def _divide(a: Number, b: Number) -> Number:
    if isinstance(a, float) and isinstance(b, float):
        return UNDEFINED
    inverse = _recip(b)
    # inf / b is inf with b's sign; a / inf is 0 as `_recip` has it.
    return inverse if inverse is UNDEFINED else _multiply(a, inverse)


@_strict
def _power(a: Number, b: Number) -> Number:
    if isinstance(b, Fraction) and b.denominator == 1:
        return _whole_power(a, int(b))
    if isinstance(a, float) or isinstance(b, float):
        return _infinite_power(a, b)
    base = sign(a)
    if base is None:
        return UNKNOWN
    if base < 0:
        fractional = isinstance(b, Fraction) or not intervals.holds_integer(as_interval(b))
        return UNDEFINED if fractional else UNKNOWN
    if base == 0:
        exponent = sign(b)
        return UNKNOWN if exponent is None else ZERO if exponent > 0 else ONE if exponent == 0 else UNDEFINED
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        root = _exact_root(a, b.denominator)
        if root is not None:
            return _whole_power(root, b.numerator)
    return _exp(_multiply(b, _log(a)))


@_strict
def _whole_power(a: Number, exponent: int) -> Number:
    if exponent == 0:
        return ONE
    if exponent < 0:
        return _recip(_whole_power(a, -exponent))
    if isinstance(a, float):
        return a if exponent % 2 else math.inf
    if exponent > _LARGEST_POWER:
        return a if a in (ZERO, ONE) else UNKNOWN
    result: Number = ONE
    for _ in range(exponent):
        result = _multiply(result, a)
    return result


def _infinite_power(a: Number, b: Number) -> Number:
    """Of infinities, where the limits leave no doubt."""
    if a == math.inf and not isinstance(b, float):
        exponent = sign(b)
        return UNKNOWN if not exponent else math.inf if exponent > 0 else ZERO
    return UNKNOWN


def _exact_root(value: Fraction, degree: int) -> Fraction | None:
    """The rational root of a positive rational, where there is one."""
    above, below = (_whole_root(part, degree) for part in (value.numerator, value.denominator))
    return None if above is None or below is None else Fraction(above, below)


def _whole_root(value: int, degree: int) -> int | None:
    if value.bit_length() > 900 or degree > _LARGEST_POWER:
        return None
    near = math.isqrt(value) if degree == 2 else round(value ** (1 / degree))
    return next((root for root in (near - 1, near, near + 1) if root >= 0 and root**degree == value), None)


@_strict
def _exp(a: Number) -> Number:
    if isinstance(a, float):
        return math.inf if a > 0 else ZERO
    if isinstance(a, Fraction):
        return exponentials.exponential(a) if a else ONE
    return intervals.exp(as_interval(a))


@_strict
def _log(a: Number) -> Number:
    positive = sign(a)
    if positive is None:
        return UNKNOWN
    if positive <= 0:
        return UNDEFINED
    if isinstance(a, float):
        return a
    if a == ONE:
        return ZERO
    term = exponentials.single_term(a) if isinstance(a, Exponential) else None
    if term is not None and term[0] == 1:
        return term[1]
    return intervals.log(as_interval(a))


@_strict
def _sqrt(a: Number) -> Number:
    root = sign(a)
    if root is None:
        return UNKNOWN
    if root <= 0:
        return ZERO if root == 0 else UNDEFINED
    if isinstance(a, float):
        return a
    if isinstance(a, Fraction):
        exact = _exact_root(a, 2)
        return exact if exact is not None else intervals.sqrt(as_interval(a))
    return intervals.sqrt(as_interval(a))


@_strict
def _sign(a: Number) -> Number:
    found = sign(a)
    return UNKNOWN if found is None else Fraction(found)


@_strict
def _abs(a: Number) -> Number:
    found = sign(a)
    if found is None:
        return intervals.larger(a, -a)
    return _negate(a) if found < 0 else a


@_strict
def _floor(a: Number) -> Number:
    if isinstance(a, float):
        return a
    return Fraction(math.floor(a)) if isinstance(a, Fraction) else intervals.floor(as_interval(a))


def _difference_sign(a: Number, b: Number) -> int | None:
    """The sign of a - b, infinities included."""
    if isinstance(a, float) or isinstance(b, float):
        left = sign(a) if isinstance(a, float) else 0
        right = sign(b) if isinstance(b, float) else 0
        assert left is not None
        assert right is not None
        return (left > right) - (left < right)
    return sign(_subtract(a, b))


def _comparison(holds: Callable[[int], bool]) -> Callable[[Number, Number], Number]:
    def compare(a: Number, b: Number) -> Number:
        found = _difference_sign(a, b)
        return UNKNOWN if found is None else Fraction(holds(found))

    return compare


@_strict
def _maximum(a: Number, b: Number) -> Number:
    found = _difference_sign(a, b)
    if found is None:
        return intervals.larger(as_interval(a), as_interval(b))
    return a if found >= 0 else b


@_strict
def _minimum(a: Number, b: Number) -> Number:
    return _negate(_maximum(_negate(a), _negate(b)))


@_strict
def _tanh(a: Number) -> Number:
    if isinstance(a, float):
        return ONE if a > 0 else -ONE
    square = _exp(_multiply(Fraction(2), a))
    return _divide(_subtract(square, ONE), _add(square, ONE))


@_strict
def _sigmoid(a: Number) -> Number:
    return _recip(_add(ONE, _exp(_negate(a))))


@_strict
def _erf(a: Number) -> Number:
    if isinstance(a, float):
        return ONE if a > 0 else -ONE
    return a if a == ZERO else intervals.erf(as_interval(a))


def _trigonometric(function: Callable[[Interval], Interval], at_zero: Fraction) -> Callable[[Number], Number]:
    def apply(a: Number) -> Number:
        if isinstance(a, float):
            return UNDEFINED
        return at_zero if a == ZERO else function(as_interval(a))

    return apply


def _gated(gate: Callable[[Number], Number]) -> Callable[[Number], Number]:
    """x * gate(x), and its limit 0 at -inf."""
    return lambda a: ZERO if a == -math.inf else _multiply(a, gate(a))


def _gelu_gate(a: Number) -> Number:
    return _multiply(HALF, _add(ONE, _erf(_multiply(a, _sqrt(HALF)))))


def _gelu_tanh_gate(a: Number) -> Number:
    cubed = _multiply(Fraction("0.044715"), _whole_power(a, 3))
    # sqrt(2 / pi), where pi is enclosed as the angle at which it is defined
    scale = _sqrt(intervals.divide(as_interval(Fraction(2)), intervals.pi()))
    return _multiply(HALF, _add(ONE, _tanh(_multiply(scale, _add(a, cubed)))))


def _truth(value: Number) -> bool | None:
    found = sign(value)
    return None if found is None else found != 0


def _where(condition: Number, a: Number, b: Number) -> Number:
    """Only the selected branch need be defined."""
    if isinstance(condition, Nothing):
        return condition
    selected = _truth(condition)
    if selected is None:
        return UNKNOWN
    return a if selected else b


def _connective(decide: Callable[..., bool]) -> Callable[..., Number]:
    def apply(*operands: Number) -> Number:
        truths = [_truth(operand) for operand in operands]
        return UNKNOWN if None in truths else Fraction(decide(*truths))

    return apply


FUNCTIONS: dict[str, Callable[..., Number]] = {
    name: _strict(function)
    for name, function in {
        "add": _add,
        "subtract": _subtract,
        "multiply": _multiply,
        "divide": _divide,
        "power": _power,
        "negate": _negate,
        "less": _comparison(lambda s: s < 0),
        "less_equal": _comparison(lambda s: s <= 0),
        "greater": _comparison(lambda s: s > 0),
        "greater_equal": _comparison(lambda s: s >= 0),
        "equal": _comparison(lambda s: s == 0),
        "not_equal": _comparison(lambda s: s != 0),
        "and": _connective(lambda a, b: a and b),
        "or": _connective(lambda a, b: a or b),
        "not": _connective(lambda a: not a),
        "maximum": _maximum,
        "minimum": _minimum,
        "exp": _exp,
        "log": _log,
        "log1p": lambda a: _log(_add(ONE, a)),
        "expm1": lambda a: _subtract(_exp(a), ONE),
        "sqrt": _sqrt,
        "rsqrt": lambda a: _recip(_sqrt(a)),
        "recip": _recip,
        "abs": _abs,
        "sign": _sign,
        "floor": _floor,
        "tanh": _tanh,
        "sigmoid": _sigmoid,
        "erf": _erf,
        "sin": _trigonometric(intervals.sin, ZERO),
        "cos": _trigonometric(intervals.cos, ONE),
        "relu": lambda a: _maximum(a, ZERO),
        "silu": _gated(_sigmoid),
        "gelu": _gated(_gelu_gate),
        "gelu_tanh": _gated(_gelu_tanh_gate),
        "softplus": lambda a: _log(_add(ONE, _exp(a))),
    }.items()
}
FUNCTIONS["where"] = _where
