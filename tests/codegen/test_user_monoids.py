"""Monoids that users write, with components of unlike kinds, on every target: what NumPy says of the same sums.

A component is as wide as its elements and its combination need, whatever it starts as; a state of several
components is never shared out among processors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bbrewrite.core.spans import Source
from bbrewrite.fusion import fuse
from bbrewrite.inputs import draw_inputs
from bbrewrite.lang.programs import parse_program
from bbrewrite.pipeline import run
from bbrewrite.request import Request, make_request
from bbrewrite.rules.load import parse_rules

type Array = np.ndarray[Any, np.dtype[Any]]

RULES = """
op weight(a, b) = where(a == b, 1, exp(a - b))

# One component: what goes in, what is kept and what comes out differ.
monoid length
    state    s
    identity 0
    element  x => x * x
    combine  a, b => a + b
    finish   sqrt(s)

monoid row_total
    state    s
    identity 0
    element  x => row_sum(x)
    combine  a, b => a + b
    finish   s

# A component that starts as a number and is combined with blocks.
monoid lse
    state    m, s
    identity -inf, 0
    element  x => x, 1
    combine  (m1, s1), (m2, s2) => m, s1 * weight(m1, m) + s2 * weight(m2, m)  let m = maximum(m1, m2)
    finish   m + log(s)

# The sum of the products of all pairs.
monoid pairs
    state    a, b
    identity 0, 0
    element  x => x, 0
    combine  (a1, b1), (a2, b2) => a1 + a2, b1 + b2 + a1 * a2
    finish   b

# A scalar factor and a block: y_i = y_(i-1) / 2 + x_i. It does not commute.
monoid decaying
    state    a, b
    identity 1, 0
    element  x => 0.5, x
    combine  (a1, b1), (a2, b2) => a1 * a2, b1 * a2 + b2
    finish   b

# A count, which is a number, beside two matrices; the result needs two of the three.
monoid deviation
    state    n, mean, square
    identity 0, 0, 0
    element  x => 1, x, 0
    combine  (n1, a, p), (n2, b, q) =>
             n, a * (n1 * inverse) + b * (n2 * inverse), p + q + (b - a) * (b - a) * (n1 * n2 * inverse)
             let n = n1 + n2, inverse = where(n == 0, 0, recip(n))
    finish   sqrt(square / n)

# A vector, a vector that starts as a number, and a matrix.
monoid weighted
    state    m, s, y
    identity -inf, 0, 0
    element  x, y => row_max(x), 1, y
    combine  (m1, s1, y1), (m2, s2, y2) =>
             m, s1 * weight(m1, m) + s2 * weight(m2, m), row_scale(y1, weight(m1, m)) + row_scale(y2, weight(m2, m))
             let m = maximum(m1, m2)
    finish   row_scale(row_shift(y, m), s)
"""

PROGRAM = """block program monoids
index b = 5, m = 7 by 4, n = 6 by 4, k = 11 by 4
input X[b, m, n], Z[m, k] : f32
output Length = map m: map n: reduce length b: X[b, m, n]
output Total = map m: reduce sum n: reduce row_total b: X[b, m, n]
output Lse = map m: map n: reduce lse b: X[b, m, n]
output LseOfMaxima = map m: reduce lse k: row_max(Z[m, k])
output Pairs = map m: map n: reduce pairs b: X[b, m, n]
output PairsOfSums = map m: reduce pairs k: row_sum(Z[m, k])
output Decaying = map m: map n: reduce decaying b: X[b, m, n]
output Deviation = map m: map n: reduce deviation b: X[b, m, n]
output Weighted = map m: map n: reduce weighted b: (X[b, m, n], X[b, m, n])
"""


def _blocks(z: Array, part: Callable[..., Array]) -> Array:
    """One number a row for each block of four columns, the blocks in front."""
    return np.stack([part(z[:, at : at + 4], axis=1) for at in range(0, z.shape[1], 4)] or [np.zeros((0, len(z)))])


def _lse(x: Array) -> Array:
    return np.logaddexp.reduce(x, axis=0, initial=-np.inf)


def _pairs(x: Array) -> Array:
    return (x.sum(axis=0) ** 2 - (x**2).sum(axis=0)) / 2


def _decaying(x: Array) -> Array:
    total = np.zeros(x.shape[1:])
    for step in x:
        total = total / 2 + step
    return total


def _weighted(x: Array) -> Array:
    blocks = np.split(x, range(4, x.shape[2], 4), axis=2)
    return np.concatenate([_weighted_block(block) for block in blocks], axis=2)[0] if len(x) else np.nan * x.sum(axis=0)


def _weighted_block(x: Array) -> Array:
    rows = x.max(axis=2, keepdims=True, initial=-np.inf)
    largest = rows.max(axis=0, keepdims=True)
    weights = np.exp(rows - largest)
    return ((weights * x).sum(axis=0, keepdims=True) + largest) * weights.sum(axis=0, keepdims=True)


def expected(x: Array, z: Array) -> dict[str, Array]:
    """Every output in float64, by the sums' closed forms."""
    with np.errstate(all="ignore"):
        return {
            "Length": np.sqrt((x**2).sum(axis=0)),
            "Total": x.sum(axis=(0, 2)),
            "Lse": _lse(x),
            "LseOfMaxima": _lse(_blocks(z, np.max)) if z.shape[1] else np.full(len(z), -np.inf),
            "Pairs": _pairs(x),
            "PairsOfSums": _pairs(_blocks(z, np.sum)) if z.shape[1] else np.zeros(len(z)),
            "Decaying": _decaying(x),
            "Deviation": x.std(axis=0) if len(x) else np.full(x.shape[1:], np.nan),
            "Weighted": _weighted(x),
        }


def _request(threads: int = 2, **sizes: int) -> Request:
    rules = parse_rules([Source("monoids.rules", RULES)])
    program = parse_program(Source("monoids.bb", PROGRAM), rules.table)
    return make_request(program, rules, {"b": 5, "m": 7, "n": 6, "k": 11, **sizes}, threads=threads)


ALL_SIZES = [{}, {"b": 1, "m": 1, "n": 9, "k": 1}, {"b": 0, "k": 0}, {"m": 0}, {"n": 0}]


@pytest.mark.parametrize(
    ("target", "sizes"),
    [*(("numpy", sizes) for sizes in ALL_SIZES), *(("cpp", sizes) for sizes in (ALL_SIZES[0], ALL_SIZES[2]))],
    ids=str,
)
def test_user_monoids_mean_their_sums(target: str, sizes: dict[str, int]) -> None:
    request = _request(**sizes)
    arrays = draw_inputs(request.program, request.extents, 3, {})
    result = run(request, target, seed=3)
    for name, array in expected(arrays["X"].astype(np.float64), arrays["Z"].astype(np.float64)).items():
        np.testing.assert_allclose(result.outputs[name], array, rtol=2e-5, atol=2e-5, err_msg=name)


def test_no_state_of_several_components_is_split() -> None:
    """With many processors and little else to share out, only sums of one component are shared out."""
    request = _request(threads=64, b=4096, m=1, n=1, k=4096)
    split = [kernel.name for kernel in fuse(request).fused.kernels.kernels if kernel.is_split]
    assert split
    assert set(split) <= {"Length", "Total"}
