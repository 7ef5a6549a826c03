"""What users ask for: other weights after a softmax, biases, odd widths and reductions, blocks of models, same bits."""

from __future__ import annotations

import numpy as np
import pytest

import bbrewrite
from bbrewrite.api import stages
from tests.cases.forms import Case, Cases

_DRAW = np.random.default_rng(11)


def _drawn(*shape: int) -> np.ndarray:
    return _DRAW.standard_normal(shape).astype(np.float32).astype(np.float64)


def _softmax(x: np.ndarray) -> np.ndarray:
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def _rms(x: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5)


def _widths(d: int, l: int) -> Case:  # noqa: E741
    text = f"""
    index m = 7, n = 13, d = {d}, l = {l}
    input Q[m, d], K[n, d], V[n, l] : f32
    S[m, n] = sum[d](Q[m, d] * K[n, d]) / sqrt(size(d))
    output O[m, l] = sum[n](softmax[n](S[m, n]) * V[n, l])
    """
    q, k, v = _drawn(7, d), _drawn(13, d), _drawn(13, l)
    expected = _softmax(q @ k.T / np.sqrt(d)) @ v
    return Case(f"widths_{d}_{l}", text, {"Q": q, "K": k, "V": v}, {"O": expected}, kernels=1)


def _row_sums(m: int, n: int) -> Case:
    text = f"""
    index m = {m}, n = {n}
    input X[m, n] : f32
    output Y[m] = sum[n](X[m, n])
    """
    x = _DRAW.integers(-8, 9, (m, n))
    return Case(f"row_sums_{m}_{n}", text, {"X": x}, {"Y": x.sum(axis=1)}, kernels=1, tolerance=0)


def _rms_norm_and_product() -> Case:
    text = """
    index m = 2, k = 200, n = 300
    input X[m, k] : f32
    weight W[k, n], g[k] : f32
    output Y[m, n] = sum[k](rms_norm[k](X[m, k]) * g[k] * W[k, n])
    """
    x, w, g = _drawn(2, 200), _drawn(200, 300) / 14, _drawn(200)
    return Case("rms_norm_and_product", text, {"X": x, "W": w, "g": g}, {"Y": _rms(x) * g @ w}, kernels=1)


def _low_rank_adapter() -> Case:
    text = """
    index m = 5, k = 70, n = 66, r = 4
    input X[m, k] : f32
    weight W[k, n], A[k, r], B[r, n] : f32
    D[m, r] = sum[k](X[m, k] * A[k, r])
    output Y[m, n] = sum[k](X[m, k] * W[k, n]) + 0.5 * sum[r](D[m, r] * B[r, n])
    """
    x, w, a, b = _drawn(5, 70), _drawn(70, 66), _drawn(70, 4), _drawn(4, 66)
    return Case("low_rank_adapter", text, {"X": x, "W": w, "A": a, "B": b}, {"Y": x @ w + 0.5 * (x @ a) @ b})


def _normalised_grouped_heads() -> Case:
    text = """
    index h = 4, g = 2, m = 6, n = 9, d = 8, l = 8
    input Q[h, m, d], K[g, n, d], V[g, n, l] : f32
    A[h, m, d] = rms_norm[d](Q[h, m, d])
    B[g, n, d] = rms_norm[d](K[g, n, d])
    S[h, m, n] = where(n <= m + 3, sum[d](A[h, m, d] * B[h / 2, n, d]) / sqrt(size(d)), -inf)
    output O[h, m, l] = sum[n](softmax[n](S[h, m, n]) * V[h / 2, n, l])
    """
    q, k, v = _drawn(4, 6, 8), _drawn(2, 9, 8), _drawn(2, 9, 8)
    heads = np.arange(4) // 2
    scores = np.einsum("hmd,hnd->hmn", _rms(q), _rms(k)[heads]) / np.sqrt(8)
    scores = np.where(np.arange(9) <= np.arange(6)[:, None] + 3, scores, -np.inf)
    expected = np.einsum("hmn,hnl->hml", _softmax(scores), v[heads])
    return Case("normalised_grouped_heads", text, {"Q": q, "K": k, "V": v}, {"O": expected})


