"""Programs unlike the examples, each with its meaning written by hand in NumPy: what the language says works, works."""

from __future__ import annotations

from typing import Literal

import ml_dtypes
import numpy as np
import pytest

import bbrewrite
from tests.cases.forms import Case, Cases

_DRAW = np.random.default_rng(29)


def _drawn(*shape: int) -> np.ndarray:
    return _DRAW.standard_normal(shape).astype(np.float32).astype(np.float64)


def _whole(low: int, high: int, *shape: int) -> np.ndarray:
    return _DRAW.integers(low, high, shape)


def _batches_and_scalars() -> Case:
    text = """
    index b = 3, m = 5, n = 70
    input X[b, m, n], lam, mu : f32
    Y[b, m, n] = lam * X[b, m, n] - mu
    output rows[b, m] = sum[n](Y[b, m, n]) / size(n)
    output largest[b] = max[m, n](Y[b, m, n])
    output breadth = max[b, m, n](Y[b, m, n]) - min[b, m, n](Y[b, m, n])
    output loss = mean[b, m, n](Y[b, m, n]^2) * lam
    """
    x, lam, mu = _drawn(3, 5, 70), 1.5, -0.25
    y = lam * x - mu
    expected = {"rows": y.mean(2), "largest": y.max((1, 2)), "breadth": np.ptp(y), "loss": (y**2).mean() * lam}
    return Case("batches_and_scalars", text, {"X": x, "lam": lam, "mu": mu}, expected)


