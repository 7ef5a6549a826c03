"""Whatever the text, the front end gives a program or messages."""

from __future__ import annotations

import random

import pytest

from bbrewrite.core.spans import Source
from bbrewrite.lang.diagnostics import Diagnostic, InputError
from bbrewrite.lang.programs import parse_program

from .texts import ATTENTION, BLOCK_ATTENTION, RMSNORM_SWIGLU, TABLE

_DEFS = """program p
index m = 8, n = m, k
input X[m, k], s : f32, mask[n] : i32
assume positive(s)
def softcap(x, c) = c * tanh(x / c)
def rows[i](x) = sum[i](x) / size(i)
A[m, n] : bf16 = where(n <= m and not mask[n], softcap(rows[k](X[m, k]), 20), -inf)
output O[m] = max[n](A[m, n]) + s^-2 + mask[size(n) - 1 - m / 2]
"""
_TEXTS = [ATTENTION, RMSNORM_SWIGLU, BLOCK_ATTENTION, _DEFS]
_PIECES = [
    *"()[],:=+-*/^<>#\n .0",
    "==",
    "not ",
    "and ",
    " inf",
    "1e9",
    "index ",
    "output ",
    "map m: ",
    "m",
    "S",
    "softmax",
]


def _changed(draw: random.Random) -> str:
    text = draw.choice(_TEXTS)
    for _ in range(draw.randrange(1, 5)):
        start = draw.randrange(len(text))
        end = start + draw.choice([0, 0, 1, 1, 2, 8])
        text = text[:start] + draw.choice([*_PIECES, ""]) + text[end:]
    return text


@pytest.mark.parametrize("seed", range(10))
def test_changed_texts(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(100):
        text = _changed(draw)
        for fault in _faults(text):
            assert fault.span is not None
            assert f"p.bb:{fault.span.line}:{fault.span.column}: error[{fault.code}]: " in fault.render()


def _faults(text: str) -> tuple[Diagnostic, ...]:
    try:
        parse_program(Source("p.bb", text), TABLE)
    except InputError as error:
        return error.diagnostics
    except Exception as error:
        raise AssertionError(f"a program that is not understood:\n{text}") from error
    return ()
