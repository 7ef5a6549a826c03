"""Cascaded reductions and siblings come into one kernel, which passes over what it reads as seldom as it can."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from bbrewrite.core.terms import Read
from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.plan.kernel import Kernel, Let, Loop, walk_statements
from bbrewrite.verify.reference import evaluate
from tests.array_programs import Arrays, draw_inputs
from tests.plan.cascades import CASCADES
from tests.plan.large_means import LONGEST, MEANS, check_close, draw_large, plan_means
from tests.plan.pipelines import NO_RULES, Planned, plan_text, shipped_rules


def run(planned: Planned, arrays: Arrays) -> tuple[Arrays, Arrays]:
    """What the plan computes, and what the reference says."""
    with np.errstate(all="ignore"):
        found = run_kernels(planned.plan.kernels, arrays, planned.extents, planned.table)
        return found, evaluate(planned.array, arrays, planned.extents, planned.table)


def check(planned: Planned, arrays: Arrays, tolerance: float = 1e-5) -> None:
    """Outputs agree within a tolerance of the largest entry, and infinities and NaN stand where they should."""
    found, expected = run(planned, arrays)
    for name, values in found.items():
        scale = np.abs(expected[name][np.isfinite(expected[name])]).max(initial=1e-30)
        np.testing.assert_allclose(values, expected[name], rtol=0, atol=tolerance * scale, err_msg=name)


def computes(loop: Loop) -> bool:
    """Whether a loop does more than load blocks that are kept for another."""
    lines = [line for line in walk_statements(loop.body) if not isinstance(line, Loop)]
    return not all(isinstance(line, Let) and isinstance(line.expression, Read) for line in lines)


def passes(kernel: Kernel, index: str) -> list[Loop]:
    """The loops over an index that compute; before a loop over outputs that processors share out they do so once."""
    statements = list(walk_statements(kernel.body))
    shared = [
        s for s in statements if isinstance(s, Loop) and s.shared and any(s.index in t.indices for t in kernel.writes)
    ]
    inside = list(walk_statements(shared[0].body)) if shared else statements
    return [s for s in inside if isinstance(s, Loop) and s.index == index and computes(s)]


@pytest.mark.parametrize("name", CASCADES)
def test_is_one_kernel(name: str) -> None:
    cascade = CASCADES[name]
    planned = plan_text(f"{cascade.text}\n", shipped_rules())
    (kernel,) = planned.plan.kernels.kernels
    assert planned.plan.kernels.buffers == ()
    assert len(passes(kernel, cascade.index)) == cascade.loops
    assert planned.graph.report.stopped_by == "saturated"


@cache
def small(name: str) -> Planned:
    """The plan for blocks of 4; kernels run at any extents, so one serves them all."""
    text = f"{CASCADES[name].text}\n"
    return plan_text(
        text, shipped_rules(), fast_math=False, block=4, **dict.fromkeys(plan_text(text, NO_RULES, block=4).extents, 13)
    )


@pytest.mark.parametrize("extent", [1, 7, 13])
@pytest.mark.parametrize("name", CASCADES)
def test_is_right_at_any_extent(name: str, extent: int) -> None:
    planned = replace(small(name), extents=dict.fromkeys(small(name).extents, extent))
    check(planned, draw_inputs(planned.array, planned.extents))


_LOGITS = [name for name in CASCADES if "softmax" in CASCADES[name].text or "exp(" in CASCADES[name].text]


@pytest.mark.parametrize("name", _LOGITS)
def test_large_logits_neither_overflow_nor_vanish(name: str) -> None:
    planned = small(name)
    arrays = draw_inputs(planned.array, planned.extents)
    # Whole numbers, so that scores are exact: at such magnitudes their rounding is all that would be compared.
    for tensor in planned.array.inputs:
        if tensor.name in ("Q", "R", "X"):
            arrays[tensor.name] = np.round(arrays[tensor.name] * 4) * np.float32(2500)
        elif tensor.name in ("K", "L", "W"):
            arrays[tensor.name] = np.round(arrays[tensor.name])
    found, _ = run(planned, arrays)
    assert all(np.isfinite(values).all() for values in found.values())
    check(planned, arrays, 3e-3)


HIDDEN = """\
program hidden
index m = 9, n = 13, l = 5
input S0[m, n], V[n, l], s[m] : f32, H[m, n] : bool
S[m, n] = where(H[m, n], S0[m, n], {hidden})
{steps}
"""
STEPS = {
    "sink": """\
M[m] = maximum(max[n](S[m, n]), s[m])
E[m, n] = exp(S[m, n] - M[m])
output O[m, l] = sum[n](E[m, n] * V[n, l]) / (sum[n](E[m, n]) + exp(s[m] - M[m]))""",
    "softmin": """\
W[m, n] = exp(min[n](S[m, n]) - S[m, n])
output O[m, l] = sum[n](W[m, n] * V[n, l]) / sum[n](W[m, n])""",
    "difference": "output O[m, l] = sum[n]((softmax[n](S[m, n]) - s[m] * softmax[n](2 * S[m, n])) * V[n, l])",
}


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("name", STEPS)
def test_rows_without_a_visible_entry(name: str, fused: bool) -> None:
    """What is hidden is infinitely far from the reference; a whole hidden row is what IEEE arithmetic makes of it."""
    text = HIDDEN.format(hidden="inf" if name == "softmin" else "-inf", steps=STEPS[name])
    planned = plan_text(text, shipped_rules() if fused else NO_RULES, block=4)
    arrays = draw_inputs(planned.array, planned.extents)
    arrays["S0"] *= np.float32(1e4)
    arrays["H"][3] = False
    arrays["H"][4, :9] = False
    arrays["s"][5] = -np.inf
    if fused:
        assert len(planned.plan.kernels.kernels) == 1
    if name == "difference":
        arrays["s"][5] = 0.5
    check(planned, arrays)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize(("block", "extent"), [(16, 1000), (64, 5000), (256, 1000), (512, 1000), (512, LONGEST)])
@pytest.mark.parametrize("name", MEANS)
def test_a_large_mean_does_not_cancel(name: str, block: int, extent: int, fused: bool) -> None:
    planned = plan_means(name, fused, block)
    planned = replace(planned, extents={**planned.extents, "k": extent})
    arrays = draw_large(planned, dict(planned.extents))
    found, expected = run(planned, arrays)
    check_close(found["Y"], expected["Y"])
