"""Kernel programs written by hand, and arrays to run them on, for the tests of code generation and the runtime."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bbrewrite.core.addresses import Address, index_address, make_address
from bbrewrite.core.elements import Element
from bbrewrite.core.indices import Index, IndexTable
from bbrewrite.core.operators import OperatorTable, ScalarFunction, builtin_table
from bbrewrite.core.programs import Role, Tensor
from bbrewrite.core.terms import Apply, IndexValue, Local, Number, Read, Size, Term
from bbrewrite.core.types import BlockType
from bbrewrite.plan.kernel import Kernel, KernelProgram, Let, LocalBlock, Loop, Statement, Store, Update

F16, BF16, F32, F64, I32, BOOL = Element.F16, Element.BF16, Element.F32, Element.F64, Element.I32, Element.BOOL
INF = math.inf


def indices(**blocks: int | str | None) -> IndexTable:
    """`m=4` is blocked by 4, `b=None` a point index, `e="d:8"` has d's extent and blocks of 8 (`"d"`: a point)."""
    table: list[Index] = []
    for name, block in blocks.items():
        if isinstance(block, str):
            root, _, size = block.partition(":")
            table.append(Index(name, same_as=root, block=int(size) if size else None))
        else:
            table.append(Index(name, block=block))
    return IndexTable.of(table)


def tensor(name: str, axes: str, element: Element = F32, role: Role = Role.INPUT) -> Tensor:
    return Tensor(name, tuple(axes.split()), element, role)


def output(name: str, axes: str, element: Element = F32) -> Tensor:
    return tensor(name, axes, element, Role.OUTPUT)


def read(name: str, *addresses: str | Address) -> Read:
    return Read(name, tuple(index_address(a) if isinstance(a, str) else a for a in addresses))


def address(offset: int = 0, divisor: int = 1, size: str = "", **coefficients: int) -> Address:
    return make_address(list(coefficients.items()), [(size, 1)] if size else [], offset, divisor)


def op(name: str, *operands: Term | float, to: str = "") -> Apply:
    terms = tuple(o if isinstance(o, Term) else Number(float(o)) for o in operands)
    return Apply(name, terms, (to,) if to else ())


def block(name: str, axes: str = "", of: str = "", element: Element = F32) -> LocalBlock:
    return LocalBlock(name, BlockType(tuple(axes.split()), element), tuple(of.split()))


def use(target: LocalBlock) -> Local:
    return Local(target.name, target.list_indices)


def add_to(target: LocalBlock, value: Term) -> Update:
    return Update(target, op("add", use(target), value))


def kernel(
    table: IndexTable,
    grid: str,
    body: Sequence[Statement],
    reads: Sequence[Tensor],
    writes: Sequence[Tensor],
    name: str = "kernel",
) -> Kernel:
    return Kernel(name, table, tuple(grid.split()), tuple(body), tuple(reads), tuple(writes))


def program(name: str, kernels: Sequence[Kernel], buffers: Sequence[Tensor] = ()) -> KernelProgram:
    touched = list(dict.fromkeys(t for k in kernels for t in (*k.reads, *k.writes)))
    inputs = tuple(t for t in touched if t.role in (Role.INPUT, Role.WEIGHT))
    outputs = tuple(t for t in touched if t.role is Role.OUTPUT)
    return KernelProgram(name, kernels[0].indices, inputs, tuple(buffers), outputs, tuple(kernels))


def single(name: str, table: IndexTable, grid: str, body: Sequence[Statement], *tensors: Tensor) -> KernelProgram:
    """A program of one kernel that reads the inputs and writes the outputs among `tensors`."""
    reads = [t for t in tensors if t.role is not Role.OUTPUT]
    writes = [t for t in tensors if t.role is Role.OUTPUT]
    return program(name, [kernel(table, grid, body, reads, writes, f"{name}_kernel")])


def matmul(name: str = "matmul", element: Element = F32, b: int = 8) -> KernelProgram:
    acc = block("acc", "m n", element=element.compute_type)
    body = (
        Let(acc, Number(0.0)),
        Loop("k", (add_to(acc, op("dot", read("A", "m", "k"), op("transpose", read("B", "k", "n")))),)),
        Store(output("C", "m n", element), use(acc)),
    )
    return single(
        name, indices(m=b, n=b + 8, k=b), "m n", body,
        tensor("A", "m k", element), tensor("B", "k n", element), output("C", "m n", element),
    )  # fmt: skip


def shift_of(maximum: Term) -> Term:
    """What a row is shifted by before it is exponentiated: minus its maximum, 0 for a hidden row."""
    return op("where", op("equal", maximum, -INF), 0, op("negate", maximum))


