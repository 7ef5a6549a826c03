"""Builds well-typed block terms: operands are aligned so that an operator's axes agree.

Same axes need nothing, transposed ones a `transpose`, a vector beside a matrix a scale, a shift or a spread, and
two vectors along different axes an outer product or spreads. Scalars broadcast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bbrewrite.core.elements import Element
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.terms import Apply, Cast, Number, Term
from bbrewrite.core.types import result_axes, result_element


class TooManyAxes(Exception):
    """A value along more than two blocked axes, or along one of them twice: some index must be a point loop."""

    def __init__(self, axes: tuple[str, ...]) -> None:
        super().__init__(", ".join(axes))
        self.axes = axes


@dataclass(frozen=True)
class Value:
    """A block term with its type."""

    term: Term
    axes: tuple[str, ...]
    element: Element | None


def number(value: float) -> Value:
    """A number as a block; a fraction is typed apart from whole numbers."""
    return Value(Number(value), (), None if value.is_integer() else Element.NUMBER)


def takes_vectors(function: str) -> bool:
    """Whether a vector beside a matrix needs no spreading: scales, shifts and outer products exist for it."""
    return function in ("add", "subtract", "multiply", "divide")


class BlockBuilder:
    """`order` ranks axes: a matrix without a layout of its own has the earlier one as rows."""

    def __init__(self, table: OperatorTable, order: Sequence[str]) -> None:
        self._table = table
        self._order = list(order)

    def add_axis(self, name: str) -> None:
        """Ranks one more index, after the others."""
        if name not in self._order:
            self._order.append(name)

    def ordered(self, axes: Sequence[str]) -> tuple[str, ...]:
        """Distinct axes in order of rank."""
        return tuple(sorted(dict.fromkeys(axes), key=self._order.index))

    def apply(self, operator: str, *operands: Value, indices: tuple[str, ...] = ()) -> Value:
        """An operator on operands that fit it."""
        entry = self._table.operators[operator]
        axes = result_axes(entry, tuple(operand.axes for operand in operands), indices)
        assert axes is not None, f"{operator} does not take {[operand.axes for operand in operands]}"
        element = result_element(self._table.functions.get(entry.function), tuple(o.element for o in operands))
        return Value(Apply(operator, tuple(operand.term for operand in operands), indices), axes, element)

    def cast(self, value: Value, element: Element) -> Value:
        """The value in an element type."""
        return value if value.element is element else Value(Cast(element.value, value.term), value.axes, element)

    def transposed_to(self, value: Value, axes: tuple[str, ...]) -> Value:
        """A matrix in the layout `axes`, which names its own two axes."""
        return value if value.axes == axes else self.apply("transpose", value)

    def spread_to(self, value: Value, axes: tuple[str, ...]) -> Value:
        """The value along all of `axes`: matrices transposed, vectors repeated. Scalars stay, they broadcast."""
        if not value.axes or value.axes == axes:
            return value
        if len(value.axes) == len(axes):
            return self.transposed_to(value, axes)
        rows, columns = axes
        if value.axes == (rows,):
            return self.apply("row_spread", value, indices=(columns,))
        return self.apply("col_spread", value, indices=(rows,))

    def elementwise(self, function: str, *operands: Value) -> Value:
        """An elementwise function of operands along any axes, at most two in all."""
        layout = self.layout(operands)
        vectors = any(len(operand.axes) == 1 for operand in operands)
        if len(layout) == 2 and vectors and takes_vectors(function) and all(operand.axes for operand in operands):
            return self._vector_arithmetic(function, *operands)
        return self.apply(function, *(self.spread_to(operand, layout) for operand in operands))

    def product(self, factors: Sequence[tuple[Value, bool]]) -> Value:
        """The product of values, from the left; those marked True divide."""
        leading = next((k for k, (_, divides) in enumerate(factors) if not divides), None)
        if leading is None:
            result, others = number(1.0), factors
        else:
            result, others = factors[leading][0], [*factors[:leading], *factors[leading + 1 :]]
        for value, divides in others:
            result = self.elementwise("divide" if divides else "multiply", result, value)
        return result

    def layout(self, operands: Sequence[Value]) -> tuple[str, ...]:
        """The axes of an elementwise function of operands: those of its full operands where they agree."""
        axes = self.ordered([axis for operand in operands for axis in operand.axes])
        if len(axes) > 2:
            raise TooManyAxes(axes)
        layouts = {operand.axes for operand in operands if len(operand.axes) == len(axes)}
        return layouts.pop() if len(layouts) == 1 else axes

    def _vector_arithmetic(self, function: str, a: Value, b: Value) -> Value:
        """a * v, a + v, a - v, a / v and their mirrors, of a vector and a matrix or of two unlike vectors."""
        if function in ("subtract", "divide"):
            inverse = "negate" if function == "subtract" else "recip"
            b = self.apply(inverse, b)
        function = {"subtract": "add", "divide": "multiply"}.get(function, function)
        if len(a.axes) == 1 and len(b.axes) == 1:
            first, second = (a, b) if self.ordered([*a.axes, *b.axes])[0] == a.axes[0] else (b, a)
            if function == "multiply":
                return self.apply("outer", first, second)
            return self.apply("row_shift", self.spread_to(second, (*first.axes, *second.axes)), first)
        matrix, vector = (a, b) if len(a.axes) == 2 else (b, a)
        side = "row" if vector.axes[0] == matrix.axes[0] else "col"
        return self.apply(f"{side}_{'scale' if function == 'multiply' else 'shift'}", matrix, vector)
