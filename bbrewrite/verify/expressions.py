"""Values of array expressions over ranges of indices, for the reference.

Library functions are computed by their own formulas here, not through lowering's steps, so that the two can be
compared. An element read outside its tensor is 0 and marked; `where` drops the marks of what it does not select.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from bbrewrite.core.addresses import Address
from bbrewrite.core.arrays import (
    ArrayExpression,
    Call,
    Element,
    Fold,
    LibraryCall,
    Literal,
    Position,
    SizeOf,
)
from bbrewrite.core.elements import Element as ElementType
from bbrewrite.core.elements import as_float
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Tensor
from bbrewrite.core.types import result_element
from bbrewrite.interpret.positions import gather
from bbrewrite.interpret.scalar_functions import apply_function, compute_dtype, fold_axes
from bbrewrite.lower.array_expressions import SHAPED_FUNCTIONS, children, free_indices
from bbrewrite.verify.labelled import Array, Labelled, Outside, contract, either, placed, union
from bbrewrite.verify.library_formulas import FORMULAS

type Ranges = Mapping[str, tuple[int, int]]


class Evaluation:
    """Evaluates expressions; `known` holds the arrays of tensors in compute types and grows with definitions."""

    def __init__(
        self,
        tensors: Mapping[str, Tensor],
        known: Mapping[str, Array],
        indices: IndexTable,
        table: OperatorTable,
        exact: bool,
        most_entries: int,
    ) -> None:
        self._tensors = tensors
        self._known = known
        self._indices = indices
        self._table = table
        self._exact = exact
        self._most_entries = most_entries
        self._known_sizes: dict[tuple[int, tuple[tuple[str, tuple[int, int]], ...]], tuple[ArrayExpression, int]] = {}

    def extent(self, index: str) -> int:
        extent = self._indices.extent(index)
        if extent is None:
            raise ValueError(f"the extent of {index} is not known")
        return extent

    def full_ranges(self, indices: tuple[str, ...]) -> dict[str, tuple[int, int]]:
        return {name: (0, self.extent(name)) for name in indices}

    def shape(self, tensor: str) -> tuple[int, ...]:
        return self._known[tensor].shape

    def address_at(self, address: Address, positions: Mapping[str, int]) -> int:
        """The address at single positions of its indices."""
        return int(
            self._address(address, {name: (positions[name], positions[name] + 1) for name in positions})[0].sum()
        )

    def parts(self, expression: ArrayExpression, ranges: Ranges) -> Iterator[Ranges]:
        """The ranges cut until the expression's values fit in memory, in order."""
        largest = self._largest(expression, ranges)
        halves = [(name, _halved(ranges, name)) for name, (start, stop) in ranges.items() if stop - start > 1]
        sizes = [max(self._largest(expression, half) for half in both) for _, both in halves]
        if largest <= self._most_entries or not sizes or min(sizes) >= largest:
            yield ranges
            return
        for half in halves[sizes.index(min(sizes))][1]:
            yield from self.parts(expression, half)

    def _largest(self, expression: ArrayExpression, ranges: Ranges) -> int:
        """About how many entries the largest value has that evaluating makes, reductions' operands included."""
        key = (id(expression), tuple((name, ranges[name]) for name in sorted(free_indices(expression))))
        if key not in self._known_sizes:
            # The expression is kept, so that its identity stays its own.
            self._known_sizes[key] = (expression, self._find_largest(expression, ranges))
        return self._known_sizes[key][1]

    def _find_largest(self, expression: ArrayExpression, ranges: Ranges) -> int:
        inner: Ranges = ranges
        if isinstance(expression, Fold):
            inner = {**ranges, **self.full_ranges(expression.indices)}
            # A reduction cuts its own operand, at best down to single positions.
            whole = self._largest_operand(expression, inner)
            single = self._largest_operand(expression, {**inner, **dict.fromkeys(expression.indices, (0, 1))})
            return max(self._size(expression, ranges), single, min(whole, self._most_entries))
        if isinstance(expression, LibraryCall):
            inner = {**ranges, **self.full_ranges(expression.indices)}
        return max([self._size(expression, inner), *(self._largest(child, inner) for child in children(expression))])

    def _size(self, expression: ArrayExpression, ranges: Ranges) -> int:
        size = 1
        for name in free_indices(expression):
            start, stop = ranges[name]
            size *= stop - start
        return size

    def value(self, expression: ArrayExpression, ranges: Ranges) -> Labelled:
        """The value over the ranges of its free indices."""
        match expression:
            case Literal(value):
                number_type = None if value.is_integer() else ElementType.NUMBER
                return Labelled(np.asarray(value), (), number_type)
            case SizeOf(index):
                return Labelled(np.asarray(self.extent(index)), (), ElementType.INDEX)
            case Position(index):
                return Labelled(np.arange(*ranges[index]), (index,), ElementType.INDEX)
            case Element():
                return self._read(expression, ranges)
            case Call():
                return self._call(expression, ranges)
            case Fold():
                return self._fold(expression, ranges)
            case LibraryCall():
                return self._library_call(expression, ranges)
            case _:
                raise AssertionError(expression)

    def _address(self, address: Address, ranges: Ranges) -> tuple[Array, tuple[str, ...]]:
        names = tuple(name for name, _ in address.indices)
        total = np.asarray(address.offset + sum(c * self.extent(name) for name, c in address.sizes))
        for name, coefficient in address.indices:
            total = total + coefficient * placed(np.arange(*ranges[name]), (name,), names)
        return total // address.divisor, names

    def _read(self, element: Element, ranges: Ranges) -> Labelled:
        array = self._known[element.tensor]
        kind = self._tensors[element.tensor].element
        plain = [address.plain_index for address in element.addresses]
        names = tuple(name for name in plain if name is not None)
        inside = all(ranges[name][1] <= extent for name, extent in zip(names, array.shape, strict=False))
        if len(names) == len(plain) == len(set(names)) and inside:
            return Labelled(array[tuple(slice(*ranges[name]) for name in names)], names, kind)
        addresses = [self._address(address, ranges) for address in element.addresses]
        names = union([own for _, own in addresses])
        positions = [placed(at, own, names) for at, own in addresses]
        outside = None
        for at, extent in zip(positions, array.shape, strict=True):
            strays = (at < 0) | (at >= extent)
            if strays.any():
                mask = strays if outside is None else outside.mask | strays
                outside = Outside(mask, names, element, {})
        value = np.broadcast_to(gather(array, positions), [ranges[n][1] - ranges[n][0] for n in names])
        if outside is not None:
            outside = replace(outside, mask=np.broadcast_to(outside.mask, value.shape))
        return Labelled(value, names, kind, outside)

    def _call(self, call: Call, ranges: Ranges) -> Labelled:
        operands = [self.value(operand, ranges) for operand in call.operands]
        names = union([operand.names for operand in operands])
        elements = tuple(operand.element for operand in operands)
        array = apply_function(self._table, call.operator, [o.along(names) for o in operands], elements, self._exact)
        outside = _selected(operands) if call.operator == "where" else either([o.outside for o in operands])
        return Labelled(array, names, result_element(self._table.functions[call.operator], elements), outside)

    def _fold(self, fold: Fold, ranges: Ranges) -> Labelled:
        if fold.reduction == "mean":
            total = self._fold(replace(fold, reduction="sum"), ranges)
            element = as_float(total.element)
            count = 1
            for name in fold.indices:
                count *= self.extent(name)
            array = total.array.astype(compute_dtype(element, self._exact)) / count
            return Labelled(np.asarray(array, compute_dtype(element, self._exact)), total.names, element, total.outside)
        inner = {**ranges, **self.full_ranges(fold.indices)}
        result: Labelled | None = None
        for part in self._fold_parts(fold, inner):
            value = self._folded(fold, part)
            if result is None:
                result = value
                continue
            combined = fold_axes(fold.reduction, np.stack([result.array, value.along(result.names)]), (0,))
            result = replace(result, array=combined, outside=either([result.outside, value.outside]))
        assert result is not None
        return result

    def _folded(self, fold: Fold, ranges: Ranges) -> Labelled:
        """The reduction over these ranges of its indices."""
        product = self._sum_of_products(fold, ranges)
        return self._folded_body(fold, ranges) if product is None else product

    def _sum_of_products(self, fold: Fold, ranges: Ranges) -> Labelled | None:
        """The sum through contractions, where it is one of products."""
        factors = _contracted_factors(fold)
        if not factors:
            return None
        values = [self.value(factor, ranges) for factor, _ in factors]
        if not _may_leave_sums(values, frozenset(fold.indices), ranges):
            return None
        element: ElementType | None = None
        for value, (_, divides) in zip(values, factors, strict=True):
            rule = self._table.functions["divide" if divides else "multiply"]
            element = result_element(rule, (element, value.element))
        dtype = compute_dtype(element, self._exact)
        operands: list[tuple[Array, tuple[str, ...]]] = []
        for value, (_, divides) in zip(values, factors, strict=True):
            array = value.array.astype(dtype, copy=False)
            operands.append((np.asarray(1 / array, dtype) if divides else array, value.names))
        array, names = contract(operands, frozenset(fold.indices))
        return Labelled(array, names, element, self._reduced(either([v.outside for v in values]), fold.indices, ranges))

    def _fold_parts(self, fold: Fold, ranges: Ranges) -> Iterator[Ranges]:
        longest = max(fold.indices, key=lambda name: ranges[name][1] - ranges[name][0])
        halves = _halved(ranges, longest)
        size = self._largest_operand(fold, ranges)
        if size <= self._most_entries or self._largest_operand(fold, halves[1]) >= size:
            yield ranges
            return
        for half in halves:
            yield from self._fold_parts(fold, half)

    def _largest_operand(self, fold: Fold, ranges: Ranges) -> int:
        """About how many entries the largest value has that the body of a reduction makes."""
        factors = [factor for factor, _ in _contracted_factors(fold)]
        if factors:
            return max(self._largest(factor, ranges) for factor in factors)
        size = 1
        for name in free_indices(fold.body) | set(fold.indices):
            size *= ranges[name][1] - ranges[name][0]
        return max(size, self._largest(fold.body, ranges))

    def _folded_body(self, fold: Fold, ranges: Ranges) -> Labelled:
        body = self.value(fold.body, ranges)
        names = union([body.names, fold.indices])
        shape = [ranges[name][1] - ranges[name][0] for name in names]
        counts = body.element is ElementType.BOOL and fold.reduction in ("sum", "prod")
        element = ElementType.I32 if counts else body.element
        array = np.broadcast_to(body.along(names), shape).astype(compute_dtype(element, self._exact), copy=False)
        folded = fold_axes(fold.reduction, array, tuple(names.index(name) for name in fold.indices))
        kept = tuple(name for name in names if name not in fold.indices)
        return Labelled(folded, kept, element, self._reduced(body.outside, fold.indices, ranges))

    def _library_call(self, call: LibraryCall, ranges: Ranges) -> Labelled:
        inner = {**ranges, **self.full_ranges(call.indices)}
        operand = self.value(call.operand, inner)
        element = as_float(operand.element)
        kept = tuple(name for name in operand.names if name not in call.indices)
        names = (*kept, *call.indices)
        shape = [inner[name][1] - inner[name][0] for name in names]
        dtype = compute_dtype(element, self._exact)
        rows = np.broadcast_to(operand.along(names), shape).astype(dtype)
        axes = tuple(range(len(kept), len(names)))
        result = FORMULAS[call.function](rows, axes, call.eps or 0.0)
        outside = self._reduced(operand.outside, call.indices, inner)
        if call.function not in SHAPED_FUNCTIONS:
            return Labelled(result.reshape(shape[: len(kept)]), kept, element, outside)
        window = tuple(slice(*ranges[name]) if name in call.indices else slice(None) for name in names)
        return Labelled(result[window], names, element, outside)

    def _reduced(self, outside: Outside | None, indices: tuple[str, ...], ranges: Ranges) -> Outside | None:
        """Where a reduction of a value rests on an element outside, with the reduced positions of the first one."""
        if outside is None:
            return None
        gone = [name for name in outside.names if name in indices]
        kept = tuple(name for name in outside.names if name not in indices)
        first = np.unravel_index(int(np.argmax(outside.mask)), outside.mask.shape) if outside.mask.any() else ()
        found = {
            name: ranges[name][0] + int(offset)
            for name, offset in zip(outside.names, first, strict=False)
            if name in gone
        }
        mask = np.asarray(outside.mask.any(axis=tuple(outside.names.index(name) for name in gone)))
        # Nothing is selected by a sum over nothing.
        if any(ranges[name][0] == ranges[name][1] for name in indices):
            mask = np.zeros_like(mask)
        return Outside(mask, kept, outside.read, {**outside.positions, **found})


