"""Values of loops over rows that are kept in registers or computed again: which ones, and that results stay."""

from __future__ import annotations

import numpy as np
import pytest

from bbrewrite.codegen.passes.flatten import flatten
from bbrewrite.core.elements import Element
from bbrewrite.core.operators import builtin_table
from bbrewrite.core.terms import Number, Term
from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.plan.kernel import KernelProgram, Let, Loop, Statement, Store, Update
from tests.built import built
from tests.codegen.kernel_cases import BF16, F32, add_to, block, indices, op, output, read, single, tensor, use

TABLE = builtin_table()
X, V, E, TOP, TOTAL = block("x", "m n"), block("v", "m n"), block("e", "m n"), block("top", "m"), block("total", "m")
FROM_MEMORY = op("exp", read("X", "m", "n"))
ONE_MORE, FROM_COLUMNS = op("add", read("X", "m", "n"), 1), op("add", op("transpose", read("X", "n", "m")), 1)
HALF = op("multiply", use(X), 0.5)
TWO = op("multiply", HALF, 0.5)
ADD_TO_X, ADD_TO_V = Update(X, op("add", use(X), 1)), Update(V, op("add", use(V), 1))


def _rows(
    value: Term,
    *between: Statement,
    base: Term = FROM_MEMORY,
    element: Element = F32,
    axes: str = "m n",
    columns: int = 4096,
) -> KernelProgram:
    """Y = e / sum e for e = exp(v - max v), where v is a value of a block x, which is stored after `between`."""
    body = (
        Let(X, base),
        Let(V, value),
        Let(TOP, op("row_max", use(V))),
        *between,
        Let(E, op("exp", op("row_shift", use(V), op("negate", use(TOP))))),
        Let(TOTAL, op("row_sum", use(E))),
        Store(output("Y", "m n"), op("row_scale", use(E), op("recip", use(TOTAL)))),
        Store(output("Z", "m n"), use(X)),
    )
    read_from = tensor("X", axes, element)
    return single("rows", indices(m=8, n=columns), "m n", body, read_from, output("Y", "m n"), output("Z", "m n"))


def _product(rows_too: bool) -> KernelProgram:
    """A product of exponentials, which are summed as well, and kept for another sum where `rows_too`."""
    product, squares, scale = block("product", "m l"), block("squares", "m"), block("scale", "m")
    again = (
        (Let(squares, op("row_sum", op("multiply", use(E), op("row_shift", use(E), use(TOTAL))))),) if rows_too else ()
    )
    body = (
        Let(product, Number(0.0)),
        Let(scale, Number(0.0)),
        Loop(
            "n",
            (
                Let(E, op("exp", read("X", "m", "n"))),
                add_to(product, op("dot", use(E), op("transpose", read("W", "n", "l")))),
                Let(TOTAL, op("row_sum", use(E))),
                *again,
                add_to(scale, use(squares if rows_too else TOTAL)),
            ),
        ),
        Store(output("Y", "m l"), op("row_scale", use(product), use(scale))),
    )
    table = indices(m=8, n=96, l=16)
    return single(
        "product", table, "m l", body, tensor("X", "m n", BF16), tensor("W", "n l", BF16), output("Y", "m l")
    )  # fmt: skip


# The blocks that have no memory at all, and those that are variables.
CASES = {
    "one instruction": (_rows(HALF, columns=96), {"v"}, set[str]()),
    "two instructions": (_rows(TWO), set[str](), set[str]()),
    "one on a tensor's entries": (_rows(TWO, base=ONE_MORE), {"x"}, set[str]()),
    "the same in short rows": (_rows(TWO, base=ONE_MORE, columns=96), set[str](), set[str]()),
    "one after another": (_rows(HALF, base=ONE_MORE), {"x"}, set[str]()),
    "on entries that are converted": (_rows(TWO, base=ONE_MORE, element=BF16), set[str](), set[str]()),
    "on entries that lie apart": (_rows(TWO, base=FROM_COLUMNS, axes="n m"), set[str](), set[str]()),
    "its source is changed": (_rows(HALF, ADD_TO_X), set[str](), set[str]()),
    "it is changed itself": (_rows(HALF, ADD_TO_V), set[str](), set[str]()),
    "one pass": (_product(rows_too=False), set[str](), {"e"}),
    "two passes": (_product(rows_too=True), set[str](), set[str]()),
}


@pytest.mark.parametrize("name", CASES)
def test_which_values_have_no_memory(name: str) -> None:
    program, again, variables = CASES[name]
    (kernel,) = program.kernels
    flat = flatten(kernel, TABLE)
    assert {block.name for block in kernel.local_blocks} - {block.name for block in flat.blocks} == again
    assert flat.single_entries & {block.name for block in kernel.local_blocks} == variables


def test_results_stay_what_they_are() -> None:
    programs = [program for program, _, _ in CASES.values()]
    compiled = built(programs, TABLE)
    for program, library in zip(programs, compiled, strict=True):
        for m, n in [(1, 1), (21, 50), (8, 96), (3, 131)]:
            extents = {"m": m, "n": n} | ({"l": 5} if program.name == "product" else {})
            random = np.random.default_rng(0)
            arrays = {
                t.name: random.standard_normal([extents[i] for i in t.indices]).astype(t.element.numpy_type)
                for t in program.inputs
            }
            found, expected = library.run(arrays, extents, 2), run_kernels(program, arrays, extents, TABLE)
            for result in expected:
                # Operands of the product are rounded to bf16.
                rough = 1e-2 * np.abs(expected[result]).max() if program.name == "product" else 0
                np.testing.assert_allclose(found[result], expected[result], rtol=1e-5, atol=rough, err_msg=program.name)
