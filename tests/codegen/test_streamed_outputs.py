"""Large results, which are stored past the caches, of one kernel: each is whole, whatever goes on beside the others."""

from __future__ import annotations

import numpy as np

import bbrewrite
from bbrewrite.core.spans import Source
from bbrewrite.fusion import fuse
from bbrewrite.lang.programs import parse_program
from bbrewrite.request import make_request
from tests.plan.pipelines import shipped_rules

# More than what is stored through the caches.
_M, _N = 4096, 2304
_TEXT = f"""program large
index m = {_M}, n = {_N}
input X[m, n] : f32
output S[m, n] = softmax[n](X[m, n])
output L[m, n] = layer_norm[n](X[m, n])
output R[m, n] = rms_norm[n](X[m, n]) * 2
"""


def test_every_result_is_whole() -> None:
    rules = shipped_rules()
    fusion = fuse(make_request(parse_program(Source("large.bb", _TEXT), rules.table), rules, threads=2))
    assert len(fusion.fused.kernels.kernels) == 1
    x = np.random.default_rng(0).standard_normal((_M, _N), np.float32)
    out = tuple(np.full_like(x, np.nan) for _ in range(3))
    bbrewrite.compile(_TEXT, threads=2)(x, out=out)
    e = np.exp(x)
    centred = x - x.mean(1, keepdims=True)
    expected = (
        e / e.sum(1, keepdims=True),
        centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5),
        2 * x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-6),
    )
    for found, right in zip(out, expected, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-5)
