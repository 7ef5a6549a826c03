"""Sums of products as dot products: factors are sorted by the axes they have, and multiplied where they fit.

For `sum[k]` with a result along rows r and columns c, factors along {r, k} or {r} make the left operand, those
along {c, k} or {c} the right one; a factor of k alone scales one of them, and a factor along {r, c} or a scalar
the product. Numbers are multiplied in the order written as far as sides allow, so that what overflows in the definition
and what overflows here are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bbrewrite.core.terms import Reduce
from bbrewrite.lower.block_builder import BlockBuilder, TooManyAxes, Value
from bbrewrite.lower.precision import Precision

_SIDES = ("left", "right", "result")


class MissingAxis(Exception):
    """A reduction over blocks of an index along which its operand has no axis."""

    def __init__(self, index: str) -> None:
        super().__init__(index)
        self.index = index


@dataclass(frozen=True)
class Factor:
    """A factor, or a divisor, of a product."""

    value: Value
    divides: bool = False


def sum_of_products(
    builder: BlockBuilder, factors: Sequence[Factor], blocked: Sequence[str], precision: Precision
) -> Value:
    """The sum of a product over blocked indices, one after another; raises TooManyAxes or MissingAxis.

    An index is summed away where the factors along it have the fewest other axes. All other factors are
    inside the last sum.
    """
    remaining = list(reversed(blocked))
    current: list[Factor] = list(factors)
    while remaining:
        index = min(remaining, key=lambda name: len(_other_axes(current, name)))
        remaining.remove(index)
        involved = [f for f in current if index in f.value.axes]
        if not involved:
            raise MissingAxis(index)
        used = involved if remaining else current
        first = current.index(used[0])
        kept = [f for f in current if f not in used]
        partial = _contract(builder, used, index, precision)
        summed = Value(Reduce("sum", index, (partial.term,)), partial.axes, partial.element)
        kept.insert(first, Factor(summed))
        current = kept
    return _product(builder, current)


def _other_axes(factors: Sequence[Factor], index: str) -> set[str]:
    return {axis for f in factors if index in f.value.axes for axis in f.value.axes} - {index}


def reduce_axis(builder: BlockBuilder, value: Value, fold: str, index: str) -> Value:
    """The reduction of a block along its axis `index`, inside the block."""
    if index not in value.axes:
        raise MissingAxis(index)
    if len(value.axes) == 1:
        return builder.apply(f"{fold}_of", value)
    return builder.apply(f"row_{fold}" if value.axes[1] == index else f"col_{fold}", value)


def _contract(builder: BlockBuilder, factors: Sequence[Factor], index: str, precision: Precision) -> Value:
    """The sum over `index` inside one block."""
    kept = builder.ordered([axis for f in factors for axis in f.value.axes if axis != index])
    if len(kept) > 2:
        raise TooManyAxes((*kept, index))
    if len(kept) < 2:
        return reduce_axis(builder, _product(builder, factors), "sum", index)
    rows, columns = kept
    sides = _sides(factors, rows, columns)
    left, right, others = ([f for f, side in zip(factors, sides, strict=True) if side == name] for name in _SIDES)
    operands = [_product(builder, side) for side in (left, right) if side]
    if len(operands) == 2 and all(index in operand.axes for operand in operands):
        a, b = operands
        a, b = builder.transposed_to(a, (rows, index)), builder.transposed_to(b, (columns, index))
        inner = precision.product(builder, a, b)
    else:
        reduced = [reduce_axis(builder, o, "sum", index) if index in o.axes else o for o in operands]
        inner = _product(builder, [Factor(value) for value in reduced])
    return _product(builder, [Factor(inner), *others])


def _product(builder: BlockBuilder, factors: Sequence[Factor]) -> Value:
    return builder.product([(f.value, f.divides) for f in factors])


def _sides(factors: Sequence[Factor], rows: str, columns: str) -> list[str]:
    """For each factor one of `_SIDES`. One without rows and columns joins the operand that stands nearest before it
    (else behind it); a scalar after both operands belongs to the result."""
    decided = [_own_side(f.value, rows, columns) for f in factors]
    sides: list[str] = []
    for position, (factor, own) in enumerate(zip(factors, decided, strict=True)):
        before = [side for side in decided[:position] if side in ("left", "right")]
        behind = [side for side in decided[position:] if side in ("left", "right")]
        if own:
            sides.append(own)
        elif not factor.value.axes and len(set(before)) == 2:
            sides.append("result")
        else:
            sides.append([*reversed(before), *behind, "left"][0])
    return sides


def _own_side(value: Value, rows: str, columns: str) -> str:
    if rows in value.axes and columns in value.axes:
        return "result"
    return "left" if rows in value.axes else "right" if columns in value.axes else ""
