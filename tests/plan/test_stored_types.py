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
