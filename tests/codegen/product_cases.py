"""Products of blocks, with what stands around them."""

from __future__ import annotations

from bbrewrite.core.terms import Number
from bbrewrite.plan.kernel import KernelProgram, Let, Loop, Store, Update
from tests.codegen.kernel_cases import (
    Y,
    add_to,
    address,
    block,
    indices,
    op,
    output,
    read,
    single,
    tensor,
    use,
)


def product_cases() -> list[KernelProgram]:
    """The cases."""
    t, u = block("t", "m k"), block("u", "m m")
    s = block("s", "m n")
    inner = op("dot", op("exp", read("A", "m", "k")), op("exp", read("B", "n", "k")))
    return [
        single(
            "inner_product",
            indices(m=4, n=5, k=6),
            "m n",
            (
                Let(s, Number(0.0)),
                Loop("k", (Update(s, op("maximum", use(s), op("sqrt", op("power", inner, 2)))),)),
                Store(Y, op("sqrt", use(s))),
            ),
            tensor("A", "m k"),
            tensor("B", "n k"),
            Y,
        ),
        # The block that is added to is itself an operand, of either side, in place and transposed.
        single(
            "own_operand",
            indices(m=4, k=5),
            "m",
            (
                Loop(
                    "k",
                    (
                        Let(t, read("A", "m", "k")),
                        Let(u, op("outer", read("v", "m"), op("exp", read("v", "m")))),
                        Update(u, op("add", op("multiply", use(u), 2), op("dot", use(u), op("multiply", use(u), 0.5)))),
                        Update(u, op("add", use(u), op("dot", use(u), op("transpose", use(u))))),
                        Update(t, op("add", use(t), op("dot", use(u), op("transpose", use(t))))),
                        Update(u, op("subtract", use(u), op("transpose", use(u)))),
                        Store(output("Y", "m k"), op("row_scale", use(t), op("row_sum", use(u)))),
                    ),
                ),
            ),
            tensor("v", "m"),
            tensor("A", "m k"),
            output("Y", "m k"),
        ),
        single(
            "two_products",
            indices(m=4, n=5, k=6),
            "m n",
            (
                Let(s, Number(1.0)),
                Loop(
                    "k",
                    (
                        Update(
                            s,
                            op(
                                "add",
                                op("add", op("dot", read("A", "m", "k"), read("B", "n", "k")), use(s)),
                                op("dot", op("negate", read("A", "m", "k")), op("exp", read("B", "n", "k"))),
                            ),
                        ),
                    ),
                ),
                Store(Y, use(s)),
            ),
            tensor("A", "m k"),
            tensor("B", "n k"),
            Y,
        ),
        # Operands whose columns are not adjacent.
        single(
            "strided",
            indices(h=None, m=4, n=5, k=6),
            "h m n",
            (
                Let(s, Number(0.0)),
                Loop("k", (add_to(s, op("dot", read("A", "m", "k", "h"), op("transpose", read("B", "k", "n", "h")))),)),
                Loop("k", (add_to(s, op("dot", read("A", "m", "k", "h"), op("transpose", read("B", "k", "n", "h")))),)),
                Store(output("Y", "m h n"), use(s)),
            ),
            tensor("A", "m k h"),
            tensor("B", "k n h"),
            output("Y", "m h n"),
        ),
        single(
            "shifted_product",
            indices(m=4, n=5, k=6),
            "m n",
            (
                Let(s, Number(0.0)),
                Loop(
                    "k",
                    (
                        add_to(
                            s,
                            op(
                                "dot",
                                read("A", address(m=1, offset=-1), "k"),
                                read("B", address(n=1, offset=1), "k"),
                            ),
                        ),
                    ),
                ),
                Store(Y, use(s)),
            ),
            tensor("A", "m k"),
            tensor("B", "n k"),
            Y,
        ),
        # A head that is not there: the right operand is zero as a whole.
        single(
            "guarded_product",
            indices(h=None, m=4, n=5, k=6),
            "h m n",
            (
                Let(s, Number(0.0)),
                Loop(
                    "k",
                    (
                        add_to(
                            s,
                            op(
                                "dot",
                                read("A", address(h=1, offset=-1), "m", "k"),
                                read("B", address(h=1, offset=1), "n", "k"),
                            ),
                        ),
                    ),
                ),
                Store(output("Y", "h m n"), use(s)),
            ),
            tensor("A", "h m k"),
            tensor("B", "h n k"),
            output("Y", "h m n"),
        ),
    ]
