"""The printed form of kernels."""

from __future__ import annotations

from bbrewrite.core.addresses import index_address
from bbrewrite.core.elements import Element
from bbrewrite.core.indices import Index, IndexTable
from bbrewrite.core.operators import builtin_table
from bbrewrite.core.programs import Role, Tensor
from bbrewrite.core.terms import Apply, Local, Number, Read
from bbrewrite.core.types import BlockType
from bbrewrite.plan.kernel import Kernel, KernelProgram, Let, LocalBlock, Loop, Store, Update
from bbrewrite.plan.printing import print_kernel_program

_PRINTED = """kernel program product
index m = 128 by 64, k = 256 by 32
input X[m, k] : f16
weight w[k] : f16
buffer T[m] : f32
output O : f32

kernel T parallel over m:
    blocks m by 64, k by 32
    let sums[m] : vector[m] of f32 = 0
    for k:
        sums[m] := sums[m] + row_sum(col_scale(X[m, k], w[k]))
    store T[m] = sums[m]

kernel O:
    let total : scalar of f32 = 0
    store O = total
"""


def test_kernels() -> None:
    indices = IndexTable.of([Index("m", 128, None, 64), Index("k", 256, None, 32)])
    x = Tensor("X", ("m", "k"), Element.F16, Role.INPUT)
    w = Tensor("w", ("k",), Element.F16, Role.WEIGHT)
    buffer = Tensor("T", ("m",), Element.F32, Role.BUFFER)
    output = Tensor("O", (), Element.F32, Role.OUTPUT)
    sums = LocalBlock("sums", BlockType(("m",), Element.F32), ("m",))
    total = LocalBlock("total", BlockType((), Element.F32))
    block = Read("X", (index_address("m"), index_address("k")))
    product = Apply("row_sum", (Apply("col_scale", (block, Read("w", (index_address("k"),)))),))
    accumulated = Apply("add", (Local("sums", ("m",)), product))
    loop = Loop("k", (Update(sums, accumulated),))
    first = Kernel(
        "T", indices, ("m",), (Let(sums, Number(0)), loop, Store(buffer, Local("sums", ("m",)))), (x, w), (buffer,)
    )
    second = Kernel("O", indices, (), (Let(total, Number(0)), Store(output, Local("total"))), (buffer,), (output,))
    program = KernelProgram("product", indices, (x, w), (buffer,), (output,), (first, second))
    assert print_kernel_program(program, builtin_table()) == _PRINTED
