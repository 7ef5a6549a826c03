"""One small kernel program for each thing that code generation could get wrong."""

from __future__ import annotations

import math

from bbrewrite.core.elements import Element
from bbrewrite.core.programs import Role
from bbrewrite.core.terms import Cast, IndexValue, Local, Number, Size
from bbrewrite.plan.kernel import KernelProgram, Let, Loop, Store, Update
from tests.codegen.kernel_cases import (
    BF16,
    BOOL,
    F16,
    F32,
    F64,
    I32,
    add_to,
    address,
    attention,
    block,
    entrywise,
    indices,
    kernel,
    layer_norm,
    matmul,
    op,
    output,
    program,
    read,
    single,
    swiglu,
    tensor,
    use,
)

X, Y = read("X", "m", "n"), output("Y", "m n")
IN = tensor("X", "m n")
MN = indices(m=4, n=8)


def general_cases() -> dict[str, KernelProgram]:
    """The cases by the names of their programs."""
    cases = [
        matmul(),
        matmul("matmul_f64", F64),
        matmul("matmul_f16", F16),
        matmul("matmul_bf16", BF16),
        matmul("matmul_i32", I32),
        attention(),
        attention("causal", causal=True),
        attention("grouped", batch=True),
        layer_norm(),
        swiglu(),
        *_products(),
        *_sharing(),
        *_positions(),
        *_addresses(),
        *_memory(),
        *_types(),
        _two_kernels(),
    ]
    return {case.name: case for case in cases}


def _products() -> list[KernelProgram]:
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


def _sharing() -> list[KernelProgram]:
    e = op("exp", X)
    total = op("recip", op("add", op("row_sum", e), op("row_max", e)))
    return [
        single("shared", MN, "m n", (Store(Y, op("row_scale", e, total)),), IN, Y),
        entrywise(
            "costly_spreads",
            op("row_scale", op("col_shift", X, op("tanh", read("u", "n"))), op("exp", read("v", "m"))),
            MN,
            "m n",
            IN,
            tensor("u", "n"),
            tensor("v", "m"),
            Y,
        ),
        entrywise("repeated", op("multiply", op("add", e, X), op("subtract", e, X)), MN, "m n", IN, Y),
        # Two users' operators, one named like a C++ keyword.
        entrywise("user_operator", op("double", op("multiply", op("weight", X, 0.5), 0.25)), MN, "m n", IN, Y),
        entrywise("columns", op("col_scale", X, op("col_sum", X)), MN, "m n", IN, Y),
        entrywise(
            "column_extremes", op("col_shift", X, op("add", op("col_max", X), op("col_min", X))), MN, "m n", IN, Y
        ),
    ]


def _positions() -> list[KernelProgram]:
    column = op("col_spread", IndexValue("n"), to="m")
    row = op("row_spread", IndexValue("m"), to="n")
    near = op("less", op("subtract", row, column), 3)
    return [
        entrywise("causal_mask", op("where", op("less_equal", column, row), X, -math.inf), MN, "m n", IN, Y),
        entrywise(
            "window",
            op("where", near, op("add", X, op("multiply", row, 0.5)), op("divide", column, Size("n"))),
            MN,
            "m n",
            IN,
            Y,
        ),
        entrywise(
            "between", op("where", op("less", row, 2.5), X, op("sin", op("multiply", column, 0.1))), MN, "m n", IN, Y
        ),
        entrywise(
            "point_position",
            op("multiply", X, op("power", 2, op("negate", op("add", IndexValue("h"), 1)))),
            indices(h=None, m=4, n=8),
            "h m n",
            IN,
            output("Y", "h m n"),
        ),
        entrywise("position_column", IndexValue("m"), MN, "m", output("Y", "m", I32)),
        *(
            entrywise(f"{name}_in_double", value, MN, "m n", tensor("X", "m n", F64), output("Y", "m n", F64))
            for name, value in (
                ("size", op("divide", X, op("sqrt", Size("n")))),
                ("tenth", op("multiply", X, 0.1)),
                ("angle", op("multiply", X, op("cos", op("multiply", row, 0.1)))),
            )
        ),
    ]


def _addresses() -> list[KernelProgram]:
    return [
        entrywise("shifted", read("X", address(m=1, offset=1), "n"), MN, "m n", IN, Y),
        entrywise("reversed", read("X", "m", address(n=-1, offset=-1, size="n")), MN, "m n", IN, Y),
        entrywise(
            "halved",
            read("X", address(m=1, divisor=2), address(n=1, offset=-3, divisor=2)),
            MN,
            "m n",
            IN,
            Y,
        ),
        entrywise("doubled", op("exp", read("X", address(m=2), address(n=3, offset=-7))), MN, "m n", IN, Y),
        entrywise("antidiagonals", read("x", address(m=1, n=1)), MN, "m n", tensor("x", "n"), Y),
        entrywise("transposed", op("transpose", read("X", "n", "m")), MN, "m n", tensor("X", "n m"), Y),
        entrywise(
            "folded_shift",
            op("row_scale", X, op("row_sum", read("X", "m", address(n=1, offset=-2)))),
            MN,
            "m n",
            IN,
            Y,
        ),
        entrywise("half_type_shift", read("X", "m", address(n=1, offset=1)), MN, "m n", tensor("X", "m n", F16), Y),
    ]


def _memory() -> list[KernelProgram]:
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


def _types() -> list[KernelProgram]:
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


def _two_kernels() -> KernelProgram:
    """A buffer between two kernels that use other block sizes."""
    buffer = tensor("T", "m n", F32, Role.BUFFER)
    total = block("total", "m")
    first = kernel(MN, "m n", (Store(buffer, op("exp", X)),), [IN], [buffer], "first")
    body = (
        Let(total, Number(0.0)),
        Loop("n", (add_to(total, op("row_sum", read("T", "m", "n"))),)),
        Store(output("Y", "m"), use(total)),
    )
    second = kernel(indices(m=3, n=5), "m", body, [buffer], [output("Y", "m")], "second")
    return program("two_kernels", [first, second], [buffer])
