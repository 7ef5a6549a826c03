"""Every elementwise operation of generated code is rounded by itself, wherever the same value is computed again.

Contraction to fused multiply-adds, at the compiler's liking, gives one subexpression two values in two places. NumPy
rounds every operation, so it says what the bits must be.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bbrewrite.core.spans import Source
from bbrewrite.fusion import fuse
from bbrewrite.inputs import draw_inputs
from bbrewrite.lang.programs import parse_program
from bbrewrite.pipeline import prepare_cpp
from bbrewrite.request import make_request
from bbrewrite.rules.load import load_rules, parse_rules
from bbrewrite.rules.rules import RuleSet

RULES = Path(__file__).parents[2] / "rules"
EMPTY = parse_rules([])
_F32 = np.float32

PROGRAM = """\
program rounding
index m = 37, n = 53
input X[m, n], Y[m, n], c[n], r[m], s : f32
A[m, n] = X[m, n] * s
output distance[m, n] = A[m, n] - max[n](A[m, n])
output square[m, n] = X[m, n] * X[m, n] - max[n](X[m, n] * X[m, n])
output chain[m, n] = (X[m, n] * Y[m, n] + c[n]) * Y[m, n] - X[m, n] * r[m]
output rows[m] = r[m] * r[m] - s * r[m]
output difference[m, n] = X[m, n] * Y[m, n] - Y[m, n] * X[m, n]
"""


def _expected(x: np.ndarray, y: np.ndarray, c: np.ndarray, r: np.ndarray, s: np.ndarray) -> dict[str, np.ndarray]:
    a = x * s
    return {
        "distance": a - a.max(axis=1, keepdims=True),
        "square": x * x - (x * x).max(axis=1, keepdims=True),
        "chain": (x * y + c) * y - x * r[:, None],
        "rows": r * r - s * r,
        "difference": np.zeros_like(x),
    }


@pytest.mark.parametrize("rules", [EMPTY, load_rules(RULES / "fusion.rules")], ids=["unfused", "fused"])
def test_every_operation_is_rounded_by_itself(rules: RuleSet) -> None:
    program = parse_program(Source("rounding.bb", PROGRAM), rules.table)
    request = make_request(program, rules, threads=2)
    arrays = draw_inputs(program, request.extents, 0, {})
    prepared = prepare_cpp(fuse(request), arrays)
    expected = _expected(*(arrays[name] for name in ("X", "Y", "c", "r", "s")))
    for execute in (prepared.unfused, prepared.fused):
        outputs = execute()
        for name, values in expected.items():
            np.testing.assert_array_equal(outputs[name], values, err_msg=name)


SHIFTED = """\
program shifted
index m = 3, n = 2
input X[m, n], s : f32
output P[m, n] = softmax[n](X[m, n] * s)
"""


def test_the_largest_entry_of_a_scaled_row_weighs_one() -> None:
    """Where it is computed twice with different roundings, its weight is exp of their difference, here 0 or inf."""
    rules = load_rules(RULES)
    program = parse_program(Source("shifted.bb", SHIFTED), rules.table)
    rng = np.random.default_rng(0)
    x = (rng.uniform(1, 2, (3, 2)) * 2.0**20).astype(_F32)
    s = np.float32(2.0**70 / 3)
    request = make_request(program, rules)
    prepared = prepare_cpp(fuse(request), {"X": x, "s": np.asarray(s)})
    one_hot = (x == x.max(axis=1, keepdims=True)).astype(_F32)
    for execute in (prepared.unfused, prepared.fused):
        np.testing.assert_array_equal(execute()["P"], one_hot)
