"""Products are priced as packing their right operands in passing where generated code does so, and nowhere else."""

from __future__ import annotations

import pytest

from bbrewrite.codegen.cpp.program import print_programs
from bbrewrite.core.elements import Element
from bbrewrite.core.terms import Number
from bbrewrite.core.types import Typing
from bbrewrite.plan.costs.events import summarise
from bbrewrite.plan.kernel import KernelProgram, Let, Loop, Store
from tests.codegen.kernel_cases import (
    BF16,
    F32,
    add_to,
    block,
    indices,
    op,
    output,
    read,
    single,
    table_with_weight,
    tensor,
    use,
)

TABLE = table_with_weight()


def _product(element: Element, kept: bool, transposed: bool) -> KernelProgram:
    """A product whose right operand is read where it lies, or kept local."""
    held, total = block("held", "n k" if transposed else "k n"), block("total", "m n")
    b = read("B", "n", "k") if transposed else read("B", "k", "n")
    right = use(held) if kept else b
    product = op("dot", read("A", "m", "k"), right if transposed else op("transpose", right))
    body = (
        Let(total, Number(0.0)),
        Loop("k", (*((Let(held, b),) if kept else ()), add_to(total, product))),
        Store(output("C", "m n"), use(total)),
    )
    axes = "n k" if transposed else "k n"
    tensors = (tensor("A", "m k", element), tensor("B", axes, element), output("C", "m n"))
    return single("product", indices(m=128, n=64, k=64), "m n", body, *tensors)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("element", [F32, BF16])
def test_the_price_is_that_of_the_code(element: Element, kept: bool, transposed: bool) -> None:
    program = _product(element, kept, transposed)
    (kernel,) = program.kernels
    tensors = {item.name: item for item in (*kernel.reads, *kernel.writes)}
    typing = Typing(TABLE, program.indices, tensors).with_locals({b.name: b.type for b in kernel.local_blocks})
    (product,) = summarise(kernel.body, kernel.grid, TABLE, typing, tensors).products
    assert product.in_passing == ("dot_in_passing" in print_programs([program], TABLE).text)
