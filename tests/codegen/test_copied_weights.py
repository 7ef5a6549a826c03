"""Copies of blocks of weights are left out where the weight is packed ahead, and only there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bbrewrite.codegen.cpp.copied_weights import without_copied_weights
from bbrewrite.core.operators import builtin_table
from bbrewrite.core.programs import Role
from bbrewrite.core.terms import Number, Term
from bbrewrite.plan.kernel import KernelProgram, Let, Loop, Statement, Store
from bbrewrite.runtime.library import PackedWeight
from bbrewrite.runtime.module import compile_programs
from tests.codegen.kernel_cases import (
    BF16,
    F32,
    add_to,
    arrays_for,
    block,
    indices,
    op,
    output,
    read,
    single,
    tensor,
    use,
)

TABLE = builtin_table()
SIZES = {"m": 45, "k": 50, "n": 70}
W = read("W", "k", "n")


def _product(held: Term, *before: Statement) -> tuple[Statement, ...]:
    """Y = X W by a loop over rows in one over what is summed, with a block of W made by the statements before."""
    total = block("total", "m n", of="m")
    added = add_to(total, op("dot", read("X", "m", "k"), op("transpose", held)))
    return (
        Loop("m", (Let(total, Number(0.0)),)),
        Loop("k", (*before, Loop("m", (added,)))),
        Loop("m", (Store(output("Y", "m n"), use(total)),)),
    )


def _program(body: tuple[Statement, ...], role: Role = Role.WEIGHT, element: object = F32) -> KernelProgram:
    weight = replace(tensor("W", "k n", BF16 if element is BF16 else F32), role=role)
    table = indices(m=16, k=32, n=64)
    return single("copied", table, "n", body, tensor("X", "m k"), weight, output("Y", "m n"))


BLOCK, LIST = block("held", "k n"), block("held", "k n", of="k")
KEPT = _product(use(BLOCK), Let(BLOCK, W))
KEPT_LIST = (Loop("k", (Let(LIST, W),)), *_product(use(LIST)))
CHANGED = _product(use(BLOCK), Let(BLOCK, op("relu", W)))
USED_OTHERWISE = _product(use(BLOCK), Let(BLOCK, W), Let(block("sums", "k"), op("row_sum", use(BLOCK))))


@pytest.mark.parametrize("body", [KEPT, KEPT_LIST], ids=["a block", "a list of blocks"])
def test_copies_of_what_is_packed_ahead_are_left_out(body: tuple[Statement, ...]) -> None:
    program = _program(body)
    (kernel,) = without_copied_weights(program, TABLE).kernels
    assert kernel.body == _product(W)
    (compiled,) = compile_programs([program], TABLE, prepare=True)
    arrays = arrays_for(program, SIZES, 0)
    ready = compiled.prepare(arrays, 2)
    assert isinstance(ready["W"], PackedWeight)
    np.testing.assert_allclose(compiled.run(ready, SIZES, 2)["Y"], arrays["X"] @ arrays["W"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(_program(KEPT, Role.INPUT), id="not constant"),
        pytest.param(_program(CHANGED), id="more than a copy"),
        pytest.param(_program(USED_OTHERWISE), id="used otherwise"),
        pytest.param(_program(KEPT, element=BF16), id="held in another type"),
    ],
)
def test_other_copies_stay(program: KernelProgram) -> None:
    assert without_copied_weights(program, TABLE) == program
