"""Reads of block programs that leave their list, found from extents alone (`corners.py` says how).

As at array level, a `where` above a read guards it, and conditions are evaluated where they are made of indices,
sizes and numbers. Lowered programs were checked before they were lowered; this is for programs that users write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from bbrewrite.core.addresses import Address
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import BlockProgram
from bbrewrite.core.terms import Apply, At, IndexValue, Map, Number, Read, Reduce, Size, Term
from bbrewrite.core.types import ListType, Typing
from bbrewrite.interpret.scalar_functions import Array, apply_function
from bbrewrite.lang.diagnostics import Diagnostic, InputError
from bbrewrite.lower.corners import Corners, Guard, Point

_SPREADS = ("row_spread", "col_spread")


def check_block_bounds(program: BlockProgram, extents: Mapping[str, int], table: OperatorTable) -> None:
    """Raises InputError for every read that leaves its list. `extents` gives the extents of all root indices."""
    checker = _Checker(program, extents, table)
    faults = [fault for definition in program.definitions for fault in checker.faults(definition.term, frozenset(), ())]
    if faults:
        raise InputError(dict.fromkeys(faults))


class _Checker:
    def __init__(self, program: BlockProgram, extents: Mapping[str, int], table: OperatorTable) -> None:
        indices = program.indices.with_extents(extents)
        self._program = program
        self._table = table
        self._typing = Typing(table, indices, program.tensors)
        self._corners = Corners(indices)

    def faults(self, term: Term, scope: frozenset[str], guards: tuple[Guard, ...]) -> Iterator[Diagnostic]:
        """The faults of a term inside loops over `scope`."""
        match term:
            case Map(index) | Reduce(_, index):
                scope = scope | {index}
            case Read(tensor, addresses):
                axes = zip(addresses, self._program.tensor(tensor).indices, strict=True)
                yield from self._fault(term, tensor, axes, scope, guards)
            case At(items, address):
                found = self._typing.of(items)
                assert isinstance(found, ListType)
                yield from self._fault(term, f"a list over {found.index}", [(address, found.index)], scope, guards)
            case Apply("where", (condition, selected, other)):
                yield from self.faults(condition, scope, guards)
                yield from self.faults(selected, scope, (*guards, self._guard(condition, True)))
                yield from self.faults(other, scope, (*guards, self._guard(condition, False)))
                return
            case _:
                pass
        for child in term.children:
            yield from self.faults(child, scope, guards)

    def _guard(self, condition: Term, holds: bool) -> Guard:
        def truth(point: Point) -> bool | None:
            value = self._value(condition, point)
            return None if value is None else bool(value)

        return Guard(condition.free, truth, holds)

    def _value(self, term: Term, point: Point) -> Array | None:
        """The value of a term of indices, sizes and numbers at one element; None where it depends on data."""
        match term:
            case Number(value):
                return np.asarray(value)
            case Size(index):
                return np.asarray(self._corners.extent(index))
            case IndexValue(index):
                return np.asarray(point[index])
            case Apply(operator, operands) if operator in _SPREADS:
                return self._value(operands[0], point)
            case Apply(operator, operands) if self._table.operators[operator].is_elementwise:
                values = [self._value(operand, point) for operand in operands]
                known = [value for value in values if value is not None]
                if len(known) < len(values):
                    return None
                elements = [self._typing.block(operand).element for operand in operands]
                with np.errstate(all="ignore"):
                    return apply_function(self._table, operator, known, elements, exact=True)
            case _:
                return None

    def _fault(
        self,
        term: Term,
        items: str,
        axes: Iterable[tuple[Address, str]],
        scope: frozenset[str],
        guards: tuple[Guard, ...],
    ) -> Iterator[Diagnostic]:
        if any(self._corners.extent(name) == 0 for name in scope):
            return
        fault = self._corners.fault(items, axes, guards, self._program.places.get(term))
        if fault is not None:
            yield fault
