"""Reads of array programs that leave their tensor, found from extents alone (`corners.py` says how).

A `where` above a read guards it; whether its condition holds is evaluated where it is made of indices, sizes and
numbers. What depends on data is left to the reference evaluation, which sees it.

A read at an index that is not its axis, but has its extent, covers the tensor: that must hold at all extents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from bbrewrite.core.arrays import (
    ArrayDefinition,
    ArrayExpression,
    ArrayProgram,
    Call,
    Element,
    Literal,
    Position,
    SizeOf,
)
from bbrewrite.core.indices import EqualExtents, IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.interpret.scalar_functions import Array, apply_function
from bbrewrite.lang.diagnostics import Diagnostic, InputError
from bbrewrite.lower.array_expressions import bound_indices, children, element_of, free_indices
from bbrewrite.lower.corners import Corners, Guard, Point


def check_equal_extents(equal: Iterable[EqualExtents], indices: IndexTable) -> None:
    """Raises InputError for every read of a program, of either level, that only extents other than these allow."""
    faults = [_unequal(read, indices) for read in equal if not indices.same_extent(read.index, read.axis)]
    if faults:
        raise InputError(faults)


def _unequal(read: EqualExtents, indices: IndexTable) -> Diagnostic:
    names = (read.index, read.axis)
    extents = " and ".join(f"size({name}) is {indices.extent(name)}" for name in names)
    message = f"{read.items} is read at {read.index}, but {extents}"
    earlier, later = (index.name for index in indices if index.name in map(indices.root, names))
    hint = f"declare `index {later} = {earlier}`, or give both one size"
    return Diagnostic("extent", message, read.span, hint)


def check_bounds(program: ArrayProgram, extents: Mapping[str, int], table: OperatorTable) -> None:
    """Raises InputError for every read that leaves its tensor. `extents` gives the extents of all root indices."""
    indices = program.indices.with_extents(extents)
    check_equal_extents(program.equal_extents, indices)
    checker = _Checker(program, indices, table)
    faults = [fault for definition in program.definitions for fault in checker.definition(definition)]
    if faults:
        raise InputError(faults)


class _Checker:
    def __init__(self, program: ArrayProgram, indices: IndexTable, table: OperatorTable) -> None:
        self._tensors = program.tensors
        self._corners = Corners(indices)
        self._table = table

    def definition(self, definition: ArrayDefinition) -> Iterator[Diagnostic]:
        yield from self._walk(definition, definition.expression, frozenset(definition.tensor.indices), ())

    def _walk(
        self, definition: ArrayDefinition, node: ArrayExpression, scope: frozenset[str], guards: tuple[Guard, ...]
    ) -> Iterator[Diagnostic]:
        match node:
            case Element():
                fault = self._fault(definition, node, scope, guards)
                if fault is not None:
                    yield fault
            case Call("where", (condition, selected, other)):
                yield from self._walk(definition, condition, scope, guards)
                yield from self._walk(definition, selected, scope, (*guards, self._guard(condition, True)))
                yield from self._walk(definition, other, scope, (*guards, self._guard(condition, False)))
            case _:
                # A condition may speak of an outer index that is bound again here; a corner where both have one
                # position is a place like any other.
                for child in children(node):
                    yield from self._walk(definition, child, scope | frozenset(bound_indices(node)), guards)

    def _fault(
        self, definition: ArrayDefinition, read: Element, scope: frozenset[str], guards: tuple[Guard, ...]
    ) -> Diagnostic | None:
        if any(self._corners.extent(name) == 0 for name in scope):
            return None
        axes = zip(read.addresses, self._tensors[read.tensor].indices, strict=True)
        return self._corners.fault(read.tensor, axes, guards, read.span or definition.span)

    def _guard(self, condition: ArrayExpression, holds: bool) -> Guard:
        def truth(point: Point) -> bool | None:
            value = self._value(condition, point)
            return None if value is None else bool(value)

        return Guard(frozenset(free_indices(condition)), truth, holds)

    def _value(self, expression: ArrayExpression, point: Point) -> Array | None:
        """The value of an expression of indices, sizes and numbers; None where it depends on data."""
        match expression:
            case Literal(value):
                return np.asarray(value)
            case SizeOf(index):
                return np.asarray(self._corners.extent(index))
            case Position(index):
                return np.asarray(point[index])
            case Call(operator, operands):
                values = [self._value(operand, point) for operand in operands]
                known = [value for value in values if value is not None]
                if len(known) < len(values):
                    return None
                elements = [element_of(operand, self._tensors, self._table) for operand in operands]
                with np.errstate(all="ignore"):
                    return apply_function(self._table, operator, known, elements, exact=True)
            case _:
                return None
