"""Extents of 0: the entry point does what the unfused kernels do, whatever fusion made of the sums over nothing."""

from __future__ import annotations

import numpy as np
import pytest

from bbrewrite.codegen.cpp.program import print_programs
from bbrewrite.core.operators import builtin_table
from bbrewrite.core.programs import Role
from bbrewrite.core.terms import Number
from bbrewrite.plan.kernel import KernelProgram, Let, Loop, Store
from bbrewrite.runtime.library import CompiledProgram
from bbrewrite.runtime.module import compile_program
from tests.codegen.kernel_cases import (
    F32,
    add_to,
    block,
    indices,
    kernel,
    op,
    output,
    program,
    read,
    single,
    tensor,
    use,
)

TABLE = builtin_table()
MN = indices(m=4, n=8)
TOTAL = block("total", "m")


def _fused() -> KernelProgram:
    """sum[n](A[m, n]) * c[m]: the factor has been moved out of the sum."""
    body = (
        Let(TOTAL, Number(0.0)),
        Loop("n", (add_to(TOTAL, op("row_sum", read("A", "m", "n"))),)),
        Store(output("Y", "m"), op("multiply", use(TOTAL), read("c", "m"))),
    )
    return single("scaled_sum", MN, "m", body, tensor("A", "m n"), tensor("c", "m"), output("Y", "m"))


def _unfused() -> KernelProgram:
    """sum[n](A[m, n] * c[m]) by way of two buffers, one of which is not empty where n is."""
    products, factors = tensor("P", "m n", F32, Role.BUFFER), tensor("C", "m", F32, Role.BUFFER)
    copy = kernel(MN, "m", (Store(factors, read("c", "m")),), [tensor("c", "m")], [factors], "copy")
    scale = kernel(
        MN, "m n", (Store(products, op("row_scale", read("A", "m", "n"), read("C", "m"))),),
        [tensor("A", "m n"), factors], [products], "scale",
    )  # fmt: skip
    body = (
        Let(TOTAL, Number(0.0)),
        Loop("n", (add_to(TOTAL, op("row_sum", read("P", "m", "n"))),)),
        Store(output("Y", "m"), use(TOTAL)),
    )
    total = kernel(MN, "m", body, [products], [output("Y", "m")], "total")
    return program("scaled_sum", [copy, scale, total], [products, factors])


@pytest.fixture(scope="module")
def compiled() -> CompiledProgram:
    return compile_program(_fused(), TABLE, fallback=_unfused())


@pytest.mark.parametrize("factor", [np.inf, np.nan, 2.0])
def test_a_sum_over_nothing_is_zero(compiled: CompiledProgram, factor: float) -> None:
    arrays = {"A": np.empty((9, 0), np.float32), "c": np.full(9, factor, np.float32)}
    np.testing.assert_array_equal(compiled.run(arrays, {"m": 9, "n": 0}, 2)["Y"], np.zeros(9))


def test_nothing_else_takes_the_branch(compiled: CompiledProgram) -> None:
    arrays = {"A": np.ones((3, 5), np.float32), "c": np.full(3, 2, np.float32)}
    np.testing.assert_array_equal(compiled.run(arrays, {"m": 3, "n": 5}, 2)["Y"], np.full(3, 10.0))
    empty = {"A": np.ones((0, 5), np.float32), "c": np.ones(0, np.float32)}
    assert compiled.run(empty, {"m": 0, "n": 5}, 2)["Y"].shape == (0,)


def test_the_branch_comes_first_and_only_where_asked_for() -> None:
    text = print_programs([_fused()], TABLE, _unfused()).text
    assert "if (size_m == 0 || size_n == 0) {" in text
    assert "== 0 ||" not in print_programs([_fused()], TABLE).text
