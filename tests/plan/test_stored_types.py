"""What is stored has the type that its readers need: rounding one output must not round another."""

from __future__ import annotations

import numpy as np
import pytest

from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.verify.reference import evaluate
from tests.array_programs import draw_inputs
from tests.plan.pipelines import NO_RULES, plan_text, shipped_rules

TWO_TYPES = """\
program two_types
index m = 70
input X[m] : f64
output R[m] : f32 = X[m] * 3
output O[m] = X[m] * 3
"""
ROUNDED_COPY = """\
program rounded_copy
index m = 20, n = 30
input X[m, n] : f64
output O[m] = sum[n](exp(X[m, n]))
output R[m] : f16 = O[m]
output P[m] = O[m] * 2
"""


@pytest.mark.parametrize("text", [TWO_TYPES, ROUNDED_COPY])
@pytest.mark.parametrize("fused", [True, False])
def test_outputs_keep_their_own_precision(text: str, fused: bool) -> None:
    planned = plan_text(text, shipped_rules() if fused else NO_RULES)
    arrays = draw_inputs(planned.array, planned.extents)
    expected = evaluate(planned.array, arrays, planned.extents, planned.table)
    found = run_kernels(planned.plan.kernels, arrays, planned.extents, planned.table)
    for name in ("O", "P"):
        if name in found:
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-14)


def test_a_list_of_numbers_has_a_storage_type() -> None:
    text = "program numbers\nindex m = 8\nA[m] = m * 0.5\noutput B[m] : f32 = sum[m](A[m])\n"
    planned = plan_text(text, NO_RULES)
    assert [tensor.element.value for tensor in planned.plan.kernels.buffers] == ["f64"]


STATISTIC = """\
program statistic
index m = 4096, c = 512, n = 64
input X[m, c] : {element}
weight W[c, n] : {element}
N[m, c] = rms_norm[m](X[m, c])
output Y[m, n] = sum[c](N[m, c] * W[c, n])
"""
GATHERED = """\
program gathered
index m = 64, k = 32, h = 16
input X[m, k] : {element}
A[m, k] : f32 = exp(X[m, k])
B[m, k] = A[m, k] * 2
output Y[h, k] = A[h * 3, k] + X[h * 4, k]
output Z[h, k] = B[h * 3, k] + X[h * 4, k]
"""
READ_OUTPUT = """\
program read_output
index m = 64, k = 32, h = 16
input X[m, k] : {element}
output A[m, k] : f32 = exp(X[m, k])
output Y[h, k] = A[h * 3, k] + X[h * 4, k]
"""


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize(
    ("text", "element", "stored"),
    [
        pytest.param(STATISTIC, "f16", {"q"}, id="a step of a library function"),
        pytest.param(GATHERED, "f16", {"A", "B"}, id="declared, and computed from that"),
        pytest.param(GATHERED, "bf16", {"A", "B"}, id="the same of bf16"),
        pytest.param(READ_OUTPUT, "f16", set[str](), id="an output that others read"),
    ],
)
def test_lists_are_stored_in_the_types_of_their_definitions(
    text: str, element: str, stored: set[str], fused: bool
) -> None:
    planned = plan_text(text.format(element=element), shipped_rules() if fused else NO_RULES)
    buffers = {tensor.name: tensor for tensor in planned.plan.kernels.buffers}
    assert stored <= buffers.keys()
    assert {buffers[name].element.value for name in stored} <= {"f32"}
    if fused:
        assert {buffers[name].natural.value for name in stored} <= {element}
        assert set(buffers) == stored
