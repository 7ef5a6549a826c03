"""Programs of reductions along rows whose results are used entry by entry: one kernel, which reads a row once where
local memory can hold one, and otherwise says that it reads rows again.
"""

from __future__ import annotations

import re

import pytest

from tests.plan.pipelines import plan_text, shipped_rules
from tests.plan.test_headline import check_small, only_kernel

F32 = 4
M, N = 1024, 4096
_HEAD = f"program rows\nindex m = {M}, n = {N}\ninput X[m, n] : f32\n"

# By the library, by its formula, and by steps of all names in all orders.
PROGRAMS = {
    "softmax": "output Y[m, n] = softmax[n](X[m, n])",
    "softmax by steps": """\
raised[m, n] = exp(X[m, n] - max[n](X[m, n]))
output Y[m, n] = raised[m, n] / sum[n](raised[m, n])
""",
    "softmax by other steps": """\
tops[m] = max[n](X[m, n])
shares[m] = recip(sum[n](exp(X[m, n] - tops[m])))
output Y[m, n] = shares[m] * exp(X[m, n] - tops[m])
""",
    "log of softmax": "output Y[m, n] = log_softmax[n](X[m, n])",
    "exponential of what log-sum-exp leaves": "output Y[m, n] = exp(X[m, n] - logsumexp[n](X[m, n]))",
    "layer norm": "output Y[m, n] = layer_norm[n](X[m, n])",
    "layer norm by steps": """\
middle[m] = sum[n](X[m, n]) / size(n)
off[m, n] = X[m, n] - middle[m]
output Y[m, n] = off[m, n] / sqrt(mean[n](off[m, n] ^ 2) + 1e-5)
""",
    "root mean square norm": "output Y[m, n] = rms_norm[n](X[m, n])",
    "l2 norm": "output Y[m, n] = l2_norm[n](X[m, n])",
    "scaled to 0 and 1": """\
low[m] = min[n](X[m, n])
high[m] = max[n](X[m, n])
output Y[m, n] = (X[m, n] - low[m]) / (high[m] - low[m])
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_row_is_read_once(name: str) -> None:
    planned = plan_text(_HEAD + PROGRAMS[name], shipped_rules())
    kernel = only_kernel(planned)
    assert kernel.grid == ("m",)
    assert kernel.whole == {"n"}
    assert planned.plan.global_bytes == 2 * F32 * M * N
    assert planned.repeated == ()


@pytest.mark.parametrize("n", [1, 20, 63])
@pytest.mark.parametrize("name", PROGRAMS)
def test_short_rows_have_blocks_of_known_length(name: str, n: int) -> None:
    """All steps for one such row at a time would wait for each other."""
    kernel = only_kernel(plan_text(_HEAD + PROGRAMS[name], shipped_rules(), m=20000, n=n))
    assert kernel.grid == ("m",)
    assert kernel.whole == frozenset()


@pytest.mark.parametrize("n", [20, 63])
def test_short_rows_are_folded_at_once(n: int) -> None:
    """What takes the lanes of a row to one number is paid for every block of it."""
    planned = plan_text(_HEAD + PROGRAMS["layer norm"], shipped_rules(), m=20000, n=n)
    assert (only_kernel(planned).indices["n"].block or 0) >= n


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_plan_is_right(name: str) -> None:
    check_small(name, plan_text(_HEAD + PROGRAMS[name], shipped_rules(), m=7, n=37))


def test_a_softmax_over_two_indices_reads_its_input_once() -> None:
    text = "program pages\nindex m = 64, h = 32, n = 128\ninput X[m, h, n] : f32\n"
    planned = plan_text(text + "output Y[m, h, n] = softmax[h, n](X[m, h, n])\n", shipped_rules())
    assert only_kernel(planned).grid == ("m",)
    assert planned.plan.global_bytes == 2 * F32 * 64 * 32 * 128


@pytest.mark.parametrize("name", ["softmax", "layer norm by steps"])
def test_rows_that_local_memory_cannot_hold_are_read_again(name: str) -> None:
    long = 2_000_000
    planned = plan_text(_HEAD + PROGRAMS[name], shipped_rules(), m=8, n=long)
    only_kernel(planned)
    assert planned.plan.global_bytes == 3 * F32 * 8 * long
    (note,) = planned.repeated
    assert re.fullmatch(
        r"kernel Y loads X 2 times, 122\.1 MiB in all: in 2 places; with its blocks kept, the kernel would need"
        r" \S+ MiB of local memory, of which 976\.6 KiB are near",
        note,
    )


def test_columns_are_not_kept_in_slices_narrower_than_a_cache_line() -> None:
    """Down the columns a few of them fit in local memory at a time, but memory moves in whole lines."""
    text = "program columns\nindex m = 20000, c = 64\ninput X[m, c] : f32\noutput Y[m, c] = layer_norm[m](X[m, c])\n"
    block = only_kernel(plan_text(text, shipped_rules())).indices["c"].block
    assert block is not None
    assert block * F32 >= 64
