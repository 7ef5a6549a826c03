"""The reference: what an array program means, evaluated definition by definition at array level.

In f64 it is the meaning that every target is compared with; `Working.DECLARED` gives the unfused program's own
values instead, with every array operator's result rounded to its element type and sums of narrow floats kept in
f32, so that their distance is the error that the declared types cause. Work is cut into ranges of indices that
fit in memory. Blocks, fusion and facts about inputs are none of its business.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import numpy as np

from bbrewrite.core.arrays import ArrayDefinition, ArrayProgram, Element
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.spans import Span
from bbrewrite.interpret.scalar_functions import compute_dtype
from bbrewrite.lower.array_expressions import needed
from bbrewrite.lower.library import expand_library_calls
from bbrewrite.verify.expressions import Evaluation, Ranges
from bbrewrite.verify.labelled import Array, Labelled

# Entries of the largest value made at once: 2^22 of f64 are 32 MiB, and a few are alive together.
_MOST_ENTRIES = 1 << 22


class Working(Enum):
    """In which types values are computed and kept."""

    EXACT = "exact"  # f64 throughout
    DECLARED = "declared"  # compute types, each definition's result rounded to its element type


class OutOfRangeRead(Exception):
    """A selected element lies outside its tensor. `span` points at the read where the program came from text."""

    def __init__(self, message: str, span: Span | None) -> None:
        super().__init__(message)
        self.span = span


def evaluate(
    program: ArrayProgram,
    arrays: Mapping[str, Array],
    extents: Mapping[str, int],
    table: OperatorTable,
    working: Working = Working.EXACT,
) -> dict[str, Array]:
    """Every definition that an output needs, outputs and others, by tensor name, shaped as its indices say.

    `arrays` gives inputs and weights, `extents` the extents of root indices. In exact work floats are f64, integers
    64 bits; in declared work arrays have their tensors' element types. Raises OutOfRangeRead.
    """
    if working is Working.DECLARED:
        program = expand_library_calls(program, table)
    exact = working is Working.EXACT
    known = {
        tensor.name: np.asarray(arrays[tensor.name]).astype(compute_dtype(tensor.element, exact))
        for tensor in program.inputs
    }
    evaluation = Evaluation(program.tensors, known, program.indices.with_extents(extents), table, exact, _MOST_ENTRIES)
    results: dict[str, Array] = {}
    with np.errstate(all="ignore"):
        for definition in needed(program.definitions):
            name, element = definition.tensor.name, definition.tensor.element
            array = _definition(evaluation, definition, exact)
            results[name] = array if exact else array.astype(element.numpy_type)
            known[name] = results[name].astype(compute_dtype(element, exact))
    return results


def _definition(evaluation: Evaluation, definition: ArrayDefinition, exact: bool) -> Array:
    tensor = definition.tensor
    ranges = evaluation.full_ranges(tensor.indices)
    shape = [stop - start for start, stop in ranges.values()]
    array = np.empty(shape, compute_dtype(tensor.element, exact))
    for part in evaluation.parts(definition.expression, ranges):
        value = evaluation.value(definition.expression, part)
        _refuse_outside(evaluation, definition, value, part)
        window = tuple(slice(*part[name]) for name in tensor.indices)
        array[window] = value.along(tensor.indices).astype(array.dtype)
    return array


def _refuse_outside(evaluation: Evaluation, definition: ArrayDefinition, value: Labelled, part: Ranges) -> None:
    outside = value.outside
    if outside is None or not outside.mask.any():
        return
    first = np.unravel_index(int(np.argmax(outside.mask)), outside.mask.shape)
    spot = {name: (start, start + 1) for name, (start, _) in part.items()}
    for name, offset in zip(outside.names, first, strict=True):
        start = part[name][0] + int(offset)
        spot[name] = (start, start + 1)
    # At a single position of the result the read at fault is the one that is selected there.
    single = evaluation.value(definition.expression, spot).outside
    assert single is not None
    positions = {name: start for name, (start, _) in spot.items()} | dict(single.positions)
    raise OutOfRangeRead(_message(evaluation, single.read, positions), single.read.span or definition.span)


def _message(evaluation: Evaluation, read: Element, positions: Mapping[str, int]) -> str:
    shape = evaluation.shape(read.tensor)
    for address, extent in zip(read.addresses, shape, strict=True):
        at = evaluation.address_at(address, positions)
        if not 0 <= at < extent:
            where = ", ".join(f"{name} = {positions[name]}" for name in sorted(address.index_names))
            place = f" at {where}" if where else ""
            spot = f"{address} = {at}" if address.indices or address.sizes else f"{at}"
            return f"{read.tensor} is read at {spot}{place}, but its extent there is {extent}"
    raise AssertionError("the read is inside its tensor")
