"""What is computed from a value declared f32 keeps f32's precision and range, whatever the inputs' type and the target.

Products on units of 16 bits round their operands; that is for values that the program says have such a type.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.codegen.cuda.programs import nvcc

_PROGRAMS = {
    # Squares of sums, scaled beyond what f16 holds.
    "products": """
    input X[m, k], W[k, f], U[f, n] : {element}
    A[m, f] : f32 = sum[k](X[m, k] * W[k, f])
    B[m, f] : f32 = A[m, f] * abs(A[m, f]) * 4000
    output Y[m, n] : f32 = sum[f](B[m, f] * U[f, n])
    """,
    # A sum over rows is held as f64 and rounded where it is used, which is no declaration.
    "statistics": """
    input X[m, k], W[k, n] : {element}
    A[m] : f32 = sum[k](X[m, k] * X[m, k])
    B[m, k] = X[m, k] * A[m] / 100
    output Y[m, n] : f32 = sum[k](B[m, k] * W[k, n])
    """,
    "attention": """
    input Q[m, f], K[k, f], V[k, n] : {element}
    S[m, k] : f32 = sum[f](Q[m, f] * K[k, f])
    P[m, k] = softmax[k](S[m, k])
    output Y[m, n] : f32 = sum[k](P[m, k] * V[k, n])
    """,
}


@pytest.mark.parametrize("target", ["cpp", "cuda"])
@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("name", _PROGRAMS)
def test_a_declared_type_is_kept(bbrewrite: Command, rules: Path, name: str, element: str, target: str) -> None:
    if target == "cuda":
        nvcc()
    lines = ["program declared", "index m = 40, k = 48, f = 32, n = 24"]
    lines += [line.strip() for line in _PROGRAMS[name].format(element=element).strip().splitlines()]
    Path("declared.bb").write_text("\n".join(lines) + "\n")
    options = ["--target", target, "--json", *(["--emulate"] if target == "cuda" else [])]
    result = bbrewrite("run", rules, "declared.bb", *options)
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["ok"] is True
    assert report["max_rel_err"] < 2e-6
    assert report["after"]["kernels"] == 1
