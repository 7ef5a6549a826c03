"""Attention and softmax where others went wrong: rows without keys, masks of every shape, scales, and lengths.

Values are of float64; every form of a program must give them.
"""

from __future__ import annotations

import numpy as np
import pytest

from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.verify.compare import compare_output
from bbrewrite.verify.reference import evaluate
from tests.cases.forms import FORMS, Case, Cases

_Q, _K, _V = [[1, 0], [0, 1], [1, 1]], [[1, 0], [0, 2], [1, 1]], [[1, 2], [3, 4], [5, 6]]
_POWERS = [1, 2, 4, 8]
_BY_HAND = """
E[m, n] = exp(S[m, n] - max[n](S[m, n]))
P[m, n] = E[m, n] / sum[n](E[m, n])
"""


def _hidden_row(name: str, weights: str, row: float) -> Case:
    """Scores whose row 1 is all hidden."""
    text = f"""
    index m = 3, n = 3, d = 2, l = 2
    input Q[m, d], K[n, d], V[n, l] : f32, B[m, n] : bool
    S[m, n] = where(B[m, n], sum[d](Q[m, d] * K[n, d]) / sqrt(size(d)), -inf)
    {weights}
    output O[m, l] = sum[n](P[m, n] * V[n, l])
    """
    visible = [[1, 1, 1], [0, 0, 0], [1, 1, 1]]
    expected = [[3, 4], [row, row], [3.406672556, 4.406672556]]
    return Case(name, text, {"Q": _Q, "K": _K, "V": _V, "B": visible}, {"O": expected}, kernels=1)


def _positions(name: str, condition: str, m: int, n: int, expected: list[float]) -> Case:
    """Equal scores, hidden by position: means of the visible values."""
    text = f"""
    index m = {m}, n = {n}, d = 3
    input Q[m, d], K[n, d], V[n] : f32
    S[m, n] = where({condition}, sum[d](Q[m, d] * K[n, d]) / sqrt(size(d)), -inf)
    output O[m] = sum[n](softmax[n](S[m, n]) * V[n])
    """
    return Case(name, text, {"Q": np.zeros((m, 3)), "V": _POWERS[:n]}, {"O": expected}, kernels=1)


def _merged(name: str, visible_parts: int) -> Case:
    """Keys in four parts, each a softmax of its own, merged by their logarithms of sums."""
    text = f"""
    index p = 4, n = 5, l = 3
    input S[p, n], V[p, n, l] : f32
    T[p, n] = where(p < {4 - visible_parts}, -inf, S[p, n])
    L[p] = logsumexp[n](T[p, n])
    O[p, l] = sum[n](softmax[n](T[p, n]) * V[p, n, l])
    output R[l] = sum[p](softmax[p](L[p]) * O[p, l])
    output Z = logsumexp[p](L[p])
    """
    draw = np.random.default_rng(3)
    s, v = draw.standard_normal((4, 5)), draw.standard_normal((4, 5, 3))
    s, v = s.astype(np.float32).astype(np.float64), v.astype(np.float32).astype(np.float64)
    weights = np.exp(s) * (np.arange(4) >= 4 - visible_parts)[:, None]
    total = weights.sum()
    result = np.einsum("pn,pnl->l", weights, v) / total if total else np.zeros(3)
    with np.errstate(divide="ignore"):
        return Case(name, text, {"S": s, "V": v}, {"R": result, "Z": np.log(total)})


_PADDED = """
index m = 129, n = 129, d = 2
block m = 64, n = 64
input Q[m, d], K[n, d], V[n] : f32
output O[m] = sum[n](softmax[n](sum[d](Q[m, d] * K[n, d])) * V[n])
"""


def _scale(name: str, scale: str, expected: float) -> Case:
    text = f"""
    index m = 1, n = 2, d = 4
    input Q[m, d], K[n, d], V[n], z : f32
    S[m, n] = sum[d](Q[m, d] * K[n, d]) {scale}
    output O[m] = sum[n](softmax[n](S[m, n]) * V[n])
    """
    inputs = {"Q": [[1] * 4], "K": [[1] * 4, [0] * 4], "V": [1, 0], "z": -0.5}
    return Case(name, text, inputs, {"O": [expected]}, kernels=1)


def _documents(name: str, queries: list[int], keys: list[int]) -> Case:
    """Positions packed in documents, some of which have no keys: equal scores, so means of what a document has."""
    text = f"""
    index m = {len(queries)}, n = {len(keys)}, d = 3
    block m = 8, n = 8
    input Q[m, d], K[n, d], V[n] : f32, D[m], F[n] : i32
    S[m, n] = where(D[m] == F[n], sum[d](Q[m, d] * K[n, d]), -inf)
    output O[m] = sum[n](softmax[n](S[m, n]) * V[n])
    """
    of_keys = {document: [n for n, other in enumerate(keys) if other == document] for document in queries}
    expected = [np.mean(of_keys[document]) if of_keys[document] else 0 for document in queries]
    inputs = {"Q": np.zeros((len(queries), 3)), "V": np.arange(len(keys)), "D": queries, "F": keys}
    return Case(name, text, inputs, {"O": expected}, kernels=1)


