"""Fusion where others went wrong: aliasing, shared operands, NaN, reductions over nothing, and unequal blocks."""

from __future__ import annotations

import itertools
from typing import Literal

import numpy as np
import pytest

import bbrewrite
from tests.cases.forms import FORMS, Case, Cases

_NAN, _INF = np.nan, np.inf
_ODD = np.arange(3)[:, None] * 10**4 + np.arange(3 * 1617).reshape(3, -1)
_A = -0.7491791


def _blocks(m: int, k: int, n: int) -> Case:
    """A product and a sum, all extents and block sizes different."""
    text = f"""
    index m = 12, k = 8, n = 4
    block m = {m}, k = {k}, n = {n}
    input A[m, k], C[m, n] : f32
    weight B[k, n] : f32
    output Y[m, n] = sum[k](A[m, k] * B[k, n]) + C[m, n]
    """
    a = np.broadcast_to(np.arange(12)[:, None], (12, 8))
    inputs = {"A": a, "B": np.ones((8, 4)), "C": np.full((12, 4), 100)}
    expected = np.broadcast_to(100 + 8 * np.arange(12)[:, None], (12, 4))
    return Case(f"blocks_{m}_{k}_{n}", text, inputs, {"Y": expected}, kernels=1)


CASES = Cases(
    [
        Case(
            "read_backwards_beside_an_output",
            """
            index m = 1, n = 3
            input X[m, n], Y[m, n] : f32
            output A[m, n] = X[m, 2 - n] + (Y[m, n] + sum[n](Y[m, n]))
            output B[m, n] = X[m, n]
            """,
            {"X": [[1, 2, 3]], "Y": [[10, 20, 30]]},
            {"A": [[73, 82, 91]], "B": [[1, 2, 3]]},
        ),
        Case(
            "odd_products_of_extents",
            """
            index b = 3, c = 33, p = 7, q = 7
            input X[b, c, p, q], D[b, c, p, q] : f64
            output Y[b] = sum[c, p, q](X[b, c, p, q])
            output Z[b] = sum[c, p, q](D[b, c, p, q])
            """,
            {"X": np.ones((3, 33, 7, 7)), "D": _ODD.reshape(3, 33, 7, 7)},
            {"Y": 1617, "Z": _ODD.sum(axis=1)},
        ),
        Case(
            "one_tensor_many_times",
            """
            index m = 1, k = 2
            input a, X[m, k] : f32
            output A = a + a + a + a + a
            output C = a * a * a
            output D[m] = sum[k](X[m, k] * X[m, k])
            output M = maximum(a, a)
            output N[m, k] = X[m, k] - X[m, k] + X[m, k] * 1
            """,
            {"a": _A, "X": [[3, 4]]},
            {"A": -3.7458956, "C": _A**3, "D": 25, "M": _A, "N": [[3, 4]]},
        ),
        Case(
            "exponentials_of_opposite_numbers",
            """
            index m = 2
            input A[m], B[m] : f32
            output Y[m] = exp(A[m] + B[m])
            output Z[m] = exp(A[m]) * exp(-A[m])
            """,
            {"A": [100, 3], "B": [-100, -3]},
            # Multiplied out, 1 may become inf for 100; the sum of exponents never may.
            {"Y": 1},
        ),
        Case(
            "infinities_in_hidden_operands",
            """
            index m = 4
            input X[m] : f32, C[m] : bool
            output Y[m] = where(C[m], X[m], 0)
            output Z[m] = where(C[m], 1, 0) * X[m]
            """,
            {"X": [2, _INF, _NAN, _INF], "C": [1, 0, 0, 1]},
            {"Y": [2, 0, 0, _INF], "Z": [2, _NAN, _NAN, _INF]},
        ),
        Case(
            "zero_times_what_is_not_finite",
            """
            index m = 3
            input X[m] : f32
            output Y[m] = X[m] * 0
            output Z[m] = X[m] - X[m]
            """,
            {"X": [2, _INF, _NAN]},
            {"Y": [0, _NAN, _NAN], "Z": [0, _NAN, _NAN]},
        ),
        Case(
            "nan_through_maxima",
            """
            index m = 2, n = 3
            input X[m, n], a : f32
            output A = maximum(a, 1)
            output B = maximum(1, a)
            output C = minimum(a, 1) + minimum(1, a)
            output D = relu(a)
            output E[m] = max[n](X[m, n])
            output F[m] = min[n](X[m, n])
            output G[m] = max[n](relu(X[m, n] - 1) * 2)
            """,
            {"X": [[1, _NAN, 2], [1, 5, 2]], "a": _NAN},
            {"A": _NAN, "B": _NAN, "C": _NAN, "D": _NAN, "E": [_NAN, 5], "F": [_NAN, 1], "G": [_NAN, 8]},
        ),
        Case(
            "clamped",
            """
            index m = 4
            input X[m] : f32
            def clamp(x, low, high) = maximum(low, minimum(high, x))
            output A[m] = clamp(X[m], -1, 1)
            output B[m] = where(X[m] > 1, 1, where(X[m] < -1, -1, X[m]))
            output C = max[m](abs(X[m]))
            """,
            {"X": [2, _NAN, -_INF, 0.5]},
            {"A": [1, _NAN, -1, 0.5], "B": [1, _NAN, -1, 0.5], "C": _NAN},
        ),
        *(_blocks(*blocks) for blocks in itertools.permutations((4, 8, 2))),
        _blocks(5, 3, 3),
    ]
)


@CASES.parametrize()
def test_cases(name: str, form: str) -> None:
    CASES.check(name, form)


@pytest.mark.parametrize("form", FORMS)
def test_separate_exponentials_are_one_or_what_ieee_gives(form: str) -> None:
    case = CASES.by_name["exponentials_of_opposite_numbers"]
    found = CASES.run(case.name, form, case.inputs, {})["Z"]
    assert found[0] == pytest.approx(1, rel=1e-5) or not np.isfinite(found[0])
    assert found[1] == pytest.approx(1, rel=1e-5)


_NOTHING = """\
program nothing
index m = 2, n
input X[m, n] : f32
output S[m] = sum[n](X[m, n])
output P[m] = prod[n](X[m, n])
output A[m] = max[n](X[m, n])
output I[m] = min[n](X[m, n])
output L[m] = logsumexp[n](X[m, n])
output M[m] = mean[n](X[m, n])
output V[m] = variance[n](X[m, n])
output R[m] = exp(max[n](X[m, n])) + 2 * sum[n](X[m, n])
"""


@pytest.mark.parametrize("target", ["cpp", "numpy"])
@pytest.mark.parametrize("rules", [None, ()])
def test_reductions_over_nothing(target: Literal["cpp", "numpy"], rules: tuple[()] | None) -> None:
    program = bbrewrite.compile(_NOTHING, target=target, rules=rules, sizes={"n": 0})
    found = [np.asarray(array) for array in program(np.zeros((2, 0), np.float32))]
    for array, expected in zip(found, (0, 1, -_INF, _INF, -_INF, _NAN, _NAN, 0), strict=True):
        np.testing.assert_array_equal(array, [expected] * 2)
