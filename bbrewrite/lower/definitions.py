"""Lowers one array definition (without library calls) to the term of one list of blocks.

Loops over blocks first; where a value would need more than two blocked axes, an index that the expression reduces
becomes a point loop under a fresh name and it is tried again, which is right for anything.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from bbrewrite.core.arrays import (
    ArrayDefinition,
    ArrayExpression,
    Call,
    Element,
    Fold,
    Literal,
    Position,
    SizeOf,
)
from bbrewrite.core.elements import Element as ElementType
from bbrewrite.core.elements import stored_element
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Definition, Tensor
from bbrewrite.core.terms import IndexValue, Map, Read, Reduce, Size
from bbrewrite.lower.array_expressions import free_indices, number_of_positions, renamed, walk
from bbrewrite.lower.block_builder import BlockBuilder, TooManyAxes, Value, number, takes_vectors
from bbrewrite.lower.fresh_indices import FreshIndices
from bbrewrite.lower.precision import Precision
from bbrewrite.lower.products import Factor, MissingAxis, reduce_axis, sum_of_products


def lower_definition(
    definition: ArrayDefinition,
    tensors: Mapping[str, Tensor],
    precision: Precision,
    fresh: FreshIndices,
    table: OperatorTable,
) -> Definition:
    """The block definition; its tensor's indices may be fresh point indices of the same extents."""
    tensor = definition.tensor
    indices, expression = tensor.indices, definition.expression
    while True:
        lowering = _Lowering(tensors, precision, fresh, table, indices, tensor.element)
        try:
            value = lowering.expression(expression)
            break
        except TooManyAxes as problem:
            chosen = _index_to_unblock(problem.axes, indices, fresh)
            point = fresh.point(chosen, {*indices, *free_indices(expression)})
            indices = tuple(point if name == chosen else name for name in indices)
            expression = renamed(expression, {chosen: point})
    term = lowering.stored(value).term
    for name in reversed(indices):
        term = Map(name, term)
    return Definition(Tensor(tensor.name, indices, tensor.element, tensor.role), term)


def _index_to_unblock(axes: tuple[str, ...], candidates: Sequence[str], fresh: FreshIndices) -> str:
    """The candidate axis to loop over by positions: one that stands twice, else the shortest known, else the first."""
    usable = [name for name in candidates if name in axes and fresh.indices.is_blocked(name)]
    if not usable:
        raise TooManyAxes(axes)
    twice = [name for name in usable if axes.count(name) > 1]
    extents = {name: fresh.indices.extent(name) for name in usable}
    return min(twice or usable, key=lambda name: (extents[name] is None, extents[name] or 0))