CASES = Cases(
    [
        _hidden_row("hidden_row_library", "P[m, n] = softmax[n](S[m, n])", 0),
        _hidden_row("hidden_row_by_hand", _BY_HAND, np.nan),
        *(_merged(f"merged_{parts}_visible", parts) for parts in (0, 1, 2, 4)),
        _positions("causal_from_top_left", "n <= m", 2, 4, [1, 1.5]),
        _positions("causal_from_bottom_right", "n <= m + 2", 2, 4, [7 / 3, 3.75]),
        _positions("causal_with_more_queries", "n <= m - 2", 4, 2, [0, 0, 1, 1.5]),
        _positions("holes", "n == 1 or n == 3", 2, 4, [5, 5]),
        _positions("last_key_only", "n == size(n) - 1", 1, 4, [8]),
        _documents("documents", [0] * 9 + [1] * 9 + [3] * 9 + [7] * 2, [0] * 5 + [2] * 12 + [3] * 9 + [6]),
        _documents("documents_in_any_order", [3, 0, 1, 0, 3, 5] * 4, [0, 3, 2, 0, 0, 3, 3] * 3),
        Case("padded", _PADDED, {"Q": np.zeros((129, 2)), "V": np.ones(129)}, {"O": 1}, kernels=1, tolerance=1e-6),
        _scale("scale_half", "* 0.5", 0.880797078),
        _scale("scale_two", "* 2", 0.999664650),
        _scale("scale_of_the_library", "/ sqrt(size(d))", 0.880797078),
        _scale("scale_input", "* z", 0.119202922),
        _scale("scale_negative", "* -2", 1 - 0.999664650),
        _scale("scale_none", "", 1 / (1 + np.exp(-4))),
    ]
)


@CASES.parametrize()
def test_cases(name: str, form: str) -> None:
    CASES.check(name, form)


@pytest.mark.parametrize("form", FORMS)
def test_padding_of_blocks_is_never_counted(form: str) -> None:
    lengths = (1, 63, 65, 127, 137, 1025)
    for m, n in [*((m, 129) for m in lengths), *((7, n) for n in lengths)]:
        found = CASES.run("padded", form, {"Q": np.zeros((m, 2)), "V": np.ones(n)}, {"m": m, "n": n})["O"]
        np.testing.assert_allclose(found, np.ones(m), 1e-6, err_msg=f"m = {m}, n = {n}")


_OVERFLOWS = {
    # Scores that fit after scaling and not before, stored as f16 where nothing is fused.
    "logits": """
    index m = 2, n = 2, d = 64
    input Q[m, d], K[n, d], V[n] : f16
    S[m, n] = sum[d](Q[m, d] * K[n, d])
    T[m, n] = S[m, n] / 8
    output O[m] = sum[n](softmax[n](T[m, n]) * V[n])
    """,
    # Scaling before the maximum is taken overflows, after it does not.
    "scale": """
    index m = 1, n = 2
    input X[m, n], z : f32
    output O[m, n] = softmax[n](X[m, n] * z)
    """,
}


@pytest.mark.parametrize(
    ("which", "inputs", "right"),
    [
        ("logits", {"Q": np.full((2, 64), 40), "K": np.full((2, 64), 40), "V": [1, 3]}, [2, 2]),
        ("scale", {"X": [[1e30, 2e30]], "z": 1e10}, [[0, 1]]),
    ],
)
def test_an_overflow_that_fusion_avoids_is_said_and_not_called_wrong(which: str, inputs, right) -> None:
    case = Case(which, _OVERFLOWS[which], inputs, {})
    planned = case.planned("fused")
    tensors = planned.array.inputs
    arrays = {tensor.name: np.asarray(inputs[tensor.name], tensor.element.numpy_type) for tensor in tensors}
    with np.errstate(all="ignore"):
        unfused, fused = (
            run_kernels(case.planned(form).plan.kernels, arrays, planned.extents, planned.table)["O"]
            for form in ("unfused", "fused")
        )
        exact = evaluate(planned.array, arrays, planned.extents, planned.table)["O"]
    np.testing.assert_allclose(exact, right)
    assert np.isnan(unfused).all(), "the unfused program overflows"
    found = compare_output("O", planned.block.outputs[0].element, fused, unfused, exact, False)
    assert found.ok
    (remark,) = found.remarks
    expected = "fusion avoids an overflow" if np.isfinite(fused).all() else "fused and unfused alike"
    assert expected in remark
    if np.isfinite(fused).all():
        np.testing.assert_allclose(fused.astype(np.float64), right)
