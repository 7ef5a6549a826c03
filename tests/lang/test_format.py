"""Formatting programs: spaces and indentation change, tokens, comments, lines and meaning do not."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bbrewrite.core.spans import Source
from bbrewrite.lang.diagnostics import InputError
from bbrewrite.lang.format_program import format_program
from bbrewrite.lang.programs import parse_program

from .texts import ATTENTION, BLOCK_ATTENTION, LAYERS, RMSNORM_SWIGLU, TABLE

EXAMPLES = {path.name: path.read_text(encoding="utf-8") for path in sorted(Path("examples").glob("*.bb"))}
UNTIDY = """

program   untidy   # p
index m=64,n = 64,  k        # loop indices
block m=32, n = 32           # optional


input Q[m,k], K[n,k],V [n]:f32
weight W[m ]: bf16
#comment
    # indented
def f[j] (x,c) = c*tanh( x/c ) ^ 2^-x*size(j)
S[m, n] = sum[k](Q[m, k]*K[n,k])/
  sqrt( size(k) )
P[m,n] = softmax[n](where(n<=m and not(m<3),S[m,n],
   # inner
       -inf)
   )
output O[m]:bf16 = - sum[n](P[m, n] * V[ size(n) - 1 -n/1 ]) - 2-(-3)+f[n](W[m],2)"""
TIDY = """program untidy     # p
index m = 64, n = 64, k      # loop indices
block m = 32, n = 32         # optional

input  Q[m, k], K[n, k], V[n] : f32
weight W[m] : bf16
#comment
# indented
def f[j](x, c) = c * tanh(x / c)^2^-x * size(j)
S[m, n] = sum[k](Q[m, k] * K[n, k]) /
    sqrt(size(k))
P[m, n] = softmax[n](where(n <= m and not (m < 3), S[m, n],
        # inner
        -inf)
)
output O[m] : bf16 = -sum[n](P[m, n] * V[size(n) - 1 - n / 1]) - 2 - (-3) + f[n](W[m], 2)
"""
TEXTS = {
    "attention": ATTENTION,
    "swiglu": RMSNORM_SWIGLU,
    "layers": LAYERS,
    "block": BLOCK_ATTENTION,
    "untidy": UNTIDY,
    **EXAMPLES,
}


def formatted(text: str) -> str:
    return format_program(Source("a.bb", text))


def test_layout() -> None:
    assert formatted(UNTIDY) == TIDY


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_meaning_and_comments_stay(text: str) -> None:
    once = formatted(text)
    assert parse_program(Source("a.bb", once), TABLE) == parse_program(Source("a.bb", text), TABLE)
    assert formatted(once) == once
    assert once.count("#") == text.count("#")


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.sampled_from(sorted(TEXTS)))
def test_whatever_the_white_space(seed: int, name: str) -> None:
    draw = random.Random(seed)
    lines: list[str] = []
    # What stands in the body of a `repeat` is told by its indentation, so that of all lines changes alike.
    alike = [draw.choice(["", "  ", "\t"])] if "\nrepeat " in TEXTS[name] else []
    for line in TEXTS[name].splitlines():
        code, mark, comment = line.partition("#")
        spaced = "".join(draw.choice([" ", "  ", "\t"]) if character == " " else character for character in code)
        spaced += "".join(draw.choice(["", "", " # added", "  "]) for _ in range(1 if not mark else 0))
        before = draw.choice(alike or ["", "", "  ", "\n"])
        lines.append(before + spaced + mark + comment)
    changed = "\n".join(lines)
    once = formatted(changed)
    assert formatted(once) == once
    assert once.count("#") == changed.count("#")
    assert parse_program(Source("a.bb", once), TABLE) == parse_program(Source("a.bb", changed), TABLE)


def test_the_body_of_a_repeat_stands_under_it() -> None:
    """However it was indented, and at whatever indentation the repeat stood itself."""
    text = formatted(LAYERS)
    assert text == LAYERS
    for before, body in [("", " "), ("", "\t"), ("  ", "          "), ("\t", "  ")]:
        lines = [
            before + line.replace("    ", body, 1) if line.startswith("    ") else before + line
            for line in LAYERS.splitlines()
        ]
        found = formatted("\n".join(lines))
        # Only the comment behind the code keeps the column that it had.
        assert re.sub(r" +# two", " # two", found) == re.sub(r" +# two", " # two", text)


def test_comments_that_stood_in_a_column_stand_in_one() -> None:
    text = formatted("program p          # a\nindex m=1,n=2      # b\noutput y=1         # c\n")
    assert [line.index("#") for line in text.splitlines()] == [20, 20, 20]
    text = formatted("program p       # a\nindex m=1,n=2,k=3#b\noutput y=x+1+2+3    # c\noutput z=2      # d\n")
    assert [line.index("#") for line in text.splitlines()] == [16, 27, 26, 16]


def test_a_program_with_a_fault_is_refused() -> None:
    with pytest.raises(InputError, match="never closed"):
        formatted("program p\noutput y = exp(1\n")