class _Lowering:
    """Lowers the expressions of one definition; `scope` are the indices bound around the current expression."""

    def __init__(
        self,
        tensors: Mapping[str, Tensor],
        precision: Precision,
        fresh: FreshIndices,
        table: OperatorTable,
        indices: tuple[str, ...],
        element: ElementType,
    ) -> None:
        self._tensors = tensors
        self._precision = precision
        self._fresh = fresh
        self._indices = indices
        self._element = element
        self._scope = list(indices)
        self._builder = BlockBuilder(table, indices)

    def stored(self, value: Value) -> Value:
        """The value in the layout and the element type in which the definition is stored."""
        axes = tuple(name for name in self._indices if self._fresh.indices.is_blocked(name))
        if axes and not value.axes:
            value = self._builder.apply("row_spread", value, indices=axes[:1])
        value = self._builder.spread_to(value, axes)
        as_is = stored_element(value.element) is self._element
        return value if as_is else self._builder.cast(value, self._element)

    def expression(self, expression: ArrayExpression) -> Value:
        """The block of an expression. Raises TooManyAxes."""
        match expression:
            case Literal(value):
                return number(value)
            case SizeOf(index):
                return Value(Size(index), (), ElementType.INDEX)
            case Position(index):
                axes = (index,) if self._fresh.indices.is_blocked(index) else ()
                return Value(IndexValue(index), axes, ElementType.INDEX)
            case Element():
                return self._read(expression)
            case Call():
                return self._call(expression)
            case Fold():
                return self._fold(expression)
            case _:
                raise AssertionError(expression)

    def _read(self, element: Element) -> Value:
        names = [name for address in element.addresses for name, _ in address.indices]
        axes = tuple(name for name in names if self._fresh.indices.is_blocked(name))
        if len(axes) > 2 or len(set(axes)) < len(axes):
            raise TooManyAxes(axes)
        return Value(Read(element.tensor, element.addresses), axes, self._tensors[element.tensor].element)

    def _call(self, call: Call) -> Value:
        axes = [name for name in free_indices(call) if self._fresh.indices.is_blocked(name)]
        if len(axes) == 2 and _is_of_positions(call):
            return self._index_matrix(call, self._builder.ordered(axes))
        operands = [self.expression(operand) for operand in call.operands]
        if call.operator == "power" and call.operands[1] == Literal(2.0):
            base = operands[0]
            if base.element is not None and base.element.is_float:
                return self._builder.apply("multiply", base, base)
        layout = self._builder.layout(operands)
        if len(layout) == 2 and not takes_vectors(call.operator):
            operands = [
                self._index_matrix(expression, layout) if _is_of_positions(expression) else operand
                for expression, operand in zip(call.operands, operands, strict=True)
            ]
        return self._builder.elementwise(call.operator, *operands)

    def _index_matrix(self, expression: ArrayExpression, layout: tuple[str, ...]) -> Value:
        """An expression of positions with every position spread along two axes: `m - n` stays a difference."""
        if isinstance(expression, Call):
            operands = [self._index_matrix(operand, layout) for operand in expression.operands]
            return self._builder.apply(expression.operator, *operands)
        return self._builder.spread_to(self.expression(expression), layout)

    def _fold(self, fold: Fold) -> Value:
        if fold.reduction == "mean":
            return self._mean(fold)
        while True:
            try:
                with self._inside(fold.indices):
                    return self._blocked_fold(fold)
            except MissingAxis as problem:
                chosen = problem.index
            except TooManyAxes as problem:
                chosen = _index_to_unblock(problem.axes, fold.indices, self._fresh)
            fold = self._rebound(fold, {chosen: self._fresh.point(chosen, self._names_around(fold))})

    def _mean(self, fold: Fold) -> Value:
        total = Fold("sum", fold.indices, fold.body, fold.span)
        return self.expression(Call("divide", (total, number_of_positions(fold.indices, fold.span)), fold.span))

    def _names_around(self, fold: Fold) -> set[str]:
        return {*self._scope, *fold.indices, *free_indices(fold.body), *_bound_within(fold.body)}

    @staticmethod
    def _rebound(fold: Fold, names: Mapping[str, str]) -> Fold:
        indices = tuple(names.get(name, name) for name in fold.indices)
        return Fold(fold.reduction, indices, renamed(fold.body, names), fold.span)

    @contextmanager
    def _inside(self, indices: tuple[str, ...]) -> Generator[None]:
        self._scope.extend(indices)
        for name in indices:
            self._builder.add_axis(name)
        try:
            yield
        finally:
            del self._scope[len(self._scope) - len(indices) :]

    def _blocked_fold(self, fold: Fold) -> Value:
        blocked = [name for name in fold.indices if self._fresh.indices.is_blocked(name)]
        points = [name for name in fold.indices if name not in blocked]
        if fold.reduction == "sum":
            factors = [Factor(self._counted(f.value), f.divides) for f in self._factors(fold.body)]
        else:
            factors = [Factor(self.expression(fold.body))]
        if len(factors) > 1:
            value = sum_of_products(self._builder, factors, blocked, self._precision)
        else:
            value = self._counted(factors[0].value) if fold.reduction == "prod" else factors[0].value
            for name in reversed(blocked):
                value = reduce_axis(self._builder, value, fold.reduction, name)
                value = Value(Reduce(fold.reduction, name, (value.term,)), value.axes, value.element)
        for name in reversed(points):
            value = Value(Reduce(fold.reduction, name, (value.term,)), value.axes, value.element)
        return value

    def _counted(self, value: Value) -> Value:
        """Bools as numbers, so that their sum counts."""
        return self._builder.cast(value, ElementType.I32) if value.element is ElementType.BOOL else value

    def _factors(self, expression: ArrayExpression) -> list[Factor]:
        """The factors and divisors whose product an expression is, in order."""
        match expression:
            case Call("multiply", (a, b)):
                return [*self._factors(a), *self._factors(b)]
            case Call("divide", (a, b)):
                return [*self._factors(a), Factor(self.expression(b), divides=True)]
            case Call("negate", (a,)):
                first, *rest = self._factors(a)
                if first.divides:
                    return [Factor(self._builder.apply("negate", number(1.0))), first, *rest]
                return [Factor(self._builder.apply("negate", first.value)), *rest]
            case _:
                return [Factor(self.expression(expression))]


def _is_of_positions(expression: ArrayExpression) -> bool:
    """Whether an expression consists of positions, sizes and numbers."""
    return all(isinstance(node, Call | Position | SizeOf | Literal) for node in walk(expression))


def _bound_within(expression: ArrayExpression) -> set[str]:
    return {name for inner in walk(expression) if isinstance(inner, Fold) for name in inner.indices}
