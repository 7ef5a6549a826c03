"""Reads outside a tensor: found from extents where they can be, by the reference where data decides."""

from __future__ import annotations

import numpy as np
import pytest

from bbrewrite.core.spans import Source
from bbrewrite.lang.diagnostics import InputError
from bbrewrite.lang.programs import parse_program
from bbrewrite.lower.bounds import check_bounds
from bbrewrite.request import make_request
from bbrewrite.rules.rules import RuleSet
from bbrewrite.verify.reference import OutOfRangeRead
from tests.array_programs import TABLE, extents_of, program, reference, unfused

HEAD = "index m = 70, n = 10\ninput X[m] : f32\ninput B[m] : bool\n"

SOUND = [
    "Y[m] = where(m < size(m) - 1, X[m + 1], 0)",
    "Y[m] = where(m == 0, 0, X[m - 1])",
    "Y[m] = where(not (m > 68), X[m + 1], 0)",
    "Y[n] = X[7 * n + 6]",
    "Y[m] = X[size(m) - 1 - m]",
    "Y[m] = X[m / 3]",
    "Y[m] = where(m > 0, sum[n](X[m - 1] * X[n / 7]), 0)",
    "Y[m] = sum[n](where(m < 0, X[m - n], 1) + where(m >= n, X[m - n], 0))",
]
UNSOUND = [
    ("Y[m] = X[m + 1]", "X is read at m + 1 = 70 at m = 69, but size(m) is 70"),
    ("Y[m] = X[m - 1]", "X is read at m - 1 = -1 at m = 0, but size(m) is 70"),
    ("Y[m] = where(m > 0, X[m + 1], 0)", "X is read at m + 1 = 70 at m = 69"),
    ("Y[n] = X[7 * n + 7]", "X is read at 7 * n + 7 = 70 at n = 9"),
    ("Y[n] = sum[m](X[m - n])", "X is read at m - n = -9 at m = 0, n = 9"),
    ("Y[m] = X[m] + X[70]", "X is read at 70, but size(m) is 70"),
    ("Y[m] = where(m > 0, sum[m](X[m + 1]), 0)", "X is read at m + 1 = 70 at m = 69"),
    ("Y[m] = X[(m - 1) / 2]", "X is read at (m - 1) / 2 = -1 at m = 0"),
]


@pytest.mark.parametrize("definition", SOUND)
def test_guarded_and_inner_reads_pass(definition: str) -> None:
    parsed = program(f"{HEAD}output {definition}")
    check_bounds(parsed, extents_of(parsed), TABLE)
    text = HEAD.replace(": f32", ": f64") + f"output {definition}"
    np.testing.assert_allclose(unfused(text)["Y"], reference(text)["Y"], atol=1e-12)


@pytest.mark.parametrize(("definition", "message"), UNSOUND)
def test_reads_that_leave_are_reported_with_their_place(definition: str, message: str) -> None:
    parsed = program(f"{HEAD}output {definition}")
    with pytest.raises(InputError) as caught:
        check_bounds(parsed, extents_of(parsed), TABLE)
    (fault,) = caught.value.diagnostics
    assert message in fault.message
    assert fault.span is not None
    assert fault.span.line == 5
    with pytest.raises(OutOfRangeRead):
        reference(f"{HEAD}output {definition}")


def test_sizes_decide() -> None:
    parsed = program("index m, n\ninput X[m] : f32\noutput Y[n] = X[n + 2]")
    check_bounds(parsed, {"m": 7, "n": 5}, TABLE)
    check_bounds(parsed, {"m": 0, "n": 0}, TABLE)
    with pytest.raises(InputError):
        check_bounds(parsed, {"m": 7, "n": 6}, TABLE)


