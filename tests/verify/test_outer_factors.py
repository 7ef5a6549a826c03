"""Factors that stand outside a sum's indices keep their IEEE meaning in the reference."""

from __future__ import annotations

import numpy as np

from tests.array_programs import reference

TEXT = """
index m = 4, n = 2
input A[m, n], c[m] : f32
output Y[m] = sum[n](A[m, n] * c[m])
output Z[m] = sum[n](A[m, n] / c[m])
"""


def test_infinite_factor_times_terms_of_both_signs_is_nan() -> None:
    found = reference(TEXT, {"A": [[2, -1], [2, 1], [0, 1], [1, 1]], "c": [np.inf, np.inf, np.inf, np.nan]})
    np.testing.assert_array_equal(found["Y"], [np.nan, np.inf, np.nan, np.nan])
    np.testing.assert_array_equal(found["Z"], [0, 0, 0, np.nan])


def test_any_factor_times_a_sum_over_nothing_is_zero() -> None:
    found = reference(TEXT, {"A": np.zeros((4, 0)), "c": [np.inf, np.nan, 0, 1]}, n=0)
    np.testing.assert_array_equal(found["Y"], np.zeros(4))
    np.testing.assert_array_equal(found["Z"], np.zeros(4))
