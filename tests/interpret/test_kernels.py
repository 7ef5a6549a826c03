"""The kernel executor on hand-written kernels, with blocks that do not divide extents, and extents of 0 and 1."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from bbrewrite.core.addresses import index_address
from bbrewrite.core.elements import Element
from bbrewrite.core.indices import Index, IndexTable
from bbrewrite.core.programs import Role, Tensor
from bbrewrite.core.terms import Apply, IndexValue, Local, Number, Read, Term
from bbrewrite.core.types import BlockType
from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.plan.kernel import Kernel, KernelProgram, Let, LocalBlock, Loop, Statement, Store, Update
from tests.array_programs import TABLE

type Array = np.ndarray[Any, Any]


def read(tensor: str, *names: str) -> Term:
    return Read(tensor, tuple(map(index_address, names)))


def apply(operator: str, *operands: Term, indices: tuple[str, ...] = ()) -> Term:
    return Apply(operator, operands, indices)


def block(name: str, axes: str, lists: str = "", element: Element = Element.F32) -> LocalBlock:
    return LocalBlock(name, BlockType(tuple(axes), element), tuple(lists))


def tensor(name: str, indices: str, role: Role, element: Element = Element.F32) -> Tensor:
    return Tensor(name, tuple(indices), element, role)


def run(
    blocks: Mapping[str, int | None],
    tensors: tuple[Tensor, ...],
    kernels: list[tuple[str, tuple[Statement, ...]]],
    arrays: Mapping[str, Array],
    extents: Mapping[str, int],
) -> dict[str, Array]:
    indices = IndexTable.of([Index(name, None, block=size) for name, size in blocks.items()])
    of_role = {role: tuple(t for t in tensors if t.role is role) for role in Role}
    launches = tuple(Kernel(f"k{i}", indices, tuple(grid), body, (), ()) for i, (grid, body) in enumerate(kernels))
    inputs, buffers, outputs = of_role[Role.INPUT], of_role[Role.BUFFER], of_role[Role.OUTPUT]
    program = KernelProgram("test", indices, inputs, buffers, outputs, launches)
    return run_kernels(program, arrays, extents, TABLE)


def attention_kernel() -> tuple[Statement, ...]:
    """A running maximum, denominator and one row of output accumulators over blocks of l."""
    old, new, total = block("old", "m"), block("new", "m"), block("total", "m")
    scores, weights, rescale, row = block("s", "mn"), block("p", "mn"), block("r", "m"), block("acc", "ml", "l")
    visible = apply(
        "less_equal",
        apply("col_spread", IndexValue("n"), indices=("m",)),
        apply("row_spread", IndexValue("m"), indices=("n",)),
    )
    shift = apply("where", apply("equal", Local("new"), Number(-math.inf)), Number(0.0), apply("negate", Local("new")))
    products = apply("dot", read("Q", "m", "d"), read("K", "n", "d"))
    weighted = apply("dot", Local("p"), apply("transpose", read("V", "n", "l")))
    kept = apply("row_scale", Local("acc", ("l",)), Local("r"))
    inverse = apply("where", apply("equal", Local("total"), Number(0.0)), Number(0.0), apply("recip", Local("total")))
    return (
        Let(new, Number(-math.inf)),
        Let(total, Number(0.0)),
        Loop("l", (Let(row, Number(0.0)),)),
        Loop(
            "n",
            (
                Let(scores, Number(0.0)),
                Loop("d", (Update(scores, apply("add", Local("s"), products)),)),
                Update(scores, apply("where", visible, Local("s"), Number(-math.inf))),
                Let(old, Local("new")),
                Update(new, apply("maximum", Local("new"), apply("row_max", Local("s")))),
                Let(rescale, apply("exp", apply("add", Local("old"), shift))),
                Let(weights, apply("exp", apply("row_shift", Local("s"), shift))),
                Update(
                    total, apply("add", apply("multiply", Local("total"), Local("r")), apply("row_sum", Local("p")))
                ),
                Loop("l", (Update(row, apply("add", kept, weighted)),)),
            ),
        ),
        Loop("l", (Store(tensor("O", "ml", Role.OUTPUT), apply("row_scale", Local("acc", ("l",)), inverse)),)),
    )


@pytest.mark.parametrize("extents", [(7, 9, 5, 6), (1, 1, 1, 1), (64, 64, 64, 64), (10, 0, 3, 4), (0, 3, 3, 3)])
def test_causal_attention_in_one_kernel(extents: tuple[int, int, int, int]) -> None:
    sizes = dict(zip("mndl", extents, strict=True))
    m, n, d, l = extents  # noqa: E741
    generator = np.random.default_rng(0)
    q, k, v = (generator.normal(size=shape).astype(np.float32) for shape in ((m, d), (n, d), (n, l)))
    tensors = (
        tensor("Q", "md", Role.INPUT),
        tensor("K", "nd", Role.INPUT),
        tensor("V", "nl", Role.INPUT),
        tensor("O", "ml", Role.OUTPUT),
    )
    blocks = {"m": 4, "n": 3, "d": 2, "l": 5}
    found = run(blocks, tensors, [("m", attention_kernel())], {"Q": q, "K": k, "V": v}, sizes)["O"]
    weights = np.exp(q.astype(float) @ k.T) * (np.arange(n) <= np.arange(m)[:, None])
    total = weights.sum(1, keepdims=True)
    np.testing.assert_allclose(found, weights @ v / np.where(total == 0, 1, total), rtol=2e-5, atol=2e-5)


def test_buffers_pass_values_between_kernels_in_their_storage_type() -> None:
    tensors = (
        tensor("X", "mn", Role.INPUT, Element.BF16),
        tensor("S", "m", Role.BUFFER, Element.F16),
        tensor("Y", "mn", Role.OUTPUT, Element.BF16),
        tensor("Z", "", Role.OUTPUT),
    )
    total = block("t", "m")
    first = (
        Let(total, Number(0.0)),
        Loop("n", (Update(total, apply("add", Local("t"), apply("row_sum", read("X", "m", "n")))),)),
        Store(tensors[1], Local("t")),
    )
    second = (Store(tensors[2], apply("row_shift", read("X", "m", "n"), read("S", "m"))),)
    whole = block("w", "")
    third = (
        Let(whole, Number(0.0)),
        Loop("m", (Update(whole, apply("add", Local("w"), apply("sum_of", read("S", "m")))),)),
        Store(tensors[3], Local("w")),
    )
    x = np.random.default_rng(0).integers(-8, 8, (5, 7)).astype(ml_dtypes.bfloat16)
    kernels = [("m", first), ("mn", second), ("", third)]
    found = run({"m": 2, "n": 3}, tensors, kernels, {"X": x}, {"m": 5, "n": 7})
    exact = x.astype(float)
    assert found["Y"].dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(found["Y"].astype(float), exact + exact.sum(1, keepdims=True))
    assert found["Z"] == exact.sum()


def test_a_block_read_before_a_store_keeps_its_values() -> None:
    tensors = (tensor("X", "m", Role.INPUT), tensor("Y", "m", Role.OUTPUT))
    body = (
        Store(tensors[1], read("X", "m")),
        Let(block("a", "m"), read("Y", "m")),
        Store(tensors[1], Number(0.0)),
        Store(tensors[1], apply("add", Local("a"), Number(1.0))),
    )
    found = run({"m": 2}, tensors, [("m", body)], {"X": np.arange(5, dtype=np.float32)}, {"m": 5})
    assert found["Y"].tolist() == [1, 2, 3, 4, 5]


def test_point_loops_and_scalars() -> None:
    tensors = (tensor("X", "bm", Role.INPUT), tensor("Y", "m", Role.OUTPUT))
    total = block("t", "m")
    body = (
        Let(total, Number(1.0)),
        Loop("b", (Update(total, apply("multiply", Local("t"), apply("add", read("X", "b", "m"), IndexValue("b")))),)),
        Store(tensors[1], Local("t")),
    )
    x = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    found = run({"b": None, "m": 2}, tensors, [("m", body)], {"X": x}, {"b": 3, "m": 5})
    np.testing.assert_allclose(found["Y"], (x + np.arange(3)[:, None]).prod(0), rtol=1e-6)