ARRAYS = "program test\nindex m = 4, n = 4, l = 2, k = n\ninput X[m], g[l] : f32\n"
BLOCKS = "block program test\nindex m = 4, n = 4, k = n\ninput X[m] : f32\n"
READS = [
    (ARRAYS + "output Y[n] = X[n]", "X is read at n", (4, 17)),
    (ARRAYS + "output Y[k] = X[k]", "X is read at k", (4, 17)),
    (ARRAYS + "S[m] = 2 * X[m]\noutput Y[n] = exp(S[n])", "S is read at n", (5, 21)),
    (ARRAYS + "S[n] = 3\nD[m] = sum[n](where(n == m, S[m], 0))\noutput Y[m] = D[m]", "S is read at m", (5, 31)),
    (ARRAYS + "def f[i](x) = sum[i](x * X[i])\noutput Y = f[n](2)", "X is read at n", (4, 28)),
    (
        ARRAYS + "repeat l\n    carry H[m] = X[m]\n    next H[n] = g[l] * n\noutput Y[m] = H[m]",
        "H is read at n",
        (6, 12),
    ),
    (BLOCKS + "output Y = map n: X[n]", "X is read at n", (4, 21)),
    (BLOCKS + "S = map m: X[m]\noutput Y = map k: S[k] * S[k]", "S is read at k", (5, 21)),
    (BLOCKS + "output Y = map n: (map m: X[m])[n]", "a list over m is read at n", (4, 20)),
    (BLOCKS + "let S = (map m: X[m])[n]\noutput Y = map n: S + S", "a list over m is read at n", (5, 19)),
]


@pytest.mark.parametrize(("text", "message", "place"), READS)
def test_extents_equal_by_default_only(text: str, message: str, place: tuple[int, int]) -> None:
    parsed = parse_program(Source("test", text + "\n"), TABLE)
    rules = RuleSet((), TABLE, ())
    for sizes in ({}, {"m": 7, "n": 7}, {"m": 0, "n": 0}):
        lowered = make_request(parsed, rules, sizes).blocks
        assert {(read.index in "nk", read.axis in "nk") for read in lowered.equal_extents} <= {(0, 1), (1, 0)}
    # Too long is as wrong as too short: which part is meant is nowhere said.
    for sizes in ({"m": 5}, {"n": 5}, {"m": 0}, {"m": 6, "n": 5}):
        with pytest.raises(InputError) as caught:
            make_request(parsed, rules, sizes)
        fault = caught.value.diagnostics[0]
        assert fault.message.startswith(message)
        extents = {"m": 4, "n": 4} | sizes
        assert f"size(m) is {extents['m']}" in fault.message
        assert f"is {extents['n']}" in fault.message
        assert fault.hint.startswith("declare `index n = m`")
        assert fault.span is not None
        assert (fault.span.line, fault.span.column) == place


def test_one_root_is_one_extent() -> None:
    """Neither indices of one root, nor computed addresses, ask for extents to be equal."""
    parsed = program("index m = 4, n = m, k = 4\ninput X[m] : f32\noutput Y[n] = X[n] + sum[k](X[k / 4])")
    assert not parsed.equal_extents
    check_bounds(parsed, {"m": 9, "k": 5}, TABLE)


def test_data_decides() -> None:
    text = f"{HEAD}output Y[m] = sum[n](where(B[m], X[m + n], 0))"
    parsed = program(text)
    check_bounds(parsed, extents_of(parsed), TABLE)
    visible = np.arange(70) < 61
    assert np.isfinite(reference(text, {"B": visible})["Y"]).all()
    with pytest.raises(OutOfRangeRead, match=r"X is read at m \+ n = 70 at m = 65, n = 5, but its extent there is 70"):
        reference(text, {"B": np.arange(70) == 65})


def test_a_reduction_over_nothing_reads_nothing() -> None:
    text = "index m = 3, k = 0\ninput X[m], W[k] : f32\noutput Y[m] = sum[k](X[m + 1] * W[k])"
    parsed = program(text)
    check_bounds(parsed, extents_of(parsed, k=0), TABLE)
    assert reference(text, k=0)["Y"].tolist() == [0, 0, 0]
    assert unfused(text, k=0)["Y"].tolist() == [0, 0, 0]
    with pytest.raises(InputError):
        check_bounds(parsed, extents_of(parsed, k=1), TABLE)