def _selected(operands: list[Labelled]) -> Outside | None:
    """Where a `where` rests on an element outside: of the condition, or of the operand that it selects."""
    condition, *branches = operands
    regions = [condition.outside]
    for branch, when in zip(branches, (True, False), strict=True):
        if branch.outside is not None:
            names = union([condition.names, branch.outside.names])
            selects = (condition.along(names) != 0) == when
            mask = placed(branch.outside.mask, branch.outside.names, names) & selects
            regions.append(replace(branch.outside, mask=mask, names=names))
    return either(regions)


def _may_leave_sums(values: list[Labelled], reduced: frozenset[str], ranges: Ranges) -> bool:
    """Whether factors that lack a reduced index may be multiplied after it is summed over, as contraction does.

    Infinity times a sum over nothing, or over terms of both signs, is not the sum of the products.
    """
    if any(ranges[name][0] == ranges[name][1] for name in reduced):
        return False
    outer = [value.array for value in values if not reduced <= set(value.names)]
    return all(np.isfinite(array).all() for array in outer if array.dtype.kind == "f")


def _factors(expression: ArrayExpression) -> list[tuple[ArrayExpression, bool]]:
    """The factors of a product; those marked True divide."""
    match expression:
        case Call("multiply", (a, b)):
            return [*_factors(a), *_factors(b)]
        case Call("divide", (a, b)):
            return [*_factors(a), (b, True)]
        case _:
            return [(expression, False)]


def _contracted_factors(fold: Fold) -> list[tuple[ArrayExpression, bool]]:
    """The factors of a sum of products over indices that all occur in them; none for other reductions."""
    factors = _factors(fold.body) if fold.reduction in ("sum", "mean") else []
    return factors if len(factors) > 1 and set(fold.indices) <= free_indices(fold.body) else []


def _halved(ranges: Ranges, name: str) -> tuple[Ranges, Ranges]:
    start, stop = ranges[name]
    middle = (start + stop) // 2
    return {**ranges, name: (start, middle)}, {**ranges, name: (middle, stop)}
