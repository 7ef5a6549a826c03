"""The reference: declared work, contractions and memory."""

from __future__ import annotations

import numpy as np
import pytest

from bbrewrite.verify.labelled import contract
from bbrewrite.verify.reference import Working, evaluate
from tests.array_programs import TABLE, draw_inputs, extents_of, program, reference


def test_declared_work_rounds_every_definition() -> None:
    parsed = program("index k = 1\ninput X[k] : f16\nA[k] = X[k] * X[k]\noutput B[k] = A[k] / X[k]")
    arrays = {"X": np.array([300], np.float16)}
    exact = evaluate(parsed, arrays, {"k": 1}, TABLE)
    declared = evaluate(parsed, arrays, {"k": 1}, TABLE, Working.DECLARED)
    assert exact["B"] == 300
    assert np.isinf(declared["A"]).all()
    assert declared["B"].dtype == np.float16


def test_declared_sums_of_f16_accumulate_in_f32() -> None:
    parsed = program("index k = 4096\ninput X[k] : f16\noutput A : f32 = sum[k](X[k])\noutput B = mean[k](X[k])")
    arrays = {"X": np.full(4096, 30, np.float16)}
    declared = evaluate(parsed, arrays, {"k": 4096}, TABLE, Working.DECLARED)
    assert declared["A"] == 4096 * 30
    assert declared["B"] == 30


def test_exact_work_is_f64_for_integers_too() -> None:
    text = "index k = 3\ninput T[k] : i32\noutput A[k] = T[k] / 3\noutput B = sum[k](T[k] * T[k])"
    found = reference(text, {"T": [1, 2, 2**16]})
    assert found["A"].tolist() == [1 / 3, 2 / 3, 2**16 / 3]
    assert found["B"] == 5 + 2**32


@pytest.mark.parametrize("factors", ["mk kn", "mk nk k", "bmk bnk", "m k n", "mk kj jn mn"])
def test_contractions_agree_with_einsum(factors: str) -> None:
    names = factors.split()
    lengths = {"b": 2, "m": 3, "n": 4, "k": 5, "j": 1}
    generator = np.random.default_rng(0)
    arrays = [generator.normal(size=[lengths[name] for name in own]) for own in names]
    result, result_names = contract(
        [(a, tuple(own)) for a, own in zip(arrays, names, strict=True)], frozenset("kj") & set(factors)
    )
    kept = "".join(result_names)
    np.testing.assert_allclose(result, np.einsum(f"{','.join(names)}->{kept}", *arrays), rtol=1e-12)


def test_three_indices_that_are_no_product_fit_in_memory() -> None:
    text = """index m = 300, n = 300, k = 300
    input A[m, k], B[k, n] : f32
    output Y[m, n] = sum[k](abs(A[m, k] - B[k, n]))"""
    parsed = program(text)
    arrays = draw_inputs(parsed, extents_of(parsed))
    found = evaluate(parsed, arrays, extents_of(parsed), TABLE)["Y"]
    a, b = arrays["A"].astype(float), arrays["B"].astype(float)
    for m in (0, 150, 299):
        np.testing.assert_allclose(found[m], np.abs(a[m][:, None] - b).sum(0), rtol=1e-12)
