"""A list that a plan stores keeps the name under which its author defined it, made alone or together with others."""

from __future__ import annotations

import pytest

from bbrewrite.plan.kernel import Store, walk_statements
from tests.plan.pipelines import plan_text, shipped_rules

# One loop makes two or three lists, some of them numbers for each row; a reader of all of them follows.
_LINEAR_ATTENTION = """program linear_attention
index m = 512, n = 512, d = 64, l = 64
input Q[m, d], K[n, d], V[n, l] : f32
Context[d, l] = sum[n](exp(K[n, d]) * V[n, l])
Weights[d] = sum[n](exp(K[n, d]))
output O[m, l] = sum[d](Q[m, d] * Context[d, l]) / sum[d](Q[m, d] * Weights[d])
"""
_SELF_ATTENTION = """program self_attention
index m = 1024, n = m, d = 256, e = d
input X[m, d] : f32
weight A[d, e], B[d, e], C[d, e] : f32
Query[m, e] = sum[d](X[m, d] * A[d, e])
Key[m, e] = sum[d](X[m, d] * B[d, e])
Value[m, e] = sum[d](X[m, d] * C[d, e])
P[m, n] = softmax[n](sum[e](Query[m, e] * Key[n, e]))
output O[m, e] = sum[n](P[m, n] * Value[n, e])
"""


@pytest.mark.parametrize("text", [_LINEAR_ATTENTION, _SELF_ATTENTION], ids=["sums of one loop", "three products"])
def test_stored_lists_keep_their_names(text: str) -> None:
    planned = plan_text(text, shipped_rules())
    kernels = planned.plan.kernels
    stores = [sum(isinstance(s, Store) for s in walk_statements(kernel.body)) for kernel in kernels.kernels]
    assert max(stores) > 1  # some are made together: what this is about
    defined = {definition.tensor.name for definition in planned.array.definitions}
    assert {buffer.name for buffer in kernels.buffers} <= defined
