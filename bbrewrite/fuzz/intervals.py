"""Real numbers enclosed in intervals of about 70 digits: for functions that leave the rationals and exponentials.

Every function returns an interval that holds the true value, or raises `TooWide` where none is worth having (an
argument too large to work with). So two disjoint intervals are a proof that two values differ.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath  # pyright: ignore[reportMissingTypeStubs]

type Interval = Any  # an interval of mpmath, which has no types

_context: Any = mpmath.iv
_reals: Any = mpmath.mp
_DIGITS = 70
_context.dps = _DIGITS
_reals.dps = _DIGITS + 15
_LARGEST_EXPONENT = 100_000
_NARROW = Fraction(1, 10**45)
IntervalType: Any = _context.mpf


class TooWide(Exception):
    """No useful interval."""


def of_fraction(value: Fraction) -> Interval:
    return _context.mpf(value.numerator) / value.denominator


def of_terms(terms: Any) -> Interval:
    """The value of a formal sum: the sum of q * e^r over its items (r, q)."""
    total = _context.mpf(0)
    for exponent, factor in terms.items():
        total += of_fraction(factor) * exp(of_fraction(exponent))
    return total


def sign(value: Interval) -> int | None:
    """-1, 0 or 1; None where the interval does not tell."""
    if value.a > 0:
        return 1
    if value.b < 0:
        return -1
    return 0 if value.a == 0 and value.b == 0 else None


def divide(a: Interval, b: Interval) -> Interval:
    if sign(b) in (None, 0):
        raise TooWide
    return a / b


def exp(value: Interval) -> Interval:
    if value.b > _LARGEST_EXPONENT or value.a < -_LARGEST_EXPONENT:
        raise TooWide
    return _context.exp(value)


def log(value: Interval) -> Interval:
    return _context.log(value)


def sqrt(value: Interval) -> Interval:
    return _context.sqrt(value)


def pi() -> Interval:
    return _context.pi * 1


def sin(value: Interval) -> Interval:
    return _context.sin(_moderate(value))


def cos(value: Interval) -> Interval:
    return _context.cos(_moderate(value))


def erf(value: Interval) -> Interval:
    """erf is increasing, and mpmath's own error is far below the margin."""
    low, high = _endpoints(_moderate(value))
    margin = _reals.mpf(10) ** -_DIGITS
    return _context.mpf([_reals.erf(low) - margin, _reals.erf(high) + margin])


def floor(value: Interval) -> Fraction:
    low, high = (int(_reals.floor(end)) for end in _endpoints(_moderate(value)))
    if low != high:
        raise TooWide
    return Fraction(low)


def larger(a: Interval, b: Interval) -> Interval:
    (a_low, a_high), (b_low, b_high) = _endpoints(a), _endpoints(b)
    return _context.mpf([max(a_low, b_low), max(a_high, b_high)])


def holds_integer(value: Interval) -> bool:
    low, high = _endpoints(_moderate(value))
    return bool(_reals.ceil(low) <= high)


def are_equal(a: Interval, b: Interval) -> bool | None:
    """False where the intervals are disjoint, True where they meet and are narrow, else None: unknown."""
    if a.b < b.a or b.b < a.a:
        return False
    scale = max(1, abs(a.mid), abs(b.mid))
    narrow = all(x.delta <= _reals.mpf(_NARROW.numerator) / _NARROW.denominator * scale for x in (a, b))
    return True if narrow else None


def to_float(value: Interval) -> float:
    low, high = _endpoints(value)
    return float((low + high) / 2)


def shown(value: Interval, digits: int) -> str:
    """The middle of the interval as decimal digits."""
    low, high = _endpoints(value)
    return str(_reals.nstr((low + high) / 2, digits))


def _moderate(value: Interval) -> Interval:
    if value.b > _LARGEST_EXPONENT or value.a < -_LARGEST_EXPONENT:
        raise TooWide
    return value


def _endpoints(value: Interval) -> tuple[Any, Any]:
    return _reals.mpf(value._mpi_[0]), _reals.mpf(value._mpi_[1])