def attention(name: str = "attention", b: int = 8, causal: bool = False, batch: bool = False) -> KernelProgram:
    """softmax(Q K') V with a running maximum and denominator; `batch` adds grouped-query heads."""
    table = indices(h=None, g=None, m=b, n=b, d=b, l=b) if batch else indices(m=b, n=b, d=b, l=b)
    top, new, total, weight = block("M", "m"), block("M_new", "m"), block("c", "m"), block("w", "m")
    score, e, acc = block("S", "m n"), block("E", "m n"), block("acc", "m l")
    own = ("h",) if batch else ()
    shared = (address(h=1, divisor=2),) if batch else ()
    hidden = op("greater", op("col_spread", IndexValue("n"), to="m"), op("row_spread", IndexValue("m"), to="n"))
    scaled = op("divide", use(score), op("sqrt", Size("d")))
    body = (
        Let(top, Number(-INF)),
        Let(total, Number(0.0)),
        Let(acc, Number(0.0)),
        Loop(
            "n",
            (
                Let(score, Number(0.0)),
                Loop("d", (add_to(score, op("dot", read("Q", *own, "m", "d"), read("K", *shared, "n", "d"))),)),
                Update(score, op("where", hidden, -INF, scaled) if causal else scaled),
                Let(new, op("maximum", use(top), op("row_max", use(score)))),
                Let(
                    weight,
                    op("where", op("equal", use(top), use(new)), 1, op("exp", op("subtract", use(top), use(new)))),
                ),
                Let(e, op("exp", op("row_shift", use(score), shift_of(use(new))))),
                Update(total, op("add", op("multiply", use(total), use(weight)), op("row_sum", use(e)))),
                Update(
                    acc,
                    op(
                        "add",
                        op("row_scale", use(acc), use(weight)),
                        op("dot", use(e), op("transpose", read("V", *shared, "n", "l"))),
                    ),
                ),
                Update(top, use(new)),
            ),
        ),
        Store(
            output("O", "h m l" if batch else "m l"),
            op("row_scale", use(acc), op("where", op("equal", use(total), 0), 0, op("recip", use(total)))),
        ),
    )
    lead, group = ("h ", "g ") if batch else ("", "")
    return single(
        name, table, f"{lead}m l", body,
        tensor("Q", f"{lead}m d"), tensor("K", f"{group}n d"), tensor("V", f"{group}n l"), output("O", f"{lead}m l"),
    )  # fmt: skip


def layer_norm(name: str = "layer_norm", b: int = 8) -> KernelProgram:
    """A row of blocks is kept local and passed over twice more: mean, variance, result."""
    table = indices(m=b, k=b)
    row, total, square = block("row", "m k", of="k"), block("total", "m"), block("square", "m")
    mean, scale = block("mean", "m"), block("scale", "m")
    centred = op("row_shift", use(row), op("negate", use(mean)))
    body = (
        Let(total, Number(0.0)),
        Loop("k", (Let(row, read("X", "m", "k")), add_to(total, op("row_sum", use(row))))),
        Let(mean, op("divide", use(total), Size("k"))),
        Let(square, Number(0.0)),
        Loop("k", (add_to(square, op("row_sum", op("power", centred, 2))),)),
        Let(scale, op("rsqrt", op("add", op("divide", use(square), Size("k")), 1e-5))),
        Loop("k", (Store(output("Y", "m k"), op("col_scale", op("row_scale", centred, use(scale)), read("g", "k"))),)),
    )
    return single(name, table, "m", body, tensor("X", "m k"), tensor("g", "k"), output("Y", "m k"))


def swiglu(name: str = "swiglu", b: int = 8, whole_list: bool = False) -> KernelProgram:
    """One kernel for the feed-forward network: a local row of accumulators, initialised one by one or as a whole."""
    table = indices(m=b, d=b, f=b + 3, e=f"d:{b}")
    up, gate, acc = block("up", "m f"), block("gate", "m f"), block("acc", "m e", of="e")
    hidden = op("multiply", op("silu", use(up)), use(gate))
    start = Let(acc, Number(0.0))
    body = (
        start if whole_list else Loop("e", (start,)),
        Loop(
            "f",
            (
                Let(up, Number(0.0)),
                Let(gate, Number(0.0)),
                Loop(
                    "d",
                    (
                        add_to(up, op("dot", read("X", "m", "d"), op("transpose", read("W1", "d", "f")))),
                        add_to(gate, op("dot", read("X", "m", "d"), op("transpose", read("W3", "d", "f")))),
                    ),
                ),
                Loop("e", (add_to(acc, op("dot", hidden, op("transpose", read("W2", "f", "e")))),)),
            ),
        ),
        Loop("e", (Store(output("Y", "m e"), use(acc)),)),
    )
    return single(
        name, table, "m", body,
        tensor("X", "m d"), tensor("W1", "d f"), tensor("W3", "d f"), tensor("W2", "f e"), output("Y", "m e"),
    )  # fmt: skip


def entrywise(name: str, value: Term, table: IndexTable, grid: str, *tensors: Tensor) -> KernelProgram:
    """A kernel that stores one expression."""
    target = next(t for t in tensors if t.role is Role.OUTPUT)
    return single(name, table, grid, (Store(target, value),), *tensors)


def arrays_for(
    program: KernelProgram, extents: Mapping[str, int], seed: int, positive: bool = False
) -> dict[str, np.ndarray[Any, Any]]:
    """Normal numbers, small integers and coins, in the types of the inputs."""
    generator = np.random.default_rng(seed)
    found: dict[str, np.ndarray[Any, Any]] = {}
    for entry in program.inputs:
        shape = tuple(extents[program.indices.root(index)] for index in entry.indices)
        if entry.element is BOOL:
            values = generator.integers(0, 2, shape)
        elif entry.element is I32:
            values = generator.integers(0, 10, shape)
        else:
            values = generator.standard_normal(shape)
        found[entry.name] = np.asarray(np.abs(values) + 0.5 if positive else values).astype(entry.element.numpy_type)
    return found


def table_with_weight() -> OperatorTable:
    """The built-in table and a user's `op weight(a, b) = where(a == b, 1, exp(a - b))`, used by another one."""
    a, b = Local("a"), Local("b")
    weight = ScalarFunction(
        "weight", 2, "float", 16, parameters=("a", "b"),
        body=op("where", op("equal", a, b), 1, op("exp", op("subtract", a, b))),
    )  # fmt: skip
    twice = ScalarFunction(
        "double", 1, "float", 18, parameters=("a",), body=op("add", op("weight", a, 0), op("weight", a, 0))
    )
    return builtin_table().with_function(weight).with_function(twice)


# What the cases of single statements read and write.
X, Y = read("X", "m", "n"), output("Y", "m n")
IN = tensor("X", "m n")
MN = indices(m=4, n=8)