def _mixture_of_experts() -> Case:
    """Each row goes to its two best experts of four, by position of the largest gates; ties do not occur."""
    text = """
    index m = 5, k = 12, e = 4, f = 10, n = 6
    input X[m, k] : f32
    weight G[k, e], W[e, k, f], U[e, f, n] : f32
    L[m, e] = sum[k](X[m, k] * G[k, e])
    A[m] = max[e](L[m, e])
    B[m] = max[e](where(L[m, e] < A[m], L[m, e], -inf))
    P[m, e] = softmax[e](where(L[m, e] >= B[m], L[m, e], -inf))
    H[e, m, f] = silu(sum[k](X[m, k] * W[e, k, f]))
    T[e, m, n] = sum[f](H[e, m, f] * U[e, f, n])
    output Y[m, n] = sum[e](P[m, e] * T[e, m, n])
    """
    x, g, w, u = _drawn(5, 12), _drawn(12, 4), _drawn(4, 12, 10), _drawn(4, 10, 6)
    gates = x @ g
    second = np.sort(gates, axis=1)[:, -2:-1]
    weights = _softmax(np.where(gates >= second, gates, -np.inf))
    hidden = np.einsum("mk,ekf->emf", x, w)
    expected = np.einsum("me,emf,efn->mn", weights, hidden / (1 + np.exp(-hidden)), u)
    return Case("mixture_of_experts", text, {"X": x, "G": g, "W": w, "U": u}, {"Y": expected}, tolerance=1e-4)


CASES = Cases(
    [
        Case(
            "squared_weights",
            """
            index m = 1, n = 2
            input S[m, n], V[n] : f32
            P[m, n] = softmax[n](S[m, n])
            output O[m] = sum[n](P[m, n]^2 * V[n])
            """,
            {"S": [[0, np.log(3)]], "V": [4, 8]},
            {"O": 4.75},
            kernels=1,
        ),
        *(_widths(*widths) for widths in ((192, 128), (576, 512), (5, 3), (3, 70))),
        *(_row_sums(*extents) for extents in ((257, 257), (33, 64), (65537, 64), (1, 1))),
        _rms_norm_and_product(),
        _low_rank_adapter(),
        _normalised_grouped_heads(),
        _mixture_of_experts(),
    ]
)


@CASES.parametrize()
def test_cases(name: str, form: str) -> None:
    CASES.check(name, form)


_BIASED = """\
program biased
index h = 2, m, n, d = 4
input Q[h, m, d], K[h, n, d], V[h, n, d], bias[h, m, n] : f32
S[h, m, n] = sum[d](Q[h, m, d] * K[h, n, d]) / sqrt(size(d)) + bias[h, m, n]
output O[h, m, d] = sum[n](softmax[n](S[h, m, n]) * V[h, n, d])
"""


def test_a_bias_is_an_input_and_neither_it_nor_open_extents_rebuild(monkeypatch: pytest.MonkeyPatch) -> None:
    program = bbrewrite.compile(_BIASED, sizes={"m": 10, "n": 20})
    monkeypatch.setattr(stages, "build", lambda *_: pytest.fail("compiled again"))
    for m, n in ((10, 20), (3, 70)):
        q, k, v, bias = _drawn(2, m, 4), _drawn(2, n, 4), _drawn(2, n, 4), _drawn(2, m, n)
        expected = _softmax(q @ k.transpose(0, 2, 1) / 2 + bias) @ v
        found = program(*(array.astype(np.float32) for array in (q, k, v, bias)))
        np.testing.assert_allclose(found, expected, 1e-5, 1e-5)


@pytest.mark.parametrize("form", ["unfused cpp", "fused cpp"])
def test_the_same_bits_twice(form: str) -> None:
    for case in CASES.by_name.values():
        first, second = (CASES.run(case.name, form, case.inputs, {}) for _ in range(2))
        assert all(np.array_equal(first[name], second[name]) for name in first), case.name
