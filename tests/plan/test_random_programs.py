"""Random programs mean the same to the reference and to their plan, with and without rules, at any block sizes."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.verify.reference import evaluate
from tests.array_programs import draw_inputs
from tests.lower.random_programs import programs
from tests.plan.pipelines import NO_RULES, Planned, plan_text, shipped_rules

ANY_CASE = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


def check(planned: Planned, seed: int) -> None:
    arrays = draw_inputs(planned.array, planned.extents, seed)
    expected = evaluate(planned.array, arrays, planned.extents, planned.table)["O"]
    found = run_kernels(planned.plan.kernels, arrays, planned.extents, planned.table)["O"]
    scale = 1 + np.abs(expected[np.isfinite(expected)]).max(initial=0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * scale)


@ANY_CASE
@given(programs(), st.sampled_from([None, 1, 2, 4]), st.integers(0, 5))
def test_fused_plan_means_what_the_reference_says(text: str, block: int | None, seed: int) -> None:
    check(plan_text(f"program test\n{text}\n", shipped_rules(), block=block), seed)


@ANY_CASE
@given(programs(), st.sampled_from([None, 1, 2, 4]), st.integers(0, 5))
def test_unfused_plan_means_what_the_reference_says(text: str, block: int | None, seed: int) -> None:
    check(plan_text(f"program test\n{text}\n", NO_RULES, block=block), seed)
