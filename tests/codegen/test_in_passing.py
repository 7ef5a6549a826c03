"""Right operands that are packed in passing: which ones, and that products with them are right."""

from __future__ import annotations

import re
from itertools import pairwise, product

import numpy as np
import pytest

from bbrewrite.codegen.cpp.program import print_programs
from bbrewrite.codegen.passes.flatten import flatten
from bbrewrite.codegen.passes.in_passing import with_operands_in_passing
from bbrewrite.codegen.steps import Pack, PackedInPassing, Product, leaf_name, walk_steps
from bbrewrite.core.elements import Element
from bbrewrite.core.operators import builtin_table
from bbrewrite.core.terms import Number, Term
from bbrewrite.plan.kernel import KernelProgram, Let, Loop, Store
from bbrewrite.runtime.module import compile_program, compile_programs
from tests.codegen.kernel_cases import (
    BF16,
    F32,
    F64,
    add_to,
    arrays_for,
    attention,
    block,
    indices,
    matmul,
    op,
    output,
    read,
    single,
    tensor,
    use,
)

TABLE = builtin_table()
ROWS = 24  # blocks of fewer rows take some operands as they lie


def _passing(program: KernelProgram) -> tuple[set[str], set[str]]:
    """The operands that are packed in passing, and those that are packed before."""
    (kernel,) = program.kernels
    flat = with_operands_in_passing(flatten(kernel, TABLE), kernel)
    steps = list(walk_steps(flat.steps))
    rights = [step.right for step in steps if isinstance(step, Product)]
    passing = [right for right in rights if isinstance(right, PackedInPassing)]
    packs = [step for step in steps if isinstance(step, Pack)]
    assert set(flat.packed) == {right.panel for right in passing} | {step.packed for step in packs}
    return {leaf_name(right.source) for right in passing}, {leaf_name(step.source) for step in packs}


def _sum_of_products(*products: Term) -> KernelProgram:
    total = block("total", "m n")
    table = indices(m=ROWS, n=200, k=ROWS)
    body = (
        Let(total, Number(0.0)),
        Loop("k", tuple(add_to(total, product) for product in products)),
        Store(output("Y", "m n"), use(total)),
    )
    tensors = tensor("A", "m k"), tensor("B", "m k"), tensor("X", "k n"), tensor("W", "n k"), output("Y", "m n")
    return single("sum_of_products", table, "m n", body, *tensors)


def _times(left: str, right: Term) -> Term:
    return op("dot", read(left, "m", "k"), right)


def _of_itself() -> KernelProgram:
    """Y = t + (v v') t, by t := t + u t: what is added to is itself the right operand."""
    t, u = block("t", "m k"), block("u", "m m")
    body = (
        Let(t, read("X", "m", "k")),
        Let(u, op("outer", read("v", "m"), read("v", "m"))),
        add_to(t, op("dot", use(u), op("transpose", use(t)))),
        Store(output("Y", "m k"), use(t)),
    )
    table = indices(m=ROWS, k=200)
    return single("of_itself", table, "m k", body, tensor("v", "m"), tensor("X", "m k"), output("Y", "m k"))


X = op("transpose", read("X", "k", "n"))


@pytest.mark.parametrize(
    ("program", "passing", "packed"),
    [
        pytest.param(matmul(b=ROWS), {"B"}, set[str](), id="f32"),
        pytest.param(matmul(element=F64, b=ROWS), {"B"}, set[str](), id="f64"),
        pytest.param(matmul(element=BF16, b=ROWS), set[str](), {"B"}, id="pairs of bf16"),
        pytest.param(_sum_of_products(_times("A", read("W", "n", "k"))), set[str](), {"W"}, id="columns of a product"),
        pytest.param(_sum_of_products(_times("A", X), _times("B", X)), set[str](), {"X"}, id="for two products"),
        pytest.param(_sum_of_products(_times("A", X), _times("B", read("W", "n", "k"))), {"X"}, {"W"}, id="one of two"),
        pytest.param(_of_itself(), set[str](), {"t"}, id="what is added to"),
        pytest.param(attention(b=ROWS), set[str](), {"K", "V"}, id="in two branches"),
    ],
)
def test_what_lies_row_by_row_for_one_product_is_packed_in_passing(
    program: KernelProgram, passing: set[str], packed: set[str]
) -> None:
    assert _passing(program) == (passing, packed)


