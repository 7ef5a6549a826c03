"""What does not depend on an index of the outputs is computed once by every processor, not once in each cell."""

from __future__ import annotations

import pytest

from bbrewrite.core.terms import Apply, Read, walk
from bbrewrite.plan.kernel import Kernel, Let, Loop, Store, Update, walk_statements
from tests.plan.pipelines import TARGET, Planned, plan_text, shipped_rules
from tests.plan.test_headline import check_small

M, K, N = 160, 1024, 2816
_HEAD = f"""\
program prepared
index m = {M}, k = {K}, n = {N}
input X[m, k] : f32
weight W[k, n], V[k, n], g[k] : f32
"""

# What is computed of X ahead of the products.
PREPARED = {
    "root mean square norm": "H[m, k] = rms_norm[k](X[m, k]) * g[k]",
    "layer norm": "H[m, k] = layer_norm[k](X[m, k]) * g[k]",
    "entry by entry": "H[m, k] = silu(X[m, k]) * g[k]",
    "softmax": "H[m, k] = softmax[k](X[m, k])",
}


def planned(name: str, threads: int = 2, **sizes: int) -> Planned:
    text = f"{_HEAD}{PREPARED[name]}\noutput Y[m, n] = silu(sum[k](H[m, k] * W[k, n])) * sum[k](H[m, k] * V[k, n])\n"
    return plan_text(text, shipped_rules(), threads, block=None, fast_math=False, **sizes)


def repeated(kernel: Kernel) -> list[str]:
    """What a kernel of one output computes of X alone in every block of n."""
    loops = [s for s in walk_statements(kernel.body) if isinstance(s, Loop) and s.index == "n"]
    inside = [s for loop in loops for s in walk_statements(loop.body)] if loops else list(walk_statements(kernel.body))
    lines = [s for s in inside if isinstance(s, Let | Update | Store)]
    return [
        term.operator
        for line in lines
        for term in walk(line.expression)
        if isinstance(term, Apply) and term.operator not in {"dot", "transpose"} and _reads(term) == {"X"}
    ]


def _reads(term: Apply) -> set[str]:
    return {part.tensor for part in walk(term) if isinstance(part, Read)} - {"g"}


@pytest.mark.parametrize("name", PREPARED)
def test_work_on_rows_is_not_repeated_for_each_block_of_columns(name: str) -> None:
    kernels = [kernel for kernel in planned(name).plan.kernels.kernels if "n" in kernel.loops]
    assert [repeated(kernel) for kernel in kernels] == [[]]


@pytest.mark.parametrize("name", PREPARED)
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_plan_is_right(name: str, threads: int) -> None:
    check_small(name, planned(name, threads, m=7, k=37, n=150))


def test_lists_may_lie_behind_local_memory() -> None:
    """Rows too long for local memory are kept all the same where that costs less than to compute them again."""
    found = planned("root mean square norm", m=512, k=2048)
    (kernel,) = found.plan.kernels.kernels
    assert found.plan.local_bytes > TARGET.local_capacity_bytes
    assert repeated(kernel) == []
    assert not any("no schedule fits" in note for note in found.plan.notes)
