"""Columns of a tensor that a whole block of rows is computed from are brought side by side once, not in each row."""

from __future__ import annotations

import numpy as np
import pytest

from bbrewrite.codegen.access import is_row_contiguous
from bbrewrite.codegen.passes.flatten import flatten
from bbrewrite.codegen.steps import Assign, walk_steps
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Read, walk
from bbrewrite.core.types import Typing
from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.plan.kernel import Kernel
from tests.array_programs import draw_inputs
from tests.built import built
from tests.plan.pipelines import Planned, plan_text, shipped_rules

DISTANCES = {
    "squared": "sum[d]((Q[m, d] - K[n, d]) ^ 2)",
    "city block": "sum[d](abs(Q[m, d] - K[n, d]))",
    "largest": "max[d](abs(Q[m, d] - K[n, d]))",
    "beside another column": "sum[d](abs(Q[m, d] - K[n, d] * V[n, 2]))",
    "down the rows": "sum[d](abs(T[d, m] - K[n, d]))",
}


def planned(distance: str, **sizes: int) -> Planned:
    text = (
        "program distances\nindex m = 300, n = 280, d = 40\ninput Q[m, d], T[d, m], K[n, d], V[n, d] : f32\n"
        f"output O[m, n] = {DISTANCES[distance]}\n"
    )
    return plan_text(text, shipped_rules(), threads=2, fast_math=False, block=None, **sizes)


def scattered_columns(kernel: Kernel, planned: Planned) -> list[Read]:
    """What rows of blocks are computed from that lies scattered along them."""
    tensors = {tensor.name: tensor for tensor in kernel.reads}
    typing = Typing(planned.table, kernel.indices, tensors)
    steps = walk_steps(flatten(kernel, planned.table, frozenset()).steps)
    found: list[Read] = []
    for step in steps:
        if isinstance(step, Assign):
            axes = step.target.indices if isinstance(step.target, Tensor) else step.target.type.axes
            reads = [leaf for leaf in walk(step.expression) if isinstance(leaf, Read)]
            found += [
                leaf
                for leaf in reads
                if len(axes) == 2 and typing.block(leaf).axes == axes[-1:]
                if not is_row_contiguous(leaf, tensors[leaf.tensor], kernel.indices)
            ]
    return found


@pytest.mark.parametrize("distance", DISTANCES)
def test_rows_are_computed_from_what_lies_side_by_side(distance: str) -> None:
    found = planned(distance)
    assert [scattered_columns(kernel, found) for kernel in found.plan.kernels.kernels] == [[]]


def test_generated_code_computes_what_the_executor_does() -> None:
    plans = [planned(distance) for distance in DISTANCES]
    compiled = built([plan.plan.kernels for plan in plans], shipped_rules().table)
    for plan, program in zip(plans, compiled, strict=True):
        for m, n, d in ((300, 280, 40), (7, 1, 3), (1, 37, 5)):
            extents = {**plan.extents, "m": m, "n": n, "d": d}
            arrays = draw_inputs(plan.array, extents)
            expected = run_kernels(plan.plan.kernels, arrays, extents, plan.table)["O"]
            np.testing.assert_allclose(program.run(arrays, extents, 2)["O"], expected, rtol=1e-5, atol=1e-5)
