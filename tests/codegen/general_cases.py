"""One small kernel program for each thing that code generation could get wrong."""

from __future__ import annotations

import math

from bbrewrite.core.programs import Role
from bbrewrite.core.terms import IndexValue, Number, Size
from bbrewrite.plan.kernel import KernelProgram, Let, Loop, Store
from tests.codegen.kernel_cases import (
    BF16,
    F16,
    F32,
    F64,
    I32,
    IN,
    MN,
    X,
    Y,
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
from tests.codegen.memory_cases import memory_cases
from tests.codegen.product_cases import product_cases
from tests.codegen.type_cases import type_cases


def general_cases() -> dict[str, KernelProgram]:
    """The cases by the names of their programs."""
    cases = [
        matmul(),
        matmul("matmul_f64", F64),
        matmul("matmul_f16", F16),
        matmul("matmul_bf16", BF16),
        matmul("matmul_i32", I32),
        # Rows enough that the right operand is packed.
        matmul("matmul_packed", b=24),
        matmul("matmul_packed_f64", F64, b=24),
        matmul("matmul_packed_bf16", BF16, b=24),
        swiglu("swiglu_packed", b=24),
        attention(),
        attention("causal", causal=True),
        attention("grouped", batch=True),
        layer_norm(),
        swiglu(),
        *product_cases(),
        *_sharing(),
        *_positions(),
        *_addresses(),
        *memory_cases(),
        *type_cases(),
        _two_kernels(),
    ]
    return {case.name: case for case in cases}


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
