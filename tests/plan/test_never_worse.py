"""However little is spent on the search, the plan takes no longer than what is found without rules; and the search goes
on where it would end there though bounds promise much."""

from __future__ import annotations

import pytest

from bbrewrite.core.spans import Source
from bbrewrite.fusion import Fusion, fuse
from bbrewrite.lang.programs import parse_program
from bbrewrite.plan import planner
from bbrewrite.plan.target import TOLERANCE
from bbrewrite.request import make_request
from bbrewrite.resources import resource_directory
from bbrewrite.rules.load import load_rules

_RULES = load_rules(resource_directory("rules"))

# An output that equals what another one needs; more kernels than are scheduled at first.
_COMMON_MAXIMUM = """program common_maximum
index m = 5, k = 1, n = 7
input X[m, k], W[k, n] : f32
output Y[m, n] = sum[k](X[m, k] * W[k, n]) + 1
output S[m] = sum[k](softmax[k](X[m, k]) * X[m, k])
output M[m] = max[k](X[m, k])
output L[m] = logsumexp[k](X[m, k])
"""
_NORMS = """program norms
index m = 6, c = 9
input X[m, c] : f32
output A[m, c] = layer_norm[c](X[m, c])
output B[m, c] = rms_norm[c](X[m, c])
output C[m] = sum[c](X[m, c] * X[m, c]) / size(c)
"""
_APART = """program apart
index m = 10
input x[m] : f32
output y[m] = exp(x[m])
output z[m] = x[m] * 2
"""


def _fused(text: str) -> Fusion:
    return fuse(make_request(parse_program(Source("p.bb", text), _RULES.table), _RULES, threads=2))


@pytest.mark.parametrize("effort", [0, 1, 3])
@pytest.mark.parametrize("text", [_COMMON_MAXIMUM, _NORMS, _APART], ids=["common_maximum", "norms", "apart"])
def test_a_plan_takes_no_longer_than_the_unfused_one(text: str, effort: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MOST_EFFORT", "MOST_EFFORT_OF_SMALL"):
        monkeypatch.setattr(planner, name, effort)
    monkeypatch.setattr(planner, "SEARCHES_MORE", 0)
    fusion = _fused(text)
    assert fusion.fused.seconds <= fusion.unfused.seconds * (1 + TOLERANCE)
    assert fusion.fused.size <= fusion.unfused.size
    assert fusion.after.global_bytes <= fusion.before.global_bytes


def test_the_search_goes_on_where_bounds_promise_much() -> None:
    assert len(_fused(_COMMON_MAXIMUM).fused.kernels.kernels) == 2


@pytest.mark.parametrize(("text", "rules"), [(_APART, {"fuse_siblings"}), (_NORMS, {"fuse_siblings"})])
def test_rules_are_named_where_kernels_became_one(text: str, rules: set[str]) -> None:
    """Also where every output is computed just as it was written."""
    fusion = _fused(text)
    assert len(fusion.fused.kernels.kernels) < len(fusion.unfused.kernels.kernels)
    assert rules <= fusion.rules_applied.keys()
    assert not fusion.keeps_unfused
