"""Definitions that take a little longer as one kernel than apart are one, as far as the model tells no times apart."""

from __future__ import annotations

import pytest

from bbrewrite.candidates.cover import Bounds, Planned, cover
from bbrewrite.core.programs import BlockProgram
from bbrewrite.core.spans import Source
from bbrewrite.lang.programs import parse_program
from bbrewrite.request import make_request
from benchmarks.large_programs import elementwise_chain
from tests.candidates.test_launched_once import Kernels, Outcome
from tests.plan.pipelines import shipped_rules

COUNT = 6


@pytest.mark.parametrize(("longer", "tolerance", "kernels"), [(0.04, 0.05, 1), (0.04, 0.025, COUNT), (0.02, 0.025, 1)])
def test_candidates_grow_as_far_as_times_are_not_told_apart(longer: float, tolerance: float, kernels: int) -> None:
    rules = shipped_rules()
    text = elementwise_chain(COUNT - 1, 100, 1)
    blocks = make_request(parse_program(Source("chain", text), rules.table), rules, threads=2).blocks

    def plan(part: BlockProgram) -> Planned:
        size = len(part.definitions)
        return Outcome(Kernels((None,)), size * (1 + longer * (size > 1)))

    assert len(cover(blocks, lambda parts: list(map(plan, parts)), Bounds(0, COUNT), None, tolerance)) == kernels