def _product(rows: int, columns: int, element: Element) -> KernelProgram:
    name = f"product_{rows}_{columns}_{element.value}"
    acc = block("acc", "m n", element=element)
    body = (
        Let(acc, Number(0.0)),
        Loop("k", (add_to(acc, op("dot", read("A", "m", "k"), op("transpose", read("B", "k", "n")))),)),
        Store(output("C", "m n", element), use(acc)),
    )
    tensors = tensor("A", "m k", element), tensor("B", "k n", element), output("C", "m n", element)
    return single(name, indices(m=rows, n=columns, k=37), "m n", body, *tensors)


def test_products_are_right() -> None:
    """With blocks of one panel and of several, full and not; at extents that end in all kinds of blocks."""
    sizes = product((17, 24, 64), (40, 64, 200, 256), (F32, F64))
    programs = [_product(*size) for size in sizes]
    for program, compiled in zip(programs, compile_programs(programs, TABLE), strict=True):
        assert _passing(program) == ({"B"}, set())
        for extents in ({"m": 70, "n": 300, "k": 75}, {"m": 1, "n": 1, "k": 1}, {"m": 65, "n": 257, "k": 37}):
            arrays = arrays_for(program, extents, 0)
            (found,) = compiled.run(arrays, extents, 2).values()
            want = arrays["A"].astype(np.float64) @ arrays["B"].astype(np.float64)
            np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-4)


def _of_heads() -> KernelProgram:
    """C = sum over h and k of A[h] B[h], with the loop over blocks of k inside the one over h."""
    acc = block("acc", "m n")
    product = op("dot", read("A", "h", "m", "k"), op("transpose", read("B", "k", "h", "n")))
    body = (
        Let(acc, Number(0.0)),
        Loop("h", (Loop("k", (add_to(acc, product),)),)),
        Store(output("C", "m n"), use(acc)),
    )
    tensors = tensor("A", "h m k"), tensor("B", "k h n"), output("C", "m n")
    return single("of_heads", indices(h=None, m=32, n=64, k=37), "m n", body, *tensors)


def _chosen(ahead: str, names: dict[str, int]) -> int:
    """The value of `condition ? value : condition ? value : ... : value`."""
    *cases, otherwise = ahead.split(" : ")
    for case in cases:
        condition, value = case.split(" ? ")
        if eval(condition, names):
            return eval(value, names)
    return eval(otherwise, names)


@pytest.mark.parametrize(("program", "heads"), [(_product(32, 64, F32), 1), (_of_heads(), 3)], ids=["blocks", "heads"])
def test_the_next_block_is_fetched_wherever_a_loop_takes_it_from(program: KernelProgram, heads: int) -> None:
    """Also where inner loops over blocks begin anew, and an outer one has moved on."""
    (index_n, index_k), size = (program.kernels[0].indices[name] for name in ("n", "k")), {"n": 150, "k": 100}
    printed = re.search(r"bb::dot_in_passing_(?:set|add)\((.*)\);", print_programs([program], TABLE).text)
    assert printed is not None
    ahead = printed[1].split(", ")[7]
    places: list[int] = []
    found: list[int] = []
    blocks = range(0, size["n"], index_n.block), range(heads), range(0, size["k"], index_k.block)
    for n0, h, k0 in product(*blocks):
        counts = {"n_count": min(index_n.block, size["n"] - n0), "k_count": min(index_k.block, size["k"] - k0)}
        sizes = {"size_n": size["n"], "size_k": size["k"], "size_h": heads}
        places.append((k0 * heads + h) * size["n"] + n0)
        found.append(_chosen(ahead, {"n0": n0, "h": h, "k0": k0, **counts, **sizes}))
    assert len(places) == 9 * heads
    assert found[:-1] == [after - before for before, after in pairwise(places)]


def test_a_block_can_be_added_to_itself_multiplied() -> None:
    program, extents = _of_itself(), {"m": ROWS, "k": 200}
    arrays = arrays_for(program, extents, 0)
    (found,) = compile_program(program, TABLE).run(arrays, extents, 1).values()
    v, x = (arrays[name].astype(np.float64) for name in ("v", "X"))
    np.testing.assert_allclose(found, x + np.outer(v, v) @ x, rtol=1e-5, atol=1e-4)
