"""The language's scalar functions on exact numbers, by name: what they are at infinities, and where undefined.

They are composed of arithmetic, exponentials and logarithms, so they are as exact as their parts (tanh of a rational
is a quotient of exponentials); roots, logarithms, erf, sin and cos are intervals where they are not rational.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from bbrewrite.fuzz import exponentials, intervals
from bbrewrite.fuzz.exact import (
    HALF,
    ONE,
    UNDEFINED,
    UNKNOWN,
    ZERO,
    Nothing,
    Number,
    add,
    as_interval,
    divide,
    multiply,
    negate,
    recip,
    sign,
    strict,
    subtract,
)
from bbrewrite.fuzz.exponentials import Exponential
from bbrewrite.fuzz.intervals import Interval

_LARGEST_POWER = 64


@strict
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
    return _exp(multiply(b, _log(a)))


@strict
def _whole_power(a: Number, exponent: int) -> Number:
    if exponent == 0:
        return ONE
    if exponent < 0:
        return recip(_whole_power(a, -exponent))
    if isinstance(a, float):
        return a if exponent % 2 else math.inf
    if exponent > _LARGEST_POWER:
        return a if a in (ZERO, ONE) else UNKNOWN
    result: Number = ONE
    for _ in range(exponent):
        result = multiply(result, a)
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


@strict
def _exp(a: Number) -> Number:
    if isinstance(a, float):
        return math.inf if a > 0 else ZERO
    if isinstance(a, Fraction):
        return exponentials.exponential(a) if a else ONE
    return intervals.exp(as_interval(a))


@strict
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


@strict
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


@strict
def _sign(a: Number) -> Number:
    found = sign(a)
    return UNKNOWN if found is None else Fraction(found)


@strict
def _abs(a: Number) -> Number:
    found = sign(a)
    if found is None:
        return intervals.larger(as_interval(a), as_interval(negate(a)))
    return negate(a) if found < 0 else a


@strict
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
    return sign(subtract(a, b))


def _comparison(holds: Callable[[int], bool]) -> Callable[[Number, Number], Number]:
    def compare(a: Number, b: Number) -> Number:
        found = _difference_sign(a, b)
        return UNKNOWN if found is None else Fraction(holds(found))

    return compare


@strict
def _maximum(a: Number, b: Number) -> Number:
    found = _difference_sign(a, b)
    if found is None:
        return intervals.larger(as_interval(a), as_interval(b))
    return a if found >= 0 else b


@strict
def _minimum(a: Number, b: Number) -> Number:
    return negate(_maximum(negate(a), negate(b)))


@strict
def _tanh(a: Number) -> Number:
    if isinstance(a, float):
        return ONE if a > 0 else -ONE
    square = _exp(multiply(Fraction(2), a))
    return divide(subtract(square, ONE), add(square, ONE))


@strict
def _sigmoid(a: Number) -> Number:
    return recip(add(ONE, _exp(negate(a))))


@strict
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
    return lambda a: ZERO if a == -math.inf else multiply(a, gate(a))


def _gelu_gate(a: Number) -> Number:
    return multiply(HALF, add(ONE, _erf(multiply(a, _sqrt(HALF)))))


def _gelu_tanh_gate(a: Number) -> Number:
    cubed = multiply(Fraction("0.044715"), _whole_power(a, 3))
    # sqrt(2 / pi), where pi is enclosed as the angle at which it is defined
    scale = _sqrt(intervals.divide(as_interval(Fraction(2)), intervals.pi()))
    return multiply(HALF, add(ONE, _tanh(multiply(scale, add(a, cubed)))))


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


def _connective(decide: Callable[[list[bool]], bool]) -> Callable[..., Number]:
    def apply(*operands: Number) -> Number:
        truths = [truth for operand in operands if (truth := _truth(operand)) is not None]
        return Fraction(decide(truths)) if len(truths) == len(operands) else UNKNOWN

    return apply


def _log1p(a: Number) -> Number:
    return _log(add(ONE, a))


def _expm1(a: Number) -> Number:
    return subtract(_exp(a), ONE)


def _rsqrt(a: Number) -> Number:
    return recip(_sqrt(a))


def _relu(a: Number) -> Number:
    return _maximum(a, ZERO)


def _widened(a: Number) -> Number:
    return a


def _softplus(a: Number) -> Number:
    return _log1p(_exp(a))


_BY_NAME: dict[str, Callable[..., Number]] = {
    "add": add,
    "subtract": subtract,
    "multiply": multiply,
    "divide": divide,
    "exact_quotient": divide,
    "widened": _widened,
    "power": _power,
    "negate": negate,
    "less": _comparison(lambda s: s < 0),
    "less_equal": _comparison(lambda s: s <= 0),
    "greater": _comparison(lambda s: s > 0),
    "greater_equal": _comparison(lambda s: s >= 0),
    "equal": _comparison(lambda s: s == 0),
    "not_equal": _comparison(lambda s: s != 0),
    "and": _connective(all),
    "or": _connective(any),
    "not": _connective(lambda truths: not truths[0]),
    "maximum": _maximum,
    "minimum": _minimum,
    "exp": _exp,
    "log": _log,
    "log1p": _log1p,
    "expm1": _expm1,
    "sqrt": _sqrt,
    "rsqrt": _rsqrt,
    "recip": recip,
    "abs": _abs,
    "sign": _sign,
    "floor": _floor,
    "tanh": _tanh,
    "sigmoid": _sigmoid,
    "erf": _erf,
    "sin": _trigonometric(intervals.sin, ZERO),
    "cos": _trigonometric(intervals.cos, ONE),
    "relu": _relu,
    "silu": _gated(_sigmoid),
    "gelu": _gated(_gelu_gate),
    "gelu_tanh": _gated(_gelu_tanh_gate),
    "softplus": _softplus,
}
FUNCTIONS = {**{name: strict(function) for name, function in _BY_NAME.items()}, "where": _where}
