"""One fault gives one message: what depends on a faulty statement is not reported for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bbrewrite.core.spans import Source
from bbrewrite.lang.diagnostics import Diagnostic, InputError, render
from bbrewrite.lang.programs import parse_program

from .texts import TABLE

_EXAMPLES = Path(__file__).parents[2] / "examples"
_TOKEN = re.compile(r"#[^\n]*|[A-Za-z_]\w*|\d+(?:\.\d*)?(?:e-?\d+)?|[=<>!]=|\S")
_KEYWORDS = ("program", "index", "input", "weight", "output", "block", "def", "assume", "repeat", "carry", "next")


def _message(text: str) -> str:
    """The message for a program, which must have one fault at most; "" where it has none."""
    faults: tuple[Diagnostic, ...] = ()
    try:
        parse_program(Source("program.bb", text), TABLE)
    except InputError as error:
        faults = error.diagnostics
    assert len(faults) <= 1, f"{text}\n{render(faults)}"
    return render(faults)


def _slips(word: str) -> Iterator[str]:
    """What may stand for a word by a slip of the finger."""
    if word in _KEYWORDS:
        yield from (word[:-1], f"{word} {word}", "")
    elif word[0].isalpha():
        yield from (f"{word}q", f"{word} {word}")
    elif word in ")]":
        yield "]" if word == ")" else ")"
    elif word in "([":
        yield "[" if word == "(" else "("
    else:
        yield from ("~", f"{word}{word}")


@pytest.mark.parametrize(("name", "step"), [("attention", 1), ("decoder", 5), ("softcap_window_attention", 1)])
def test_a_slip_at_any_token(name: str, step: int) -> None:
    text = (_EXAMPLES / f"{name}.bb").read_text(encoding="utf-8")
    found = 0
    for match in [match for match in _TOKEN.finditer(text) if not match[0].startswith("#")][::step]:
        for slip in _slips(match[0]):
            found += bool(_message(text[: match.start()] + slip + text[match.end() :]))
    assert found > 100


_HEAD = "program p\nindex L = 3, m = 8, d = 4, e = d\ninput X[m, d], s : f32\n"
_BODY = [
    "carry H[m, d] = X[m, d]",
    "A[m, d] = 2 * H[m, d]",
    "B[m, d] = A[m, d] + H[m, d]",
    "next H[m, d] = B[m, d]",
]


def _repeat(lines: list[str], head: str = "repeat L") -> str:
    return f"{_HEAD}{head}\n{''.join(f'    {line}\n' for line in lines)}output O[m, d] = 2 * H[m, d]\n"


@pytest.mark.parametrize(
    ("line", "faulty"),
    [
        *((0, f"carry {rest}") for rest in ("H[m, d] = Q[m, d]", "H[m, d] = X[m]", "H[m, d] X[m, d]", "H = X")),
        *((0, f"carry {rest}") for rest in ("H[m, L] = X[m, d]", "H[m, q] = X[m, d]", "H[m] = X[m, d]")),
        (0, "carry H[m, d] : f3 = X[m, d]"),
        (0, "cary H[m, d] = X[m, d]"),
        *((1, rest) for rest in ("A[m, d] = Q[m, d]", "A[m, L] = H[m, d]", "A[m, d] = H[m]", "A[m, d] 2")),
        *((1, rest) for rest in ("output A[m, d] = H[m, d]", "input A[m, d] : f32")),
        *((3, f"next {rest}") for rest in ("H[m, d] = Q[m, d]", "H[m] = B[m, d]", "H[m, d] B[m, d]", "= 3")),
        *((3, f"next {rest}") for rest in ("h[m, d] = B[m, d]", "B[m, d] = B[m, d]", "H[m, L] = B[m, d]")),
        *((3, f"next {rest}") for rest in ("H[m, d] = B[m]", "H[d, m] = B[m, d]", "H[m, e] = B[m, d]")),
        *((3, rest) for rest in ("nxt H[m, d] = B[m, d]", "C[m, d] = B[m, d]")),
    ],
)
def test_a_wrong_line_of_a_repeat(line: int, faulty: str) -> None:
    text = _repeat([faulty if place == line else right for place, right in enumerate(_BODY)])
    assert _message(text)


@pytest.mark.parametrize(
    "head", ["repeat Q", "repeat X", "repeat", "repeat L, m", "repeat L = 3", "repet L", "repeat s"]
)
def test_a_wrong_head_of_a_repeat(head: str) -> None:
    assert _message(_repeat(_BODY, head))


@pytest.mark.parametrize("taken", ["X", "sum", "L", "f32", "exp"])
def test_a_name_that_is_taken_everywhere_it_is_used(taken: str) -> None:
    assert "name-clash" in _message(_repeat([line.replace("H", taken) for line in _BODY]).replace("H", taken))
    text = _HEAD + f"{taken}[m, d] = X[m, d]\noutput O[m, d] = {taken}[m, d] * {taken}[m, d]\n"
    assert "name-clash" in _message(text)


_USES = "".join(f"A{place}[m, d] = {{use}} + {place} * {{use}}\n" for place in range(10)) + "output O = s\n"


@pytest.mark.parametrize("use", ["Q[m, d]", "L[m, d]", "A9[m, d]", "sum[q](X[m, d])", "X[m, q]", "capp(s)"])
def test_a_name_without_meaning_that_is_used_twenty_times(use: str) -> None:
    assert _message(_HEAD + _USES.format(use=use))


@pytest.mark.parametrize(
    "definition",
    ["D[m, d] = Q[m, d]", "D[m, d] = X[m]", "D[m, d] X[m, d]", "D[m, q] = s", "D[m] = X[m, d]", "D[m = X[m]"],
)
def test_a_definition_at_fault_that_is_used_later(definition: str) -> None:
    assert _message(f"{_HEAD}{definition}\n{_USES.format(use='D[m, d]')}")


@pytest.mark.parametrize("extent", ["q", "sum", "-1", "4.5", "1e99", "n"])
def test_an_extent_at_fault(extent: str) -> None:
    text = f"program p\nindex m = 8, n = {extent}\ninput X[m], Z[n] : f32\noutput O[m] = X[m] * sum[n](X[n] * Z[n])\n"
    assert _message(text)


def test_a_type_without_its_colon() -> None:
    message = _message("program p\nindex m = 8\ninput X[m], Y[m], f32\noutput O[m] = X[m] + Y[m]\n")
    assert "`f32` is a type, not a name" in message


_BLOCK_PROGRAM = """\
block program p
index m = 8 by 4, n = 8 by 4
input X[m, n] : f32
S = map m: map n: exp(X[m, n])
M = map m: reduce max n: row_max(S[m, n])
output O = map m: map n: row_shift(S[m, n], M[m])
"""


def test_a_block_program_without_its_first_word() -> None:
    assert "[level]" in _message(_BLOCK_PROGRAM.removeprefix("block "))


def test_a_bracket_that_is_not_closed_in_a_block_program() -> None:
    assert "[bracket]" in _message(_BLOCK_PROGRAM.replace("exp(", "exp(("))
