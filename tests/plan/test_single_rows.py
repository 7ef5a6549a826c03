"""Kernels that go over one row after another are priced for the rows that generated code keeps, and for no fewer."""

from __future__ import annotations

import pytest

from bbrewrite.codegen.passes.flatten import flatten
from bbrewrite.core.spans import Source
from bbrewrite.core.types import Typing
from bbrewrite.fusion import fuse
from bbrewrite.lang.programs import parse_program
from bbrewrite.plan.costs.events import summarise
from bbrewrite.plan.kernel import Kernel
from bbrewrite.request import make_request
from bbrewrite.resources import resource_directory
from bbrewrite.rules.load import load_rules

RULES = load_rules(resource_directory("rules"))
HEAD = "program rows\nindex m = 512, n = 4096\ninput X[m, n], U[m, n] : f32\n"
BY_ROWS = {
    "softmax": "output Y[m, n] = softmax[n](X[m, n])",
    "layer norm": "output Y[m, n] = layer_norm[n](X[m, n], eps = 1e-5)",
    "softmax of a sum": "output Y[m, n] = softmax[n](X[m, n] + U[m, n]) * X[m, n]",
    "norm of a softmax": "P[m, n] = softmax[n](X[m, n])\noutput Y[m, n] = rms_norm[n](P[m, n], eps = 1e-5)",
}
OTHERWISE = {
    "columns": "output Y[m, n] = softmax[m](X[m, n])",
    "rows and columns": "C[n] = sum[m](X[m, n])\noutput Y[m, n] = softmax[n](X[m, n]) * C[n]",
    "product": "output Y[m] = sum[n](softmax[n](X[m, n]) * U[m, n])\noutput Z[m, m1] = sum[n](X[m, n] * U[m1, n])",
}


def _kernels(text: str) -> tuple[Kernel, ...]:
    program = parse_program(Source("rows.bb", HEAD.replace("m = 512", "m = 512, m1 = m") + text), RULES.table)
    return fuse(make_request(program, RULES, threads=2)).fused.kernels.kernels


def _goes_by_rows(kernel: Kernel) -> bool:
    tensors = {tensor.name: tensor for tensor in (*kernel.reads, *kernel.writes)}
    typing = Typing(RULES.table, kernel.indices, tensors)
    return summarise(kernel.body, kernel.grid, RULES.table, typing, tensors).single_rows is not None


@pytest.mark.parametrize("text", BY_ROWS.values(), ids=BY_ROWS)
def test_what_is_kept_is_single_rows(text: str) -> None:
    (kernel,) = _kernels(text)
    assert _goes_by_rows(kernel)
    assert kernel.whole == {"n"}
    flat = flatten(kernel, RULES.table)
    matrices = {block.name for block in flat.blocks if len(block.type.axes) == 2}
    assert matrices <= flat.single_rows | flat.single_entries | flat.row_pairs


@pytest.mark.parametrize("text", OTHERWISE.values(), ids=OTHERWISE)
def test_other_kernels_keep_whole_blocks(text: str) -> None:
    assert not all(map(_goes_by_rows, _kernels(text)))


def test_rows_are_no_reason_for_small_blocks() -> None:
    (kernel,) = _kernels(BY_ROWS["softmax"])
    block = kernel.indices["m"].block
    assert block is not None
    # All rows of it together would not fit into a cache of 2 MiB.
    assert block * 4096 * 4 > 2**21
