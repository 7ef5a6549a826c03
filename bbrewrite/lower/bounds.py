"""Reads that leave their tensor, found from extents alone.

A read at an address reaches its extremes at corners of the index ranges. A corner at which it leaves its tensor is an
error, unless a `where` above the read does not select it there; whether the condition holds is evaluated where it is
made of indices, sizes and numbers. What depends on data is left to the reference evaluation, which sees it.

A read at an index that is not its axis, but has its extent, covers the tensor: that must hold at all extents.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from bbrewrite.core.addresses import Address
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

type _Guard = tuple[ArrayExpression, bool]  # a condition, and whether it holds where the read is selected

_MOST_CORNER_INDICES = 10  # 2^10 corners of one read are quick; a read with more indices is left to the reference


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
        self._indices = indices
        self._table = table

    def definition(self, definition: ArrayDefinition) -> Iterator[Diagnostic]:
        yield from self._walk(definition, definition.expression, frozenset(definition.tensor.indices), ())

    def _walk(
        self, definition: ArrayDefinition, node: ArrayExpression, scope: frozenset[str], guards: tuple[_Guard, ...]
    ) -> Iterator[Diagnostic]:
        match node:
            case Element():
                fault = self._fault(definition, node, scope, guards)
                if fault is not None:
                    yield fault
            case Call("where", (condition, selected, other)):
                yield from self._walk(definition, condition, scope, guards)
                yield from self._walk(definition, selected, scope, (*guards, (condition, True)))
                yield from self._walk(definition, other, scope, (*guards, (condition, False)))
            case _:
                # A condition may speak of an outer index that is bound again here; a corner where both have one
                # position is a place like any other.
                for child in children(node):
                    yield from self._walk(definition, child, scope | frozenset(bound_indices(node)), guards)

    def _fault(
        self, definition: ArrayDefinition, read: Element, scope: frozenset[str], guards: tuple[_Guard, ...]
    ) -> Diagnostic | None:
        if any(self._extent(name) == 0 for name in scope):
            return None
        tensor = self._tensors[read.tensor]
        for address, index in zip(read.addresses, tensor.indices, strict=True):
            if address.plain_index is not None:
                continue
            names = sorted(address.index_names.union(*(free_indices(condition) for condition, _ in guards)))
            if len(names) > _MOST_CORNER_INDICES:
                continue
            for corner in itertools.product(*((0, self._extent(name) - 1) for name in names)):
                point = dict(zip(names, corner, strict=True))
                at = self._address(address, point)
                if not 0 <= at < self._extent(index) and self._is_selected(guards, point):
                    return self._diagnostic(definition, read, address, index, at, point)
        return None

    def _diagnostic(
        self,
        definition: ArrayDefinition,
        read: Element,
        address: Address,
        index: str,
        at: int,
        point: Mapping[str, int],
    ) -> Diagnostic:
        where = ", ".join(f"{name} = {point[name]}" for name in sorted(address.index_names))
        place = f" at {where}" if where else ""
        spot = f"{address} = {at}" if address.indices or address.sizes else f"{at}"
        message = f"{read.tensor} is read at {spot}{place}, but size({index}) is {self._extent(index)}"
        hint = "guard the read: `where(condition, read, value)` reads only what the condition selects"
        return Diagnostic("out-of-range", message, read.span or definition.span, hint)

    def _extent(self, name: str) -> int:
        extent = self._indices.extent(name)
        assert extent is not None, f"the extent of {name} is not known"
        return extent

    def _address(self, address: Address, point: Mapping[str, int]) -> int:
        total = address.offset
        total += sum(coefficient * point[name] for name, coefficient in address.indices)
        total += sum(coefficient * self._extent(name) for name, coefficient in address.sizes)
        return total // address.divisor

    def _is_selected(self, guards: tuple[_Guard, ...], point: Mapping[str, int]) -> bool:
        """Whether every `where` above is known to select the read at this point."""
        return all(self._truth(condition, point) is holds for condition, holds in guards)

    def _truth(self, condition: ArrayExpression, point: Mapping[str, int]) -> bool | None:
        value = self._value(condition, point)
        return None if value is None else bool(value)

    def _value(self, expression: ArrayExpression, point: Mapping[str, int]) -> Array | None:
        """The value of an expression of indices, sizes and numbers; None where it depends on data."""
        match expression:
            case Literal(value):
                return np.asarray(value)
            case SizeOf(index):
                return np.asarray(self._extent(index))
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
