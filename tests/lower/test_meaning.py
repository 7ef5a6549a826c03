"""Values that are easily got wrong, against numbers worked out by hand, in the reference and in the lowered program.

Each case stands for a kind of fault that systems of this sort have had.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.array_programs import reference, unfused

INF, NAN = math.inf, math.nan


def both(
    text: str, inputs: Mapping[str, Any], expected: Mapping[str, Any], tolerance: float = 2e-6, **extents: int
) -> None:
    """The reference and the unfused program give the expected outputs, NaN and infinities in the same places."""
    for found in (reference(text, inputs, **extents), unfused(text, inputs, **extents)):
        for name, values in expected.items():
            np.testing.assert_allclose(found[name], np.asarray(values, float), rtol=tolerance, atol=tolerance)


MASKED = """index m = 3, n = 3, d = 2, l = 2
    input Q[m, d], K[n, d], V[n, l] : f32
    input mask[m, n] : bool
    S[m, n] = where(mask[m, n], sum[d](Q[m, d] * K[n, d]) / sqrt(size(d)), -inf)
"""
MASKED_INPUTS = {
    "Q": [[1, 0], [0, 1], [1, 1]],
    "K": [[1, 0], [0, 2], [1, 1]],
    "V": [[1, 2], [3, 4], [5, 6]],
    "mask": [[False, True, False], [False] * 3, [True] * 3],
}


def test_hidden_row_is_zero_for_the_library_softmax() -> None:
    text = MASKED + "P[m, n] = softmax[n](S[m, n])\noutput O[m, l] = sum[n](P[m, n] * V[n, l])"
    both(text, MASKED_INPUTS, {"O": [[3, 4], [0, 0], [3.406672556, 4.406672556]]})


def test_hidden_row_is_nan_for_a_softmax_written_out() -> None:
    text = (
        MASKED
        + """M[m] = max[n](S[m, n])
    E[m, n] = exp(S[m, n] - M[m])
    output O[m, l] = sum[n](E[m, n] / sum[n](E[m, n]) * V[n, l])"""
    )
    both(text, MASKED_INPUTS, {"O": [[3, 4], [NAN, NAN], [3.406672556, 4.406672556]]})


@pytest.mark.parametrize(
    ("condition", "sizes", "expected"),
    [
        ("n <= m", {"m": 2, "n": 4}, [1, 1.5]),
        ("n <= m + 2", {"m": 2, "n": 4}, [7 / 3, 3.75]),
        ("n <= m - 2", {"m": 4, "n": 2}, [0, 0, 1, 1.5]),
        ("n == 1 or n == 3", {"m": 1, "n": 4}, [5]),
    ],
)
def test_masks_of_positions(condition: str, sizes: dict[str, int], expected: list[float]) -> None:
    text = f"""index m, n
    input V[n] : f32
    S[m, n] = where({condition}, 0 * V[n], -inf)
    output O[m] = sum[n](softmax[n](S[m, n]) * V[n])"""
    both(text, {"V": [1, 2, 4, 8][: sizes["n"]]}, {"O": expected}, **sizes)


@pytest.mark.parametrize("n", [1, 63, 65, 127, 129, 137, 1025])
def test_padding_never_counts(n: int) -> None:
    text = """index m, n
    block m = 64, n = 64
    input S[m, n], V[n] : f32
    output O[m] = sum[n](softmax[n](S[m, n]) * V[n])"""
    both(text, {"S": np.zeros((n, n)), "V": np.ones(n)}, {"O": np.ones(n)}, m=n, n=n)


@pytest.mark.parametrize(("scale", "expected"), [("* 0.5", 0.880797078), ("* 2", 0.999664650), ("* z", 0.119202922)])
def test_any_scale(scale: str, expected: float) -> None:
    text = f"""index m = 1, n = 2, d = 4
    input Q[m, d], K[n, d], V[n], z : f32
    S[m, n] = sum[d](Q[m, d] * K[n, d]) {scale}
    output O[m] = sum[n](softmax[n](S[m, n]) * V[n])"""
    both(text, {"Q": [[1] * 4], "K": [[1] * 4, [0] * 4], "V": [1, 0], "z": -0.5}, {"O": [expected]})


def test_normalisation_of_large_neighbours() -> None:
    text = "index m = 1, k = 4\ninput X[m, k] : f32\noutput Y[m, k] = layer_norm[k](X[m, k], eps = 1e-5)"
    expected = [[-1.341635420, -0.447211807, 0.447211807, 1.341635420]]
    both(text, {"X": [[40000, 40001, 40002, 40003]]}, {"Y": expected})


def test_squares_of_f16_do_not_overflow() -> None:
    text = "index m = 1, k = 4\ninput X[m, k] : f16\noutput Y[m, k] = rms_norm[k](X[m, k])"
    both(text, {"X": [[300] * 4]}, {"Y": [[1] * 4]}, tolerance=1e-3)


def test_eps_stands_inside_the_root() -> None:
    text = """index k = 4
    input X[k] : f32
    output A[k] = rms_norm[k](X[k], eps = 1e-6)
    output B[k] = X[k] / (sqrt(mean[k](X[k]^2)) + 1e-6)"""
    both(text, {"X": [1e-3] * 4}, {"A": [0.707106781] * 4, "B": [0.999000999] * 4})


def test_variance_of_ragged_blocks() -> None:
    text = """index k = 9
    block k = 4
    input X[k] : f32
    output A = mean[k](X[k])
    output B = variance[k](X[k])"""
    both(text, {"X": np.arange(1, 10)}, {"A": 5, "B": 20 / 3})
    both(
        "index k = 1\ninput X[k] : f32\noutput B = variance[k](X[k])\noutput C[k] = layer_norm[k](X[k])",
        {},
        {"B": 0, "C": [0]},
    )


def test_reads_backwards_beside_an_output() -> None:
    text = """index m = 1, n = 3
    input X[m, n], Y[m, n] : f32
    output A[m, n] = X[m, 2 - n] + (Y[m, n] + sum[n](Y[m, n]))
    output B[m, n] = X[m, n]"""
    both(text, {"X": [[1, 2, 3]], "Y": [[10, 20, 30]]}, {"A": [[73, 82, 91]], "B": [[1, 2, 3]]})


def test_sum_over_several_odd_extents() -> None:
    text = "index b = 3, c = 33, p = 7, q = 7\ninput X[b, c, p, q] : f64\noutput Y[b] = sum[c, p, q](X[b, c, p, q])"
    both(text, {"X": np.ones((3, 33, 7, 7))}, {"Y": [1617] * 3})
    data = np.arange(3)[:, None] * 10**4 + np.arange(3 * 1617).reshape(3, -1)
    both(text, {"X": data.reshape(3, 33, 7, 7)}, {"Y": data.sum(1)})


def test_one_tensor_many_times() -> None:
    text = """index m = 2, k = 3
    input a, X[m, k] : f32
    output A = a + a + a + a + a
    output B[m, k] = X[m, k] * X[m, k] * X[m, k]
    output C[m] = sum[k](X[m, k] * X[m, k])
    output D[m, k] = maximum(X[m, k], X[m, k])"""
    x = np.array([[1, -2, 3], [0, 4, -5.0]])
    both(text, {"a": -0.7491791, "X": x}, {"A": -3.7458955, "B": x**3, "C": (x * x).sum(1), "D": x})


def test_nan_passes_through_maxima() -> None:
    text = """index k = 3
    input X[k] : f32
    output A = max[k](X[k])
    output B = min[k](X[k])
    output C[k] = maximum(X[k], 1)
    output D[k] = maximum(1, X[k])
    output E[k] = relu(X[k])"""
    expected = {"A": NAN, "B": NAN, "C": [1, NAN, 2], "D": [1, NAN, 2], "E": [1, NAN, 2]}
    both(text, {"X": [1, NAN, 2]}, expected)


def test_nan_of_one_row_stays_in_it() -> None:
    text = "index m = 3, n = 2\ninput X[m, n] : f32\noutput Y[m, n] = softmax[n](X[m, n])"
    both(text, {"X": [[0, 0], [NAN, 0], [INF, 0]]}, {"Y": [[0.5, 0.5], [NAN, NAN], [NAN, NAN]]})


def test_reductions_over_nothing() -> None:
    text = """index m = 2, k = 0, l = 3
    input X[m, k], V[k, l] : f32
    output A[m] = sum[k](X[m, k])
    output B[m] = prod[k](X[m, k])
    output C[m] = max[k](X[m, k])
    output D[m] = min[k](X[m, k])
    output E[m] = logsumexp[k](X[m, k])
    output F[m] = mean[k](X[m, k])
    output G[m] = variance[k](X[m, k])
    output H[m, l] = sum[k](softmax[k](X[m, k]) * V[k, l])
    output I[m, k] = softmax[k](X[m, k])"""
    expected: dict[str, Any] = {"A": 0, "B": 1, "C": -INF, "D": INF, "E": -INF, "F": NAN, "G": NAN}
    filled = {name: [value] * 2 for name, value in expected.items()}
    both(text, {}, {**filled, "H": np.zeros((2, 3)), "I": np.zeros((2, 0))}, k=0)


def test_rows_of_minus_infinity() -> None:
    text = """index m = 1, k = 2
    input X[m, k] : f32
    output A[m] = logsumexp[k](X[m, k])
    output B[m, k] = log_softmax[k](X[m, k])
    output C[m, k] = softmax[k](X[m, k])"""
    both(text, {"X": [[-INF, -INF]]}, {"A": [-INF], "B": [[-INF, -INF]], "C": [[0, 0]]})


@pytest.mark.parametrize(("m", "k", "n"), [(4, 8, 2), (8, 4, 2), (2, 4, 8), (5, 3, 7)])
def test_unequal_blocks(m: int, k: int, n: int) -> None:
    text = f"""index m = 12, k = 8, n = 4
    block m = {m}, k = {k}, n = {n}
    input A[m, k], B[k, n], C[m, n] : f32
    output Y[m, n] = C[m, n] + sum[k](A[m, k] * B[k, n])"""
    a = np.repeat(np.arange(12)[:, None], 8, axis=1)
    expected = np.repeat(100 + 8 * np.arange(12)[:, None], 4, axis=1)
    both(text, {"A": a, "B": np.ones((8, 4)), "C": np.full((12, 4), 100)}, {"Y": expected})


@pytest.mark.parametrize(("d", "l"), [(192, 128), (5, 3), (3, 70)])
def test_values_of_another_width_than_keys(d: int, l: int) -> None:  # noqa: E741
    text = f"""index m = 7, n = 9, d = {d}, l = {l}
    input Q[m, d], K[n, d], V[n, l] : f64
    output O[m, l] = sum[n](softmax[n](sum[d](Q[m, d] * K[n, d]) / sqrt(size(d))) * V[n, l])"""
    generator = np.random.default_rng(1)
    q, k, v = generator.normal(size=(7, d)), generator.normal(size=(9, d)), generator.normal(size=(9, l))
    weights = np.exp(q @ k.T / np.sqrt(d))
    both(text, {"Q": q, "K": k, "V": v}, {"O": weights / weights.sum(1, keepdims=True) @ v}, tolerance=1e-12)


@pytest.mark.parametrize(("m", "n"), [(257, 257), (33, 64), (65537, 3), (1, 1)])
def test_plain_row_sums(m: int, n: int) -> None:
    text = f"index m = {m}, n = {n}\ninput X[m, n] : f32\noutput Y[m] = sum[n](X[m, n])"
    x = np.random.default_rng(2).integers(-9, 9, (m, n))
    both(text, {"X": x}, {"Y": x.sum(1)})


def test_grouped_heads_share_keys() -> None:
    text = """index h = 4, g = 2, m = 3, d = 5
    input Q[h, m, d], K[g, d] : f64
    output Y[h, m] = sum[d](Q[h, m, d] * K[h / 2, d])"""
    generator = np.random.default_rng(3)
    q, k = generator.normal(size=(4, 3, 5)), generator.normal(size=(2, 5))
    both(text, {"Q": q, "K": k}, {"Y": np.einsum("hmd,hd->hm", q, k.repeat(2, axis=0))}, tolerance=1e-12)


def test_hidden_operand_of_where_does_not_spread() -> None:
    text = (
        "index k = 2\ninput X[k] : f32\noutput A[k] = where(k == 0, X[k], 0)\noutput B[k] = X[k] * where(k == 0, 1, 0)"
    )
    both(text, {"X": [1, INF]}, {"A": [1, 0], "B": [1, NAN]})


def test_declared_types_round_results() -> None:
    text = """index k = 3
    input X[k] : f32
    output A[k] : bf16 = X[k]
    output B[k] : f16 = X[k]
    output C[k] : i32 = k
    output D[k] : bool = X[k] > 1"""
    found = unfused(text, {"X": [1 + 2**-9, 1 + 2**-12, 3]})
    assert [found[name].dtype.name for name in "ABCD"] == ["bfloat16", "float16", "int32", "bool"]
    assert found["A"].astype(float).tolist() == [1, 1, 3]
    assert found["B"].astype(float).tolist() == [1 + 2**-9, 1, 3]
    assert found["D"].tolist() == [True, True, True]


def test_positions_divided_and_rounded_down_are_exact() -> None:
    text = "index m = 200\noutput Y[m] = floor(m / 49)\noutput Z[m] = floor((2 * m - 99) / 3)"
    m = np.arange(200)
    both(text, {}, {"Y": m // 49, "Z": (2 * m - 99) // 3})
