"""What quotients of exact numbers decide: planned with all rules, every entry comes out as the reference has it."""

from __future__ import annotations

import random

import numpy as np
import pytest

from bbrewrite.core.arrays import ArrayProgram
from bbrewrite.core.operators import builtin_table
from bbrewrite.core.printing import print_block_program
from bbrewrite.core.spans import Source
from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.lang.programs import parse_program
from bbrewrite.lower.lowering import lower
from bbrewrite.verify.reference import evaluate
from tests.built import built
from tests.plan.pipelines import Planned, plan_text, shipped_rules

_HEAD = """\
program decisions
index m = 199, n = 5, k = 3
input X[m], V[m, k] : f32
input T[m] : i32
input unit, step : f32
"""
# Quotients that are whole at some positions, with divisors and factors to fill in; each times {d} is a whole number.
_QUOTIENTS = (
    "m / {d}",
    "{f} * m / {d}",
    "m * {f} / {d}",
    "(m + {f}) / {d}",
    "(m - size(n)) / {d}",
    "-m / {d}",
    "abs(m - 2 * {f}) / {d}",
    "m / {d} - n / {d}",
    "m / {d} * {f}",
    "(m / {d}) / {f}",
    "m / unit",
    "T[m] / {d}",
    "T[m] / (n + {f})",
    "X[m] / {d}",
    "X[m] * {f} / step",
    "max[k](V[m, k] / {d})",
    "max[k](V[m, k]) / {d}",
    "mean[n](n * m)",
    "sum[n]((m + n) * {f}) / {d}",
)
_DECIDED = (
    "where({q} < {c}, 1, 0)",
    "where({c} >= {q}, 1, 0)",
    "where({q} == {c}, 1, 0)",
    "where({q} - {c} != 0, 1, 0)",
    "where({c} - {q} > 0, 1, 0)",
    "floor({q})",
    "floor({q} + {c})",
    "sign({q} - {c})",
    "where(floor({q}) == {c}, 1, 0)",
    "where(not {q} <= {c} or n == 2, 1, 0)",
)


def _definitions(draw: random.Random, count: int) -> list[str]:
    """Definitions over m and n; every other one decides by a list that is also a result."""
    lines: list[str] = []
    for number in range(count):
        quotient = draw.choice(_QUOTIENTS).format(
            d=draw.choice([3, 7, 10, 11, 41, 47, 49, 55, 61]), f=draw.choice([3, 7])
        )
        if number % 2 and "[n]" not in quotient:
            lines.append(f"output Q{number}[m, n] : f64 = {quotient}")
            quotient = f"Q{number}[m, n]"
        decided = draw.choice(_DECIDED).format(q=f"({quotient})", c=draw.choice([1, 2, 3, 5]))
        lines.append(f"output Y{number}[m, n] : f64 = {decided}")
    return lines


def _program(seed: int) -> str:
    return _HEAD + "\n".join(_definitions(random.Random(seed), 5)) + "\n"


def _arrays(seed: int) -> dict[str, np.ndarray]:
    positions = np.arange(199)
    spread = np.stack([positions, 2 * positions, positions - 1], 1)
    return {
        "X": positions.astype(np.float32),
        "V": spread.astype(np.float32),
        "T": (2 * positions).astype(np.int32),
        "unit": np.array(49, np.float32),
        "step": np.array((0.75, 3, 10, 49)[seed % 4], np.float32),
    }


def _assert_equal(plan: Planned, found: dict[str, np.ndarray], seed: int) -> None:
    expected = evaluate(plan.array, _arrays(seed), plan.extents, plan.table)
    for name, array in expected.items():
        if name.startswith("Y"):
            np.testing.assert_array_equal(found[name], array, err_msg=f"{name} of\n{_program(seed)}")


@pytest.mark.parametrize("seed", range(24))
def test_decisions_of_plans_are_those_of_the_reference(seed: int) -> None:
    plan = plan_text(_program(seed), shipped_rules())
    _assert_equal(plan, run_kernels(plan.plan.kernels, _arrays(seed), plan.extents, plan.table), seed)


def test_decisions_of_generated_code_are_those_of_the_reference() -> None:
    seeds = (3, 12, 13, 17)
    plans = [plan_text(_program(seed), shipped_rules()) for seed in seeds]
    compiled = built([plan.plan.kernels for plan in plans], shipped_rules().table)
    for plan, program, seed in zip(plans, compiled, seeds, strict=True):
        _assert_equal(plan, program.run(_arrays(seed), plan.extents, 2), seed)


def _lowered(body: str) -> str:
    text = "program test\nindex m = 9, n = 7\ninput X[m, n], s : f32\ninput T[m] : i32\n" + body + "\n"
    table = builtin_table()
    program = parse_program(Source("test", text), table)
    assert isinstance(program, ArrayProgram)
    lowered = lower(program, table)
    printed = print_block_program(lowered, table)
    assert parse_program(Source("test", printed), table) == lowered
    return printed


@pytest.mark.parametrize(
    "body",
    [
        "output Y[m] = where(m / 7 < 3, 1, 0)",
        "output Y[m, n] = floor(X[m, n] / s)",
        "output Y[m] = sign(T[m] / 7 - 3)",
        "output Y[m] : i32 = m / 7",
        "Q[m] = m / 7\noutput Y[m] = where(Q[m] == 3, 1, 0)",
        "Q[m] = m / 7\noutput R[m] = exp(Q[m])\noutput Y[m] = where(R[m] > 1.5, 1, 0)",
        "output Y[m] = where(mean[n](n * T[m]) >= 3, 1, 0)",
        "output Y[m] = where(max[n](X[m, n] / s) < 3, 1, 0)",
    ],
)
def test_quotients_of_exact_numbers_that_decide_are_marked(body: str) -> None:
    assert "exact_quotient" in _lowered(body)


@pytest.mark.parametrize(
    "body",
    [
        "output Y[m, n] = X[m, n] / 7",
        "output Y[m, n] = where(n <= m, X[m, n] / s, -inf)",
        "output Y[m, n] = where(X[m, n] / s > 0, X[m, n], 0)",  # a sign is not rounded away
        "output Y[m, n] = where(max[n](X[m, n] / s) == -inf, 0, 1)",  # nor is an infinity
        "output Y[m, n] = softmax[n](X[m, n] / sqrt(size(n)))",
        "output Y[m, n] = layer_norm[n](X[m, n] / s)",
        "P[m, n] = exp(X[m, n]) / s\noutput Y[m, n] = where(P[m, n] < 0.1, 0, P[m, n])",  # rounded already
        "output Y[m] = where(sum[n](X[m, n]) / s < 3, 1, 0)",
    ],
)
def test_quotients_that_only_shift_a_rounding_stay_open_to_rules(body: str) -> None:
    assert "exact_quotient" not in _lowered(body)
