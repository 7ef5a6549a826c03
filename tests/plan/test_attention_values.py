"""Small programs with known values: what attention and normalisation must give, fused or not."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, log, nan
from typing import Any

import numpy as np
import pytest

from bbrewrite.fuzz.evaluate import FloatDomain, evaluate_local
from bbrewrite.interpret.kernels import run_kernels
from tests.plan.pipelines import NO_RULES, plan_text, shipped_rules


@dataclass(frozen=True)
class Known:
    """A program, its inputs, and the values of its output O; `kernels` of the fused plan, where it is told."""

    text: str
    inputs: dict[str, Any]
    output: Any
    kernels: int | None = 1
    tolerance: float = 1e-6
    sizes: dict[str, int] = field(default_factory=dict[str, int])


def attention(mask: str, weights: str = "softmax[n](C[m, n])", scale: str = "1 / sqrt(2)") -> str:
    return f"""\
index m = 3, n = 3, d = 2, l = 2
input Q[m, d], K[n, d], V[n, l] : f32, H[m, n] : bool
S[m, n] = sum[d](Q[m, d] * K[n, d]) * ({scale})
C[m, n] = where({mask}, S[m, n], -inf)
output O[m, l] = sum[n]({weights} * V[n, l])
"""


_QKV = {"Q": [[1, 0], [0, 1], [1, 1]], "K": [[1, 0], [0, 2], [1, 1]], "V": [[1, 2], [3, 4], [5, 6]]}
_ROW_HIDDEN = {**_QKV, "H": [[1, 1, 1], [0, 0, 0], [1, 1, 1]]}
_BY_HAND = "exp(C[m, n] - max[n](C[m, n])) / sum[n](exp(C[m, n] - max[n](C[m, n])))"


def mean_of_visible(mask: str, m: int, n: int, values: list[list[float]], expected: list[Any]) -> Known:
    """Where all scores are equal, attention is the mean of what is visible."""
    inputs = {"Q": np.zeros((m, 2)), "K": np.zeros((n, 2)), "V": values, "H": np.ones((m, n))}
    return Known(attention(mask), inputs, expected, sizes={"m": m, "n": n, "l": len(values[0])})


_POWERS = [[1.0], [2.0], [4.0], [8.0]]
_MOMENTS = "index m = 1, k = 4\ninput X[m, k] : f32\n"

KNOWN = {
    "hidden row, library": Known(attention("H[m, n]"), _ROW_HIDDEN, [[3, 4], [0, 0], [3.406672556, 4.406672556]]),
    "hidden row, by hand": Known(
        attention("H[m, n]", _BY_HAND), _ROW_HIDDEN, [[3, 4], [nan, nan], [3.406672556, 4.406672556]]
    ),
    "causal from the first": mean_of_visible("n <= m", 2, 4, _POWERS, [[1], [1.5]]),
    "causal from the last": mean_of_visible("n <= m + size(n) - size(m)", 2, 4, _POWERS, [[7 / 3], [3.75]]),
    "more queries than keys": mean_of_visible("n <= m - 2", 4, 2, _POWERS[:2], [[0], [0], [1], [1.5]]),
    "holes": mean_of_visible("n / 2 != floor(n / 2)", 2, 4, _POWERS, [[5], [5]]),
    **{f"{n} keys": mean_of_visible("H[m, n]", 1, n, [[1.0]] * n, [[1]]) for n in (1, 63, 65, 127, 129, 137)},
    **{
        f"scale {scale}": Known(
            attention("H[m, n]", scale=scale),
            {"Q": [[1] * 4], "K": [[1] * 4, [0] * 4], "V": [[1], [0]], "H": np.ones((1, 2))},
            [[value]],
            sizes={"m": 1, "n": 2, "d": 4, "l": 1},
        )
        for scale, value in (("0.5", 0.880797078), ("2", 0.999664650), ("-0.5", 1 - 0.880797078))
    },
    "squared weights": Known(
        attention("H[m, n]", "softmax[n](C[m, n]) ^ 2", "1"),
        {"Q": [[1, 0]], "K": [[0, 0], [log(3), 0]], "V": [[4], [8]], "H": np.ones((1, 2))},
        [[4.75]],
        sizes={"m": 1, "n": 2, "l": 1},
    ),
    "values wider than keys": Known(
        attention("H[m, n]"),
        {"Q": np.zeros((2, 3)), "K": np.zeros((4, 3)), "V": np.tile(_POWERS, 5), "H": np.ones((2, 4))},
        np.full((2, 5), 3.75),
        sizes={"m": 2, "n": 4, "d": 3, "l": 5},
    ),
    "neighbours at 40000": Known(
        f"{_MOMENTS}output O[m, k] = layer_norm[k](X[m, k])",
        {"X": [[40000, 40001, 40002, 40003]]},
        [[-1.341635420, -0.447211807, 0.447211807, 1.341635420]],
    ),
    "unequal parts": Known(
        f"{_MOMENTS}output O[m] = variance[k](X[m, k])", {"X": [range(1, 10)]}, [20 / 3], sizes={"k": 9}
    ),
    "one sample": Known(f"{_MOMENTS}output O[m] = variance[k](X[m, k])", {"X": [[5]]}, [0], sizes={"k": 1}),
    "no sample": Known(
        f"{_MOMENTS}output O[m] = variance[k](X[m, k])", {"X": np.zeros((1, 0))}, [nan], sizes={"k": 0}, kernels=None
    ),
    "no logit": Known(
        f"{_MOMENTS}output O[m] = logsumexp[k](X[m, k])", {"X": np.zeros((1, 0))}, [-inf], sizes={"k": 0}, kernels=None
    ),
    "epsilon inside the root": Known(
        f"{_MOMENTS}output O[m, k] = rms_norm[k](X[m, k], eps = 1e-6)", {"X": [[1e-3] * 4]}, [[0.707106781] * 4]
    ),
    "epsilon beside the root": Known(
        f"{_MOMENTS}output O[m, k] = X[m, k] / (sqrt(mean[k](X[m, k] * X[m, k])) + 1e-6)",
        {"X": [[1e-3] * 4]},
        [[0.999000999] * 4],
    ),
    "squares beyond f16": Known(
        "index m = 1, k = 4, n = 1\ninput X[m, k], W[k, n] : f16\nH[m, k] = rms_norm[k](X[m, k])\n"
        "output O[m, n] = sum[k](H[m, k] * W[k, n])",
        {"X": [[300] * 4], "W": [[1]] * 4},
        [[4]],
        tolerance=1e-3,
    ),
    "products of exponentials": Known(
        "index m = 2\ninput X[m], Y[m] : f64\noutput O[m] = exp(X[m]) * exp(Y[m])",
        {"X": [100, 1], "Y": [-100, 1]},
        [1, 7.389056099],
    ),
}


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("name", KNOWN)
def test_value(name: str, fused: bool) -> None:
    known = KNOWN[name]
    planned = plan_text(
        f"program known\n{known.text}\n", shipped_rules() if fused else NO_RULES, block=4, **known.sizes
    )
    arrays = {
        tensor.name: np.asarray(known.inputs[tensor.name], tensor.element.numpy_type) for tensor in planned.array.inputs
    }
    if fused and known.kernels is not None:
        assert len(planned.plan.kernels.kernels) == known.kernels
    with np.errstate(all="ignore"):
        found = run_kernels(planned.plan.kernels, arrays, planned.extents, planned.table)["O"]
    np.testing.assert_allclose(found, np.asarray(known.output, float), rtol=known.tolerance, atol=known.tolerance)


@pytest.mark.parametrize("name", sorted(shipped_rules().table.monoids))
def test_the_identity_is_one_on_both_sides_in_floating_point(name: str) -> None:
    """Merging with a part that saw nothing changes nothing, and two such parts are one."""
    table = shipped_rules().table
    monoid = table.monoids[name]
    domain = FloatDomain(table, np.float32)
    # A column of a matrix is scaled by an entry of a vector; all else combines vectors.
    shapes = [(2, 2) if place and name.startswith("column") else (2,) for place in range(len(monoid.state))]

    def state(values: tuple[float, ...]) -> list[np.ndarray[Any, Any]]:
        return [np.full(shape, value, np.float32) for shape, value in zip(shapes, values, strict=True)]

    empty = state(monoid.identity)
    for full in (empty, state((3.0,) * len(shapes)), state((1e4, 0.5, 2.0)[: len(shapes)])):
        for left, right in ((empty, full), (full, empty)):
            named = dict(zip((*monoid.left, *monoid.right), (*left, *right), strict=True))
            with np.errstate(all="ignore"):
                merged = [evaluate_local(table, domain, term, named) for term in monoid.combine]
            for found, expected in zip(merged, full, strict=True):
                np.testing.assert_array_equal(found, expected)
