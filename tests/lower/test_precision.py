"""Where lowering marks an operand of a product as one that must not be rounded to 16 bits."""

from __future__ import annotations

import re

import pytest

from bbrewrite.core.arrays import ArrayProgram
from bbrewrite.core.operators import builtin_table
from bbrewrite.core.printing import print_block_program
from bbrewrite.core.programs import BlockProgram
from bbrewrite.core.spans import Source
from bbrewrite.lang.programs import parse_program
from bbrewrite.lower.lowering import lower

TABLE = builtin_table()
_HEAD = """\
program precision
index m = 64, k = 32, n = 16, layer = 2
input X[m, k], W[k, n], T[n, k] : {element}
input F[m, k], G[k, n], c[m] : f32
input H[m, k] : f16
input I[m, k] : i32
"""


def _lowered(element: str, body: str) -> str:
    text = _HEAD.format(element=element) + "\n".join(line.strip() for line in body.strip().splitlines()) + "\n"
    text = re.sub(r"^(carry|next)", r"    \1", text, flags=re.MULTILINE)
    program = parse_program(Source("precision", text), TABLE)
    assert isinstance(program, ArrayProgram)
    return print_block_program(lower(program, TABLE), TABLE)


def _marked(element: str, body: str) -> list[str]:
    """The operands that are marked, as they are printed."""
    return re.findall(r"widened\((?:transpose\()?(\w+)", _lowered(element, body))


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize(
    ("body", "marked"),
    [
        pytest.param("A[m, k] : f32 = exp(X[m, k])\noutput Y[m, n] = sum[k](A[m, k] * W[k, n])", ["W"], id="left"),
        pytest.param("A[k, n] : f32 = exp(W[k, n])\noutput Y[m, n] = sum[k](X[m, k] * A[k, n])", ["X"], id="right"),
        pytest.param(
            "A[m, k] : f32 = exp(X[m, k])\nB[k, n] : f32 = exp(W[k, n])\noutput Y[m, n] = sum[k](A[m, k] * B[k, n])",
            ["B"],
            id="both",
        ),
        pytest.param(
            "A[m, k] : f32 = exp(X[m, k])\nB[m, k] = A[m, k] * X[m, k]\noutput Y[m, n] = sum[k](B[m, k] * W[k, n])",
            ["W"],
            id="what is computed from it",
        ),
        pytest.param(
            "A[m, k] : f32 = exp(X[m, k])\noutput Y[m, n] = sum[k](softmax[k](A[m, k]) * W[k, n])",
            ["W"],
            id="through a library function",
        ),
        pytest.param("output Y[m, n] = sum[k](exp(X[m, k]) * c[m] * W[k, n])", ["W"], id="wide by an input"),
        pytest.param(
            "A[m, k] = exp(X[m, k])\noutput Y[m, n] : f32 = sum[k](A[m, k] * W[k, n])", [], id="the result alone"
        ),
        pytest.param("A[m, k] = exp(X[m, k])\noutput Y[m, n] = sum[k](A[m, k] * W[k, n])", [], id="undeclared"),
        pytest.param("output Y[m, n] = sum[k](rms_norm[k](X[m, k]) * W[k, n])", [], id="steps of a library function"),
        pytest.param("output Y[m, n] = sum[k](layer_norm[k](X[m, k]) * W[k, n])", [], id="two such steps"),
        pytest.param("output Y[m, n] = sum[k](softmax[k](X[m, k]) * T[n, k])", [], id="a weighted sum"),
        pytest.param(
            "A[m, k] : f32 = exp(X[m, k])\noutput Y[m, n] = sum[k](where(A[m, k] > 2, X[m, k], 0) * W[k, n])",
            [],
            id="a condition alone",
        ),
        pytest.param("A[m, k] = F[m, k] + 1\noutput Y[m, n] = sum[k](A[m, k] * W[k, n])", [], id="made of f32 alone"),
        pytest.param("A[m, k] : f32 = exp(X[m, k])\noutput Y[m, n] = sum[k](A[m, k] * G[k, n])", [], id="beside f32"),
        pytest.param("output Y[m, n] = sum[k](I[m, k] * W[k, n])", [], id="beside integers"),
        pytest.param(
            """
            repeat layer
            carry A[m, k] : f32 = exp(X[m, k])
            next A[m, k] = sum[n](sum[k](A[m, k] * W[k, n]) * T[n, k])
            output Y[m, n] = sum[k](A[m, k] * W[k, n])
            """,
            ["W", "T", "W", "T", "W"],
            id="in a repeat",
        ),
    ],
)
def test_what_is_marked(element: str, body: str, marked: list[str]) -> None:
    assert _marked(element, body) == marked


@pytest.mark.parametrize(("element", "marked"), [("f16", ["W"]), ("bf16", [])])
def test_a_narrow_declaration_ends_it_where_the_range_is_that_of_f32(element: str, marked: list[str]) -> None:
    body = f"""
    A[m, k] : f32 = exp(X[m, k])
    B[m, k] : {element} = A[m, k] * c[m]
    output Y[m, n] = sum[k](B[m, k] * W[k, n])
    """
    assert _marked(element, body) == marked


def test_the_text_reads_back_as_the_same_program() -> None:
    text = _lowered("bf16", "A[m, k] : f32 = exp(X[m, k])\noutput Y[m, n] = sum[k](A[m, k] * W[k, n])")
    read_back = parse_program(Source("lowered", text), TABLE)
    assert isinstance(read_back, BlockProgram)
    assert print_block_program(read_back, TABLE) == text
