"""From an array program to the unfused block program: every array operator a list of blocks in global memory.

    expand repeats  ->  expand library calls  ->  mark divisions that decide  ->  choose block and point indices
                    ->  lower each definition, where products are marked that must not round their operands

Nothing is fused or moved here; that is the rules' work.
"""

from __future__ import annotations

from bbrewrite.core.arrays import ArrayProgram
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import BlockProgram, Definition, Tensor
from bbrewrite.lower.blocking import choose_blocking
from bbrewrite.lower.decisions import keep_decisions
from bbrewrite.lower.definitions import lower_definition
from bbrewrite.lower.fresh_indices import FreshIndices
from bbrewrite.lower.library import expand_library_calls
from bbrewrite.lower.precision import precision_of
from bbrewrite.lower.repeats import expand_repeats


def lower(program: ArrayProgram, table: OperatorTable) -> BlockProgram:
    """The block program. InputError where the user's block sizes cannot all be kept."""
    own = expand_repeats(program)
    expanded = keep_decisions(expand_library_calls(own, table))
    tensors: dict[str, Tensor] = expanded.tensors
    fresh = FreshIndices(choose_blocking(expanded), {*tensors, *table.operators, *table.monoids})
    precision = precision_of(expanded, own.tensors.keys())
    definitions: list[Definition] = [
        lower_definition(d, tensors, precision, fresh, table) for d in expanded.definitions
    ]
    inputs, equal = program.inputs, program.equal_extents
    return BlockProgram(program.name, fresh.indices, inputs, program.assumptions, tuple(definitions), equal)
