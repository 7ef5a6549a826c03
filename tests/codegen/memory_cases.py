"""Local lists, buffers and accumulators."""

from __future__ import annotations

from bbrewrite.core.terms import Local, Number, Size
from bbrewrite.plan.kernel import KernelProgram, Let, Loop, Store, Update
from tests.codegen.kernel_cases import (
    IN,
    MN,
    X,
    Y,
    add_to,
    block,
    entrywise,
    indices,
    op,
    output,
    read,
    single,
    tensor,
    use,
)


def memory_cases() -> list[KernelProgram]:
    """The cases."""
    scalar, rows, top = block("s"), block("rows", "m", of="b"), block("top", of="b")
    wide = indices(m=64, k=96)
    row = block("row", "m k", of="k")
    return [
        # Numbers: an input, a local, an output, and a kernel of one thread.
        single(
            "scalars",
            indices(m=4),
            "",
            (
                Let(scalar, Number(0.0)),
                Loop("m", (add_to(scalar, op("sum_of", op("multiply", read("x", "m"), read("lam")))),)),
                Update(scalar, op("exp", op("negate", op("divide", use(scalar), op("add", Size("m"), 1))))),
                Store(output("loss", ""), use(scalar)),
            ),
            tensor("x", "m"),
            tensor("lam", ""),
            output("loss", ""),
        ),
        single(
            "lists",
            indices(b=None, m=4),
            "m",
            (
                Loop("b", (Let(rows, op("exp", read("X", "b", "m"))), Let(top, op("max_of", read("X", "b", "m"))))),
                Loop("b", (Store(output("Y", "b m"), op("multiply", use(rows), use(top))),)),
            ),
            tensor("X", "b m"),
            output("Y", "b m"),
        ),
        # Blocks too large for the stack.
        single(
            "large_blocks",
            wide,
            "m",
            (
                Loop("k", (Let(row, op("multiply", read("X", "m", "k"), 2)),)),
                Loop("k", (Let(block("copy", "m k"), op("exp", use(row))), Store(output("Y", "m k"), Local("copy")))),
            ),
            tensor("X", "m k"),
            output("Y", "m k"),
        ),
        # A loaded block that a loop inside uses again.
        single(
            "kept",
            indices(m=4, n=5, k=6),
            "m k",
            (
                Let(block("a", "m k"), read("A", "m", "k")),
                Let(block("acc", "m k"), Number(0.0)),
                Loop(
                    "n",
                    (
                        Let(block("s", "m n"), op("dot", Local("a"), read("B", "n", "k"))),
                        add_to(block("acc", "m k"), op("dot", Local("s"), op("transpose", read("B", "n", "k")))),
                    ),
                ),
                Store(output("Y", "m k"), Local("acc")),
            ),
            tensor("A", "m k"),
            tensor("B", "n k"),
            output("Y", "m k"),
        ),
        # A loop inside another one over the same index.
        single(
            "shadowed",
            MN,
            "m",
            (
                Loop(
                    "n",
                    (
                        Let(block("total", "m"), Number(0.0)),
                        Loop("n", (add_to(block("total", "m"), op("row_sum", op("abs", X))),)),
                        Store(Y, op("row_scale", X, op("recip", Local("total")))),
                    ),
                ),
            ),
            IN,
            Y,
        ),
        entrywise(
            "exp",
            op("add", read("M_PI", "y0", "gamma"), op("log1p", op("exp", read("NULL", "y0", "gamma")))),
            indices(y0=4, gamma=8),
            "y0 gamma",
            tensor("M_PI", "y0 gamma"),
            tensor("NULL", "y0 gamma"),
            output("free", "y0 gamma"),
        ),
        # Names that C++ or the generator claims for itself.
        single(
            "names",
            indices(row=4, col=8),
            "row col",
            (Store(output("int", "row col"), op("add", read("row0", "row", "col"), read("sqrt_value", "row", "col"))),),
            tensor("row0", "row col"),
            tensor("sqrt_value", "row col"),
            output("int", "row col"),
        ),
    ]