def _addresses() -> Case:
    text = """
    index m = 9, p = 4, q = 2, n = m
    input X[m], Y[m, p] : f64
    output shifted[m] = where(m + 2 < size(m), X[m + 2], -1)
    output strided[p] = X[2 * p] * X[2 * p + 1]
    output halves[m] = X[m / 2]
    output reversed[m, p] = Y[size(m) - 1 - m, 3 - p]
    output pooled[p] = max[q](X[2 * p + q])
    output band[m] = sum[n](where(abs(m - n) <= 1, X[n], 0))
    """
    x, y = _drawn(9), _drawn(9, 4)
    near = np.abs(np.subtract.outer(np.arange(9), np.arange(9))) <= 1
    expected = {
        "shifted": np.append(x[2:], [-1, -1]),
        "strided": x[0:8:2] * x[1:8:2],
        "halves": x[np.arange(9) // 2],
        "reversed": y[::-1, ::-1],
        "pooled": x[:8].reshape(4, 2).max(1),
        "band": near @ x,
    }
    return Case("addresses", text, {"X": x, "Y": y}, expected, tolerance=1e-12)


def _whole_numbers_and_truth() -> Case:
    text = """
    index m = 11, n = 7
    input A[m, n], D[m], E[n] : i32, B[m, n] : bool
    output counts[m] = sum[n](B[m, n])
    output hits[m] : i32 = sum[n](where(D[m] == E[n] and B[m, n], 1, 0))
    output any[m] : bool = max[n](where(B[m, n] or A[m, n] > 7, 1, 0)) == 1
    output least[m] = min[n](A[m, n] * 2 - n)
    output product[m] : i32 = prod[n](where(A[m, n] == 0, 1, minimum(A[m, n], 3)))
    output halves[m, n] : f32 = A[m, n] / 2
    output far[m, n] : bool = not (m - n < 3) and A[m, n] != 5
    """
    a, d, e, b = _whole(0, 10, 11, 7), _whole(0, 3, 11), _whole(0, 3, 7), _whole(0, 2, 11, 7).astype(bool)
    difference = np.subtract.outer(np.arange(11), np.arange(7))
    expected = {
        "counts": b.sum(1),
        "hits": ((d[:, None] == e) & b).sum(1),
        "any": (b | (a > 7)).any(1),
        "least": (a * 2 - np.arange(7)).min(1),
        "product": np.where(a == 0, 1, np.minimum(a, 3)).prod(1),
        "halves": a / 2,
        "far": ~(difference < 3) & (a != 5),
    }
    return Case("whole_numbers_and_truth", text, {"A": a, "D": d, "E": e, "B": b}, expected, tolerance=0)


def _narrow_types() -> Case:
    text = """
    index m = 6, k = 300, n = 5
    input A[m, k] : f16, B[k, n] : bf16, s : f64
    output P[m, n] : bf16 = sum[k](A[m, k] * B[k, n])
    output Q[m] = max[k](A[m, k])
    output R[m, n] : f64 = sum[k](A[m, k] * B[k, n]) * s
    output S[m] : f16 = mean[k](A[m, k] * 100)
    """
    a = _drawn(6, 300).astype(np.float16).astype(np.float64)
    b = _drawn(300, 5).astype(ml_dtypes.bfloat16).astype(np.float64)
    expected = {"P": a @ b, "Q": a.max(1), "R": a @ b * 0.5, "S": (a * 100).mean(1)}
    return Case("narrow_types", text, {"A": a, "B": b, "s": 0.5}, expected, tolerance=2e-2)


def _nested_reductions() -> Case:
    text = """
    index m = 4, n = 5, k = 66, j = 3
    input X[m, k], Y[n, k], Z[j] : f32
    output L[m] = max[n](sum[k](minimum(X[m, k], Y[n, k])) * min[j](Z[j] * n))
    output D = min[m](max[n](sum[k]((X[m, k] - Y[n, k])^2)))
    output V = variance[m](logsumexp[n](sum[k](X[m, k] * Y[n, k]) / 8))
    output P[j] = prod[m](1 + Z[j] * mean[k](X[m, k]))
    """
    x, y, z = _drawn(4, 66), _drawn(5, 66), _drawn(3)
    least = np.minimum(x[:, None], y).sum(2)
    expected = {
        "L": (least * np.multiply.outer(np.arange(5), z).min(1)).max(1),
        "D": ((x[:, None] - y) ** 2).sum(2).max(1).min(),
        "V": np.log(np.exp(x @ y.T / 8).sum(1)).var(),
        "P": (1 + np.outer(z, x.mean(1))).prod(1),
    }
    return Case("nested_reductions", text, {"X": x, "Y": y, "Z": z}, expected, tolerance=1e-4)


def _defs_calling_defs() -> Case:
    text = """
    index m = 8, n = 67
    input X[m, n], W[m, n], t : f32
    def square(x) = x * x
    def centred[k](x) = x - mean[k](x)
    def energy[k](x) = sum[k](square(centred[k](x)))
    def correlation[k](a, b) = sum[k](centred[k](a) * centred[k](b)) / sqrt(energy[k](a) * energy[k](b))
    def soft(m, t) = sign(m) * maximum(abs(m) - t, 0)
    output C[m] = correlation[n](X[m, n], W[m, n])
    output S[m, n] = soft(centred[m](X[m, n]), t)
    """
    x, w, t = _drawn(8, 67), _drawn(8, 67), 0.3
    a, b = x - x.mean(1, keepdims=True), w - w.mean(1, keepdims=True)
    c = x - x.mean(0)
    expected = {
        "C": (a * b).sum(1) / np.sqrt((a**2).sum(1) * (b**2).sum(1)),
        "S": np.sign(c) * np.maximum(np.abs(c) - t, 0),
    }
    return Case("defs_calling_defs", text, {"X": x, "W": w, "t": t}, expected)


def _convolution_and_pooling() -> Case:
    text = """
    index b = 2, c = 3, o = 5, i = 14, p = 12, t = 3, q = 4, u = 3
    input X[b, c, i] : f32
    weight W[o, c, t], bias[o] : f32
    C[b, o, p] = relu(sum[c, t](X[b, c, p + t] * W[o, c, t]) + bias[o])
    output Y[b, o, q] = max[u](C[b, o, 3 * q + u])
    """
    x, w, bias = _drawn(2, 3, 14), _drawn(5, 3, 3), _drawn(5)
    windows = np.lib.stride_tricks.sliding_window_view(x, 3, axis=2)
    conv = np.maximum(np.einsum("bcpt,oct->bop", windows, w) + bias[:, None], 0)
    expected = conv.reshape(2, 5, 4, 3).max(3)
    return Case("convolution_and_pooling", text, {"X": x, "W": w, "bias": bias}, {"Y": expected})


def _ranks_and_prefix_sums() -> Case:
    text = """
    index m = 75, n = m
    input X[m] : f32
    output rank[m] = sum[n](where(X[n] < X[m] or X[n] == X[m] and n < m, 1, 0))
    output prefix[m] = sum[n](where(n <= m, X[n], 0))
    output latest[m] = max[n](where(n <= m and X[n] > 0, n, -1))
    """
    x = np.round(_drawn(75), 1)
    seen = np.where((x > 0), np.arange(75), -1)
    expected = {
        "rank": np.argsort(np.argsort(x.astype(np.float32), kind="stable"), kind="stable"),
        "prefix": x.cumsum(),
        "latest": np.maximum.accumulate(seen),
    }
    return Case("ranks_and_prefix_sums", text, {"X": x}, expected)


def _single_positions() -> Case:
    text = """
    index a = 1, m = 1, n = 1, k = 1
    input X[a, m, n], Y[n, k] : f32
    P[a, m, n] = softmax[n](X[a, m, n])
    output O[a, m, k] = sum[n](P[a, m, n] * Y[n, k])
    output N[a, m, n] = layer_norm[m](X[a, m, n])
    output L[a] = sum[n](log_softmax[n](logsumexp[m](X[a, m, n]))) + prod[m, n](X[a, m, n])
    """
    return Case("single_positions", text, {"X": [[[2]]], "Y": [[3]]}, {"O": [[[3]]], "N": [[[0]]], "L": [2]})


def _mixed_norms() -> Case:
    text = """
    index g = 3, h = 6, m = 4, d = 5
    input X[h, m, d] : f32, scale[g] : f64
    N[h, m, d] = l2_norm[d](X[h, m, d])
    output G[g, m] = sum[h, d](where(h / 2 >= g and h / 2 < g + 1, N[h, m, d], 0)) * scale[g]
    output H[h, m] = max[d](N[h, m, d] * scale[h / 2])
    """
    x, scale = _drawn(6, 4, 5), np.array([1.0, -2.0, 0.5])
    n = x / np.sqrt((x**2).sum(2, keepdims=True))
    expected = {
        "G": n.reshape(3, 2, 4, 5).sum((1, 3)) * scale[:, None],
        "H": (n * np.repeat(scale, 2)[:, None, None]).max(2),
    }
    return Case("grouped_norms", text, {"X": x, "scale": scale}, expected)


def _rows_that_do_not_lie_dense() -> Case:
    """Results whose last axis is no block's, in every order of axes."""
    text = """
    index b = 2, m = 37, n = 5
    input X[b, m, n] : f32
    u[n] = mean[b, m](X[b, m, n])
    v[n] = mean[b, m]((X[b, m, n] - u[n])^2)
    output A[b, m, n] = relu((X[b, m, n] - u[n]) * rsqrt(v[n] + 1e-5))
    output B[m, n, b] = softmax[m](X[b, m, n])
    output C[n, b, m] = X[b, m, n] - max[n](X[b, m, n])
    output D[b, n, m] = X[b, m, n] * 2
    output E[n, m, b] = X[b, m, n] - u[n]
    output F[m, b, n] = softmax[m](X[b, m, n] * 2)
    """
    x = _drawn(2, 37, 5)

    def softmax(s: np.ndarray) -> np.ndarray:
        e = np.exp(s - s.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    centred = x - x.mean((0, 1))
    expected = {
        "A": np.maximum(centred / np.sqrt(x.var((0, 1)) + 1e-5), 0),
        "B": softmax(x).transpose(1, 2, 0),
        "C": (x - x.max(2, keepdims=True)).transpose(2, 0, 1),
        "D": 2 * x.transpose(0, 2, 1),
        "E": centred.transpose(2, 1, 0),
        "F": softmax(2 * x).transpose(1, 0, 2),
    }
    return Case("rows_that_do_not_lie_dense", text, {"X": x}, expected)


def _channels_last() -> Case:
    """Statistics of each channel over batch and places, with channels last."""
    text = """
    index b = 2, y = 14, x = 9, c = 5
    input X[b, y, x, c] : f32
    weight g[c] : f32
    u[c] = mean[b, y, x](X[b, y, x, c])
    v[c] = mean[b, y, x]((X[b, y, x, c] - u[c])^2)
    output Y[b, y, x, c] = relu((X[b, y, x, c] - u[c]) * rsqrt(v[c] + 1e-5) * g[c])
    """
    x, g = _drawn(2, 14, 9, 5), _drawn(5)
    expected = np.maximum((x - x.mean((0, 1, 2))) / np.sqrt(x.var((0, 1, 2)) + 1e-5) * g, 0)
    return Case("channels_last", text, {"X": x, "g": g}, {"Y": expected})


def _heads_last() -> Case:
    """Attention over keys and values whose heads are the last axis but one, with weights whose heads are the last."""
    text = """
    index b = 2, m = 40, n = 50, h = 3, d = 16
    input Q[b, m, h, d], K[b, n, h, d] : f32
    S[b, h, m, n] = sum[d](Q[b, m, h, d] * K[b, n, h, d]) / 4
    output P[b, m, n, h] = softmax[n](S[b, h, m, n])
    output L[m, h, b] = logsumexp[n](S[b, h, m, n])
    """
    q, k = _drawn(2, 40, 3, 16), _drawn(2, 50, 3, 16)
    e = np.exp(np.einsum("bmhd,bnhd->bmnh", q, k) / 4)
    expected = {"P": e / e.sum(2, keepdims=True), "L": np.log(e.sum(2)).transpose(1, 2, 0)}
    return Case("heads_last", text, {"Q": q, "K": k}, expected)


CASES = Cases(
    [
        _batches_and_scalars(),
        _addresses(),
        _whole_numbers_and_truth(),
        _narrow_types(),
        _nested_reductions(),
        _defs_calling_defs(),
        _convolution_and_pooling(),
        _ranks_and_prefix_sums(),
        _single_positions(),
        _mixed_norms(),
        _rows_that_do_not_lie_dense(),
        _channels_last(),
        _heads_last(),
    ]
)


@CASES.parametrize()
def test_cases(name: str, form: str) -> None:
    CASES.check(name, form)


_MONOIDS = """\
# The largest value and where it stands first.
monoid first_largest
    state    v, i
    identity -inf, inf
    element  v, i => v, i
    combine  (v1, i1), (v2, i2) => maximum(v1, v2), where(v1 > v2, i1, where(v2 > v1, i2, minimum(i1, i2)))
    finish   i
# Mean and sum of squared deviations, from counts, sums and squares about a running mean.
monoid moments
    state    n, s, q
    identity 0, 0, 0
    element  x => 1, x, 0
    combine  (n1, s1, q1), (n2, s2, q2) => n1 + n2, s1 + s2,
             q1 + q2 + where(n1 * n2 == 0, 0, (s1 * n2 - s2 * n1)^2 / maximum(n1 * n2 * (n1 + n2), 1))
    finish   q / maximum(n, 1)
"""
_WITH_MONOIDS = """\
block program with_monoids
index m = 37 by 16, n = 5
input X[m, n] : f32
output I = map m: reduce first_largest n: (X[m, n], n)
output V = map m: reduce moments n: X[m, n]
"""


@pytest.mark.parametrize("target", ["cpp", "numpy"])
def test_a_block_program_with_monoids_of_its_user(target: Literal["cpp", "numpy"]) -> None:
    program = bbrewrite.compile(_WITH_MONOIDS, rules=_MONOIDS, target=target)
    x = np.round(_drawn(37, 5), 0)
    position, variance = program(x.astype(np.float32))
    np.testing.assert_array_equal(position, x.argmax(1))
    np.testing.assert_allclose(variance, x.var(1), 1e-5, 1e-6)


_EMPTY = """\
program empty
index m, n, k
input X[m, k], Y[n, k], b[n] : f32
output S[m, n] = sum[k](X[m, k] * Y[n, k]) + b[n]
output P[m] = prod[n](b[n]) * max[k](X[m, k])
output A[m] = sum[n](softmax[n](sum[k](X[m, k] * Y[n, k])) * b[n])
output c = sum[m, k](X[m, k])
"""


@pytest.mark.parametrize("target", ["cpp", "numpy"])
def test_extents_of_nothing(target: Literal["cpp", "numpy"]) -> None:
    program = bbrewrite.compile(_EMPTY, target=target, sizes={"m": 4, "n": 3, "k": 2})
    for m, n, k in ((4, 3, 2), (0, 3, 2), (4, 0, 2), (4, 3, 0), (0, 0, 0), (1, 1, 1)):
        x, y, b = _drawn(m, k), _drawn(n, k), _drawn(n)
        with np.errstate(all="ignore"):
            s, p, a, c = program(*(array.astype(np.float32) for array in (x, y, b)))
        scores = x @ y.T
        weights = np.exp(scores)
        np.testing.assert_allclose(s, scores + b, 1e-5, 1e-5)
        np.testing.assert_allclose(p, np.prod(b) * x.max(1, initial=-np.inf), 1e-5, 1e-5)
        np.testing.assert_allclose(a, (weights * b).sum(1) / weights.sum(1) if n else np.zeros(m), 1e-5, 1e-5)
        np.testing.assert_allclose(c, x.sum(), 1e-5, 1e-5)
