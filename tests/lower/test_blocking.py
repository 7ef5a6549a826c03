"""Which indices lowering blocks."""

from __future__ import annotations

import pytest

from bbrewrite.lang.diagnostics import InputError
from bbrewrite.lower.lowering import lower
from tests.array_programs import TABLE, program


def blocks(text: str) -> dict[str, int | None]:
    return {index.name: index.block for index in lower(program(text), TABLE).indices}


def test_batch_indices_are_points_wherever_they_stand() -> None:
    text = """index b = 2, h = 3, m = 100, n = 100, d = 64
    input Q[{q}], K[{k}] : f32
    output S[b, h, m, n] = sum[d](Q[{q}] * K[{k}])"""
    for q, k in [("b, h, m, d", "b, h, n, d"), ("b, m, h, d", "b, n, h, d"), ("m, d, h, b", "n, d, b, h")]:
        found = blocks(text.format(q=q, k=k))
        assert found == {"b": None, "h": None, "m": 64, "n": 64, "d": 64}, (q, k)


def test_the_leftmost_becomes_a_point_where_nothing_else_decides() -> None:
    found = blocks("index a = 2, b = 3, c = 100\ninput X[a, b, c] : f32\noutput Y[a, b, c] = exp(X[a, b, c])")
    assert found == {"a": None, "b": 3, "c": 64}


@pytest.mark.parametrize(
    ("references", "wanted"),
    [
        (("h, m, d", "n, d", "h, m, n"), "m n d"),  # keys that all heads share
        (("m, h, d", "n, d", "m, h, n"), "m n d"),
        (("m, h, d", "n, d", "h, n, m"), "m n d"),
        (("m, d", "h, n, d", "m, h, n"), "m n d"),  # one input projected for every head
        (("h, m, d", "h, n, d", "m, n"), "m n d"),  # a sum over heads and features
        (("m, h, d", "n, d, h", "m, n"), "m n d"),
    ],
)
@pytest.mark.parametrize("softmax", [False, True])
def test_products_of_matrices_have_blocks_of_their_long_indices(
    references: tuple[str, str, str], wanted: str, softmax: bool
) -> None:
    """Whichever operand has further indices, and whatever is done with the product."""
    a, b, s = references
    reduced = "h, d" if "h" not in s else "d"
    text = f"""index h = 8, m = 100, n = 110, d = 64
    input A[{a}], B[{b}] : f32
    S[{s}] = sum[{reduced}](A[{a}] * B[{b}])
    """
    text += f"output Y[{s}] = softmax[n](S[{s}])" if softmax else f"output Y[{s}] = exp(S[{s}])"
    assert [name for name, block in blocks(text).items() if block == 64] == wanted.split()


def test_users_block_sizes_stay() -> None:
    text = """index h = 8, m = 100, d = 16
    block h = 1, m = 7
    input X[h, m, d] : f32
    output Y[h, m, d] = exp(X[h, m, d])"""
    lowered = lower(program(text), TABLE)
    assert blocks(text) == {"h": 1, "m": 7, "d": None}
    assert [index.block_is_fixed for index in lowered.indices] == [True, True, False]


def test_three_fixed_blocks_in_one_reference_are_an_error() -> None:
    text = """index h = 8, m = 100, d = 16
    block h = 1, m = 7, d = 8
    input X[h, m, d] : f32
    output Y[h, m, d] = exp(X[h, m, d])"""
    with pytest.raises(InputError, match="h, m, d all have block sizes") as caught:
        lower(program(text), TABLE)
    assert caught.value.diagnostics[0].span is not None


def test_convolution_taps_are_points() -> None:
    text = "index p = 102, m = 100, i = 3\ninput X[p], W[i] : f32\noutput Y[m] = sum[i](X[m + i] * W[i])"
    assert blocks(text)["i"] is None


def test_open_extents_have_a_starting_block() -> None:
    assert blocks("index m, n = 5\ninput X[m, n] : f32\noutput Y[m] = sum[n](X[m, n])") == {"m": 64, "n": 5}


def test_definitions_that_no_output_needs_are_dropped() -> None:
    lowered = lower(program("index m\ninput X[m] : f32\nA[m] = exp(X[m])\noutput Y[m] = X[m] + 1"), TABLE)
    assert [d.tensor.name for d in lowered.definitions] == ["Y"]


def test_fresh_names_avoid_the_users() -> None:
    text = """index m, n
    input M[m, n], E[m] : f32
    output c[m, n] = softmax[n](M[m, n]) * E[m]"""
    names = [d.tensor.name for d in lower(program(text), TABLE).definitions]
    assert names == ["M1", "E1", "c1", "P", "c"]
