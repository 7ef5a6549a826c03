"""Random programs mean the same to the reference and to the lowered block program, whatever the block sizes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bbrewrite.core.indices import IndexTable
from bbrewrite.core.programs import BlockProgram
from bbrewrite.interpret.block_programs import run_block_program
from bbrewrite.lower.lowering import lower
from bbrewrite.verify import reference
from bbrewrite.verify.reference import Working, evaluate
from tests.array_programs import TABLE, draw_inputs, extents_of, program
from tests.lower.random_programs import programs


def reblocked(block_program: BlockProgram, size: int) -> BlockProgram:
    """The program with other block sizes; point indices stay."""
    indices = [replace(i, block=size) if i.block else i for i in block_program.indices]
    return replace(block_program, indices=IndexTable.of(indices))


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(programs(), st.sampled_from([1, 2, 4, 64]), st.integers(0, 5))
def test_lowered_program_means_what_the_reference_says(text: str, block: int, seed: int) -> None:
    parsed = program(text)
    extents = extents_of(parsed)
    arrays = draw_inputs(parsed, extents, seed)
    expected = evaluate(parsed, arrays, extents, TABLE)
    found = run_block_program(reblocked(lower(parsed, TABLE), block), arrays, extents, TABLE)
    stepwise = evaluate(parsed, arrays, extents, TABLE, Working.DECLARED)
    scale = 1 + np.abs(expected["O"][np.isfinite(expected["O"])]).max(initial=0)
    np.testing.assert_allclose(found["O"], expected["O"], rtol=0, atol=1e-9 * scale)
    np.testing.assert_allclose(stepwise["O"], expected["O"], rtol=0, atol=1e-9 * scale)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(programs(), st.sampled_from([1, 8, 40]))
def test_cutting_work_to_fit_memory_changes_no_value(text: str, most_entries: int) -> None:
    parsed = program(text)
    extents = extents_of(parsed)
    arrays = draw_inputs(parsed, extents)
    expected = evaluate(parsed, arrays, extents, TABLE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference, "_MOST_ENTRIES", most_entries)
        found = evaluate(parsed, arrays, extents, TABLE)
    scale = 1 + np.abs(expected["O"][np.isfinite(expected["O"])]).max(initial=0)
    np.testing.assert_allclose(found["O"], expected["O"], rtol=0, atol=1e-9 * scale)
