"""The float64 meaning of a program of either level, and messages for reads outside a tensor.

An array program means what `reference.py` says. A block program has no array definitions, so its meaning is its own
unfused execution with every float made an f64.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bbrewrite.core.arrays import ArrayProgram
from bbrewrite.core.elements import Element
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import BlockProgram, Definition, Tensor
from bbrewrite.core.terms import Cast, Term, rewrite_bottom_up
from bbrewrite.interpret.block_programs import run_block_program
from bbrewrite.lang.diagnostics import Diagnostic, InputError
from bbrewrite.verify.labelled import Array
from bbrewrite.verify.reference import OutOfRangeRead, evaluate


def evaluate_exactly(
    program: ArrayProgram | BlockProgram,
    arrays: Mapping[str, Array],
    extents: Mapping[str, int],
    table: OperatorTable,
) -> dict[str, Array]:
    """Every needed definition's array by tensor name. Raises InputError for a read outside a tensor."""
    if isinstance(program, BlockProgram):
        exact = in_float64(program)
        widened = {tensor.name: arrays[tensor.name].astype(tensor.element.numpy_type) for tensor in exact.inputs}
        return run_block_program(exact, widened, extents, table)
    try:
        return evaluate(program, arrays, extents, table)
    except OutOfRangeRead as fault:
        raise InputError(
            [Diagnostic("out-of-range", str(fault), fault.span, "guard it with `where`, or change the extents")]
        ) from None


def in_float64(program: BlockProgram) -> BlockProgram:
    """The program with every float tensor and rounding an f64."""
    definitions = tuple(
        Definition(_widened(definition.tensor), rewrite_bottom_up(definition.term, _wide_cast))
        for definition in program.definitions
    )
    return replace(program, inputs=tuple(map(_widened, program.inputs)), definitions=definitions)


def _widened(tensor: Tensor) -> Tensor:
    return replace(tensor, element=Element.F64) if tensor.element.is_float else tensor


def _wide_cast(term: Term) -> Term:
    if isinstance(term, Cast) and Element(term.element).is_float:
        return replace(term, element=Element.F64.value)
    return term
