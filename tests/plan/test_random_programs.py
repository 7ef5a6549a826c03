"""Random programs mean the same to the reference and to their plan, with and without rules, at any block sizes."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, example, given, settings
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


NORMALISED_BOTH_WAYS = """\
index m = 5, n = 7, k = 3, j = m
input A[m, k], B[k, n], C[m, n], T[m, n, k], u[m], v[n], w[k], z : f64
S[m, n] : f64 = C[m, n] / (1 + sum[n](abs(C[m, n])))
P[m, n] : f64 = softmax[m](S[m, n]) + C[m, n] / (1 + sum[m](abs(C[m, n])))
output O[m, n] : f64 = softmax[n](P[m, n])"""
BATCHED_COLUMN_SOFTMAX = """\
index m = 5, n = 7, k = 3, j = m
input A[m, k], B[k, n], C[m, n], T[m, n, k], u[m], v[n], w[k], z : f64
P[m, n, k] : f64 = softmax[m](sum[n]((A[m, k]) * (A[m, k]) / (1 + abs(B[k, n]))))
output O[m, n] : f64 = sum[k](tanh(tanh(P[m, n, k])))"""


@ANY_CASE
@given(programs(), st.sampled_from([None, 1, 2, 4]), st.integers(0, 5))
@example(NORMALISED_BOTH_WAYS, None, 0)
@example(BATCHED_COLUMN_SOFTMAX, None, 0)
def test_fused_plan_means_what_the_reference_says(text: str, block: int | None, seed: int) -> None:
    check(plan_text(f"program test\n{text}\n", shipped_rules(), block=block), seed)


@ANY_CASE
@given(programs(), st.sampled_from([None, 1, 2, 4]), st.integers(0, 5))
def test_unfused_plan_means_what_the_reference_says(text: str, block: int | None, seed: int) -> None:
    check(plan_text(f"program test\n{text}\n", NO_RULES, block=block), seed)
