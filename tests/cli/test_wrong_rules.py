"""Whatever rules a user writes, sound or not, a run ends in a verdict or a message, never in a traceback.

Rules are drawn from sides that share variables, so that many are wrong: they drop sums, leave loops, grow terms,
or make a value depend on an index that it has no loop for.
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from bbrewrite.cli.main import cli
from tests.cli.conftest import Command

# Sides of one kind, a line each, over the variables x, y, c (and i where the line binds it).
_SIDES = [
    ["at(map(i, x), i)", "x"],
    ["reduce(sum, i, x)", "x", "reduce(max, i, x)", "x + reduce(sum, i, x)", "reduce(sum, i, 2 * x)"],
    ["row_sum(x)", "row_max(x)", "row_min(x) + row_sum(x)", "row_sum(x) * 2"],
    ["row_scale(x, c)", "x", "row_shift(x, c)", "row_scale(row_scale(x, c), c)", "-row_scale(x, c)"],
    ["x * y", "x", "y * x", "(x * y) * (y * x)", "x + y", "recip(x) * y"],
    ["x + y", "x", "y + x", "x + y + x", "x - y"],
    ["exp(x)", "x", "exp(x) * exp(x)", "exp(exp(x))", "1 + exp(x)"],
    ["dot(x, y)", "dot(x, y) + dot(x, y)", "transpose(dot(y, x))", "dot(-x, y)"],
    ["reduce(sum, i, row_scale(x, c))", "row_scale(reduce(sum, i, x), c)", "reduce(sum, i, x)", "row_scale(x, c)"],
    ["reduce(sum, i, x / y)", "reduce(sum, i, x) / y", "x / reduce(sum, i, y)"],
]  # fmt: skip
_CONDITIONS = ["", "where nonzero(x)", "where nonnegative(x)", "where x is const"]
_FUSING = "rule fuse_consecutive_maps\n    at(map(i, x), i) => x\n"
_PROGRAMS = [
    "program p\nindex m = 5, n = 6, l = 3\ninput X[m, n], V[n, l] : f32\nP[m, n] = softmax[n](X[m, n])\n"
    "output O[m, l] = sum[n](P[m, n] * V[n, l])\n",
    "program p\nindex m = 5, n = 6\ninput X[m, n] : f32\nP[m, n] = softmax[m](X[m, n])\n"
    "output O[m, n] = softmax[n](P[m, n])\n",
    "program p\nindex m = 5, k = 6, n = 4\ninput X[m, k], W[k, n], b[n] : f32\nH[m, k] = layer_norm[k](X[m, k])\n"
    "output O[m, n] = relu(sum[k](H[m, k] * W[k, n]) + b[n])\n",
    "program p\nindex b = 2, m = 5, n = 6\ninput X[b, m, n], s[m] : f32\n"
    "S[b, m] = sum[n](X[b, m, n] / (1 + s[m] * s[m]))\n"
    "output O[m] = exp(max[b](S[b, m])) * s[m]\n",
]


@st.composite
def rule_sets(draw: st.DrawFn) -> str:
    """One to three rules; most sets also make definitions meet."""
    texts = [_FUSING] if draw(st.integers(0, 3)) else []
    for number in range(draw(st.integers(1, 3))):
        sides = draw(st.sampled_from(_SIDES))
        left = draw(st.sampled_from([side for side in sides if "(" in side or " " in side]))
        right = draw(st.sampled_from([side for side in sides if side != left]))
        arrow = draw(st.sampled_from(["=>", "=>", "<=>"]))
        condition = draw(st.sampled_from(_CONDITIONS))
        texts.append(f"rule r{number}\n    {left} {arrow} {right}\n" + (f"    {condition}\n" if condition else ""))
    return "\n".join(texts)


def _check(rules: str, program: str) -> None:
    with TemporaryDirectory() as folder:
        paths = Path(folder) / "r.rules", Path(folder) / "p.bb"
        for path, text in zip(paths, (rules, program), strict=True):
            path.write_text(text, encoding="utf-8")
        result = CliRunner().invoke(cli, ["run", *map(str, paths), "--target", "numpy", "--threads", "1"])
    assert result.exit_code in {0, 1, 2}, f"{rules}\n{program}\n{result.output}"
    assert isinstance(result.exception, SystemExit | None)
    if result.exit_code == 1:
        assert "result: WRONG" in result.stdout
        assert "  O: relative error" in result.stdout


@pytest.mark.parametrize("as_json", [False, True])
def test_the_rule_at_fault_is_named(bbrewrite: Command, as_json: bool) -> None:
    """Beside one that is right, and with what to do next."""
    Path("r.rules").write_text(f"{_FUSING}\nrule lose_shift\n    row_shift(x, c) => x\n", encoding="utf-8")
    Path("p.bb").write_text(
        "program p\nindex m = 5, n = 6\ninput X[m, n] : f32\nC[m, n] = X[m, n] - mean[n](X[m, n])\n"
        "output O[m] = sum[n](exp(C[m, n]))\n",
        encoding="utf-8",
    )
    result = bbrewrite("run", "r.rules", "p.bb", "--target", "numpy", "--threads", "1", *["--json"] * as_json)
    assert result.exit_code == 1
    said = [line for line in (result.stderr if as_json else result.stdout).splitlines() if "at fault" in line]
    (line,) = said
    assert "the rule lose_shift (r.rules:4) is at fault" in line
    assert "fuzz --rule lose_shift" in line
    if as_json:
        assert not json.loads(result.stdout)["ok"]


@settings(max_examples=4, deadline=None, derandomize=True, database=None)
@given(rules=rule_sets(), program=st.sampled_from(_PROGRAMS))
def test_a_run_ends_in_a_verdict(rules: str, program: str) -> None:
    _check(rules, program)


@pytest.mark.slow
@settings(max_examples=600, deadline=None, database=None)
@given(rules=rule_sets(), program=st.sampled_from(_PROGRAMS))
def test_many_runs_end_in_a_verdict(rules: str, program: str) -> None:
    _check(rules, program)
