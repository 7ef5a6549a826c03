"""Values of every element type, and conversions between them."""

from __future__ import annotations

import math

from bbrewrite.core.elements import Element
from bbrewrite.core.terms import Cast, Number
from bbrewrite.plan.kernel import KernelProgram, Let, Loop, Store, Update
from tests.codegen.kernel_cases import (
    BF16,
    BOOL,
    F16,
    I32,
    IN,
    MN,
    X,
    Y,
    add_to,
    block,
    entrywise,
    op,
    output,
    read,
    single,
    tensor,
    use,
)


def type_cases() -> list[KernelProgram]:
    """The cases."""
    count, seen = block("c", "m", element=Element.INDEX), block("c", "m", element=BOOL)
    half, whole, truth = tensor("X", "m n", F16), tensor("X", "m n", I32), tensor("X", "m n", BOOL)
    return [
        entrywise("halves", op("exp", X), MN, "m n", half, output("Y", "m n", BF16)),
        entrywise("integers", op("add", op("multiply", X, X), 1), MN, "m n", whole, output("Y", "m n", I32)),
        entrywise("fraction", op("multiply", X, 0.5), MN, "m n", whole, Y),
        entrywise(
            "truth",
            op("or", op("and", X, read("Z", "m", "n")), op("not", X)),
            MN,
            "m n",
            truth,
            tensor("Z", "m n", BOOL),
            output("Y", "m n", BOOL),
        ),
        entrywise("true_plus_true", op("add", X, X), MN, "m n", truth, output("Y", "m n", I32)),
        entrywise(
            "masked",
            op("where", read("mask", "m", "n"), X, -math.inf),
            MN,
            "m n",
            half,
            tensor("mask", "m n", BOOL),
            output("Y", "m n", F16),
        ),
        entrywise("cast", op("add", Cast("f32", X), 0.5), MN, "m n", whole, Y),
        entrywise("truncated", Cast("i32", op("multiply", X, 3)), MN, "m n", IN, output("Y", "m n", I32)),
        entrywise(
            "compared",
            op("less", X, read("x", "m", "n")),
            MN,
            "m n",
            whole,
            tensor("x", "m n"),
            output("Y", "m n", BOOL),
        ),
        single(
            "counted",
            MN,
            "m",
            (
                Let(count, Number(0.0)),
                Loop("n", (add_to(count, op("row_sum", op("where", op("greater", X, 4), 1, 0))),)),
                Store(output("Y", "m", I32), use(count)),
            ),
            whole,
            output("Y", "m", I32),
        ),
        single(
            "any",
            MN,
            "m",
            (
                Let(seen, Number(0.0)),
                Loop("n", (Update(seen, op("or", use(seen), op("row_max", X))),)),
                Store(output("Y", "m", BOOL), use(seen)),
            ),
            truth,
            output("Y", "m", BOOL),
        ),
    ]
