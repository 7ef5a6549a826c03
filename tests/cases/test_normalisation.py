"""Normalisation and variance where others went wrong: cancellation, squares that overflow, eps, and tails of blocks."""

from __future__ import annotations

import numpy as np

from tests.cases.forms import Case, Cases

_NEIGHBOURS = np.array([[40000, 40001, 40002, 40003]])
_NORMALISED = np.array([[-1.341635420, -0.447211807, 0.447211807, 1.341635420]])


def _ragged(k: int, block: int) -> Case:
    """1 to k in blocks that do not divide k, one of them a tail."""
    text = f"""
    index k = {k}
    block k = {block}
    input X[k] : f32
    output A = mean[k](X[k])
    output B = variance[k](X[k])
    output C[k] = layer_norm[k](X[k], eps = 0)
    """
    x = np.arange(1, k + 1)
    normalised = (x - x.mean()) / np.sqrt(x.var()) if k > 1 else np.nan
    return Case(f"ragged_{k}_{block}", text, {"X": x}, {"A": x.mean(), "B": x.var(), "C": normalised})


CASES = Cases(
    [
        Case(
            "neighbours",
            """
            index m = 1, k = 4
            input X[m, k] : f32
            output Y[m, k] = layer_norm[k](X[m, k], eps = 1e-5)
            output V[m] = variance[k](X[m, k])
            """,
            {"X": _NEIGHBOURS},
            {"Y": _NORMALISED, "V": 1.25},
        ),
        Case(
            "neighbours_then_product",
            """
            index m = 1, k = 4, n = 2
            input X[m, k] : f32
            weight W[k, n] : f32
            output Y[m, n] = sum[k](layer_norm[k](X[m, k], eps = 1e-5) * W[k, n])
            """,
            {"X": _NEIGHBOURS, "W": [[1, 0], [0, 1], [0, 0], [1, 1]]},
            {"Y": [[0, -0.447211807 + 1.341635420]]},
            kernels=1,
        ),
        Case(
            "squares_in_f16",
            """
            index m = 2, k = 64
            input X[m, k] : f16
            output Y[m, k] = rms_norm[k](X[m, k])
            """,
            {"X": np.full((2, 64), 300)},
            {"Y": 1},
            tolerance=1e-3,
        ),
        Case(
            "squares_in_f16_then_product",
            """
            index m = 2, k = 64, n = 3
            input X[m, k] : f16
            weight W[k, n] : f16
            output Y[m, n] = sum[k](rms_norm[k](X[m, k]) * W[k, n])
            """,
            {"X": np.full((2, 64), 300), "W": np.full((64, 3), 0.5)},
            {"Y": 32},
            kernels=1,
            tolerance=2e-3,
        ),
        Case(
            "eps_inside_and_outside_the_root",
            """
            index k = 4
            input X[k] : f32
            output A[k] = rms_norm[k](X[k], eps = 1e-6)
            output B[k] = X[k] / (sqrt(mean[k](X[k]^2)) + 1e-6)
            output C[k] = X[k] / sqrt(mean[k](X[k]^2) + 1e-6)
            """,
            {"X": [1e-3] * 4},
            {"A": 0.707106781, "B": 0.999000999, "C": 0.707106781},
        ),
        _ragged(9, 4),
        _ragged(12, 5),
        _ragged(1, 4),
        Case(
            "one_entry",
            """
            index k = 1
            input X[k] : f32
            output V = variance[k](X[k])
            output Y[k] = layer_norm[k](X[k])
            """,
            {"X": [7]},
            {"V": 0, "Y": 0},
        ),
    ]
)


@CASES.parametrize()
def test_cases(name: str, form: str) -> None:
    CASES.check(name, form)
