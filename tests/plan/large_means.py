"""Normalisations of numbers whose mean is a thousand deviations: sums are far larger than what is asked for."""

from __future__ import annotations

from functools import cache

import numpy as np

from tests.array_programs import Arrays, draw_inputs
from tests.plan.pipelines import NO_RULES, Planned, plan_text, shipped_rules

MEANS = {
    "rows": "input X[m, k] : f32\noutput Y[m, k] = layer_norm[k](X[m, k])",
    "columns": "input X[k, m] : f32\noutput Y[k, m] = layer_norm[k](X[k, m])",
    "vector": "input X[k] : f32\noutput Y[k] = layer_norm[k](X[k])",
    "matmul": """\
input X[m, k], W[k, n] : f32
H[m, k] = layer_norm[k](X[m, k])
output Y[m, n] = sum[k](H[m, k] * W[k, n])""",
    "variance": "input X[m, k] : f32\noutput Y[m] = variance[k](X[m, k])",
    "distance": "input X[m, k] : f32\noutput Y[m] = mean[k](X[m, k]) - 1000",
}
LONGEST = 200_000


@cache
def plan_means(name: str, fused: bool, block: int) -> Planned:
    """The plan with blocks of one size; kernels run at any extents."""
    text = f"program means\nindex m = 6, k = {LONGEST}, n = 20\n{MEANS[name]}\n"
    return plan_text(text, shipped_rules() if fused else NO_RULES, block=block)


def draw_large(planned: Planned, extents: dict[str, int]) -> Arrays:
    """Inputs whose X has a mean of 1000 and deviations of about 1."""
    arrays = draw_inputs(planned.array, extents)
    arrays["X"] += np.float32(1000)
    return arrays


def check_close(found: np.ndarray, expected: np.ndarray) -> None:
    """Within 1e-4 of the largest entry, or of 1 where entries are smaller: the mean itself is known no better."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 * max(1.0, np.abs(expected).max()))
