"""Generated C++ sums as exactly as the executor of kernels: a mean of 1000 deviations leaves results within 1e-4."""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest

from bbrewrite.runtime.library import CompiledProgram
from bbrewrite.verify.reference import evaluate
from tests.built import built
from tests.plan.large_means import LONGEST, MEANS, check_close, draw_large, plan_means

BLOCKS = (16, 512)


@cache
def compiled() -> dict[tuple[str, bool, int], CompiledProgram]:
    """Every program, fused and not, with small and large blocks, in one library."""
    cases = list(product(MEANS, (True, False), BLOCKS))
    plans = [plan_means(*case) for case in cases]
    return dict(zip(cases, built([p.plan.kernels for p in plans], plans[0].table), strict=True))


@pytest.mark.parametrize("extent", [1000, LONGEST])
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("name", MEANS)
def test_a_large_mean_does_not_cancel(name: str, fused: bool, block: int, extent: int) -> None:
    planned = plan_means(name, fused, block)
    extents = {**planned.extents, "k": extent}
    arrays = draw_large(planned, extents)
    found = compiled()[name, fused, block].run(arrays, extents, threads=2)
    check_close(found["Y"], evaluate(planned.array, arrays, extents, planned.table)["Y"])
