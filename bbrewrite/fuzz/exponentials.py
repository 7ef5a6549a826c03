"""Quotients of formal sums of q * e^r with rational q and r: exact arithmetic with exponentials of rationals.

Distinct powers e^r are linearly independent over the rationals (Lindemann and Weierstrass), so a sum is zero exactly
where it has no terms, and equality is decided by cross-multiplication. Order is not decided here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType

type Terms = Mapping[Fraction, Fraction]  # from exponents r to factors q, none of which is 0

_ONE: Terms = MappingProxyType({Fraction(0): Fraction(1)})
_LIMIT = 400  # products of terms; beyond it intervals are quicker


class TooLong(Exception):
    """The sum has too many terms to be worth its exactness."""


@dataclass(frozen=True, eq=False)
class Exponential:
    """A quotient of two formal sums; `below` is not zero."""

    above: Terms
    below: Terms = field(default_factory=lambda: _ONE)


def exponential(exponent: Fraction) -> Exponential:
    """e^r."""
    return Exponential({exponent: Fraction(1)})


def promoted(value: Fraction | Exponential) -> Exponential:
    """A rational as a formal sum."""
    if isinstance(value, Exponential):
        return value
    return Exponential({Fraction(0): value} if value else {})


def simplified(value: Exponential) -> Fraction | Exponential:
    """The rational that a quotient is, where it is one; a single term below is divided out."""
    above, below = value.above, value.below
    if not above:
        return Fraction(0)
    if len(below) == 1:
        ((exponent, factor),) = below.items()
        above, below = {r - exponent: q / factor for r, q in above.items()}, _ONE
        if len(above) == 1 and Fraction(0) in above:
            return above[Fraction(0)]
    elif len(above) == len(below):
        ratios = {above[r] / q for r, q in below.items() if r in above}
        if len(ratios) == 1 and above.keys() == below.keys():
            return ratios.pop()
    return Exponential(above, below)


def add(a: Exponential, b: Exponential) -> Exponential:
    """Raises TooLong."""
    if a.below == b.below:
        return Exponential(_sum(a.above, b.above), a.below)
    return Exponential(_sum(_product(a.above, b.below), _product(b.above, a.below)), _product(a.below, b.below))


def multiply(a: Exponential, b: Exponential) -> Exponential:
    """Raises TooLong."""
    return Exponential(_product(a.above, b.above), _product(a.below, b.below))


def inverse(a: Exponential) -> Exponential:
    """1/a for an `a` that is not zero."""
    return Exponential(a.below, a.above)


def is_equal(a: Exponential, b: Exponential) -> bool:
    """Raises TooLong."""
    return _product(a.above, b.below) == _product(b.above, a.below)


def single_term(a: Exponential) -> tuple[Fraction, Fraction] | None:
    """(q, r) where the value is the one term q * e^r."""
    if a.below == _ONE and len(a.above) == 1:
        ((exponent, factor),) = a.above.items()
        return factor, exponent
    return None


def _sum(a: Terms, b: Terms) -> Terms:
    found = dict(a)
    for exponent, factor in b.items():
        total = found.pop(exponent, Fraction(0)) + factor
        if total:
            found[exponent] = total
    return found


def _product(a: Terms, b: Terms) -> Terms:
    if a is _ONE:
        return b
    if b is _ONE:
        return a
    if len(a) * len(b) > _LIMIT:
        raise TooLong
    found: dict[Fraction, Fraction] = {}
    for r, p in a.items():
        for s, q in b.items():
            found[r + s] = found.get(r + s, Fraction(0)) + p * q
    return {exponent: factor for exponent, factor in found.items() if factor}
