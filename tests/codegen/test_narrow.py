"""Products of bf16: which operands stay bf16 or are rounded to it, and that nothing else is lost by it."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from bbrewrite.codegen.passes.flatten import flatten
from bbrewrite.codegen.steps import PackedOperand, Product, Repeat, kept_element, leaf_name, names_written, walk_steps
from bbrewrite.core.elements import Element
from bbrewrite.core.operators import builtin_table
from bbrewrite.core.terms import Number, Term
from bbrewrite.core.types import Typing
from bbrewrite.host import host_target
from bbrewrite.plan.costs.cost import NestCosts
from bbrewrite.plan.costs.events import summarise
from bbrewrite.plan.kernel import KernelProgram, Let, Loop, Store, walk_statements
from bbrewrite.plan.machine import Machine
from tests.built import built
from tests.codegen.kernel_cases import BF16, F32, add_to, block, indices, op, output, read, single, tensor, use

TABLE = builtin_table()
X, W = read("X", "m", "k"), read("W", "n", "k")
TWICE = op("multiply", X, 2)


def _product(kept: Term, left: Element = BF16, right: Element = BF16, transposed: bool = False) -> KernelProgram:
    """Y = X W' (or X W), where a list of local blocks holds `kept`, and X's row sums are taken from it as well."""
    total, rows, sums = block("total", "m n"), block("rows", "m k", "k"), block("sums", "m")
    w = op("transpose", read("W", "k", "n")) if transposed else W
    body = (
        Let(sums, Number(0.0)),
        Loop("k", (Let(rows, kept), add_to(sums, op("row_sum", kept)))),
        Let(total, Number(0.0)),
        Loop("k", (add_to(total, op("dot", use(rows), w)),)),
        Store(output("Y", "m n"), op("row_shift", use(total), use(sums))),
    )
    axes = "k n" if transposed else "n k"
    tensors = tensor("X", "m k", left), tensor("W", axes, right), output("Y", "m n")
    return single("product", indices(m=20, n=8, k=16), "m n", body, *tensors)


@pytest.mark.parametrize(
    ("program", "narrow"),
    [
        pytest.param(_product(X), True, id="loaded"),
        pytest.param(_product(X, transposed=True), True, id="transposed"),
        pytest.param(_product(TWICE), True, id="computed"),
        pytest.param(_product(TWICE, transposed=True), True, id="computed, transposed"),
        pytest.param(_product(TWICE, left=F32), False, id="computed from single precision"),
        pytest.param(_product(X, left=F32), False, id="single precision on the left"),
        pytest.param(_product(X, right=F32), False, id="single precision on the right"),
        pytest.param(_product(TWICE, right=F32), False, id="computed, single precision on the right"),
    ],
)
def test_operands_are_bf16_where_all_they_come_from_is(program: KernelProgram, narrow: bool) -> None:
    (kernel,) = program.kernels
    flat = flatten(kernel, TABLE)
    products = [step for step in walk_steps(flat.steps) if isinstance(step, Product)]
    assert len(products) == 1
    right, left = products[0].right, products[0].left
    assert isinstance(right, PackedOperand)
    assert (right.element is BF16) == narrow
    kept = {block.name: kept_element(block) for block in flat.blocks}
    kept |= {tensor.name: tensor.element for tensor in kernel.reads}
    assert (kept[leaf_name(left)] is BF16) == narrow


def test_what_is_computed_is_rounded_once_and_only_for_the_product() -> None:
    (compiled,) = built([_product(op("multiply", X, 1 + 2**-9))], TABLE)
    random = np.random.default_rng(0)
    for m, n, k in [(20, 8, 16), (21, 9, 17), (3, 70, 131)]:
        x = random.standard_normal((m, k)).astype(ml_dtypes.bfloat16)
        w = random.integers(-9, 10, (n, k)).astype(ml_dtypes.bfloat16)
        found = compiled.run({"X": x, "W": w}, {"m": m, "n": n, "k": k}, 2)["Y"]
        exact = x.astype(np.float32) * np.float32(1 + 2**-9)
        product = exact.astype(ml_dtypes.bfloat16).astype(np.float64) @ w.astype(np.float64).T
        np.testing.assert_allclose(
            found, product + exact.sum(axis=1, dtype=np.float64, keepdims=True), rtol=0, atol=1e-4
        )


def test_a_load_that_only_products_used_goes() -> None:
    (kernel,) = _product(X).kernels
    assert any(isinstance(s, Let) and s.target.name == "rows" for s in walk_statements(kernel.body))
    assert "rows" not in [block.name for block in flatten(kernel, TABLE).blocks]


@pytest.mark.parametrize("transposed", [False, True])
def test_results_are_exact_for_all_sizes(transposed: bool) -> None:
    (compiled,) = built([_product(X, transposed=transposed)], TABLE)
    random = np.random.default_rng(0)
    for m, n, k in [(20, 8, 16), (1, 1, 1), (3, 7, 5), (21, 9, 17), (25, 70, 31), (7, 3, 0), (4, 4, 2)]:
        x = random.integers(-9, 10, (m, k)).astype(ml_dtypes.bfloat16)
        w = random.integers(-9, 10, (k, n) if transposed else (n, k)).astype(ml_dtypes.bfloat16)
        found = compiled.run({"X": x, "W": w}, {"m": m, "n": n, "k": k}, 2)["Y"]
        exact = x.astype(np.float64) @ (w.astype(np.float64) if transposed else w.astype(np.float64).T)
        np.testing.assert_array_equal(found, exact + x.astype(np.float64).sum(axis=1, keepdims=True))


@pytest.mark.parametrize("kept", [X, TWICE], ids=["loaded", "computed"])
def test_the_planner_counts_on_it(kept: Term) -> None:
    """Of two kernels that differ in nothing but the types in memory, the one in bf16 is estimated to be faster."""
    extents = {"m": 1024, "n": 1024, "k": 1024}

    def seconds(element: Element) -> float:
        (kernel,) = _product(kept, element, element).kernels
        tensors = {tensor.name: tensor for tensor in (*kernel.reads, *kernel.writes)}
        events = summarise(kernel.body, kernel.grid, TABLE, Typing(TABLE, kernel.indices, tensors), tensors)
        memory = tuple(replace(tier, bytes_per_second=1e30) for tier in host_target().memory)
        target = replace(host_target(), memory=memory)
        indices, machine = kernel.indices.with_extents(extents), Machine(target, 1, extents)
        costs = NestCosts(events, kernel.grid, ("m", "n", "k"), extents, indices, machine)
        return costs.cheapest(np.array([[64.0], [64.0], [64.0]]))[1].seconds

    assert seconds(BF16) < 0.8 * seconds(F32)


@pytest.mark.parametrize("kept", [X, op("multiply", X, 1)], ids=["loaded", "computed"])
def test_infinities_and_nan_stay_in_their_rows_and_columns(kept: Term) -> None:
    (compiled,) = built([_product(kept)], TABLE)
    x, w = np.ones((3, 5), ml_dtypes.bfloat16), np.ones((4, 5), ml_dtypes.bfloat16)
    x[1, 4], w[2, 4] = np.inf, np.nan
    found = compiled.run({"X": x, "W": w}, {"m": 3, "n": 4, "k": 5}, 1)["Y"]
    assert np.isnan(found[:, 2]).all()
    assert np.isinf(found[1, [0, 1, 3]]).all()
    assert (found[[0, 2]][:, [0, 1, 3]] == 10).all()


def _products_of_one_block(beside: Term | None) -> KernelProgram:
    """Y = f(X) W, where a list of blocks of f(X) is multiplied by one block of W after another; `beside` reads one."""
    total, rows, sums = block("total", "m n"), block("rows", "m k", "k"), block("sums", "m")
    added = (add_to(sums, op("row_sum", beside)),) if beside else ()
    body = (
        Let(sums, Number(0.0)),
        Loop("k", (Let(rows, op("multiply", X, 1 + 2**-9)), *added)),
        Loop(
            "n",
            (
                Let(total, Number(0.0)),
                Loop("k", (add_to(total, op("dot", use(rows), W)),)),
                Store(output("Y", "m n"), op("row_shift", use(total), use(sums))),
            ),
        ),
    )
    tensors = tensor("X", "m k", BF16), tensor("W", "n k", BF16), output("Y", "m n")
    return single("products", indices(m=20, n=8, k=16), "m", body, *tensors)


@pytest.mark.parametrize("beside", [None, use(block("rows", "m k", "k"))], ids=["by products", "by a sum too"])
def test_what_many_products_take_is_rounded_where_it_is_computed(beside: Term | None) -> None:
    program = _products_of_one_block(beside)
    (kernel,) = program.kernels
    flat = flatten(kernel, TABLE)
    kept = {block.name: block for block in flat.blocks}
    (product,) = (step for step in walk_steps(flat.steps) if isinstance(step, Product))
    left = kept[leaf_name(product.left)]
    assert kept_element(left) is BF16
    assert left.list_indices == ("k",)
    assert not kept["rows"].list_indices  # only its neighbours need it
    (inside,) = (step for step in walk_steps(flat.steps) if isinstance(step, Repeat) and step.index == "n")
    assert left.name not in names_written(inside)
    (compiled,) = built([program], TABLE)
    random = np.random.default_rng(0)
    for m, n, k in [(20, 8, 16), (21, 19, 37)]:
        x = random.standard_normal((m, k)).astype(ml_dtypes.bfloat16)
        w = random.integers(-9, 10, (n, k)).astype(ml_dtypes.bfloat16)
        found = compiled.run({"X": x, "W": w}, {"m": m, "n": n, "k": k}, 2)["Y"]
        exact = x.astype(np.float32) * np.float32(1 + 2**-9)
        product = exact.astype(ml_dtypes.bfloat16).astype(np.float64) @ w.astype(np.float64).T
        sums = exact.sum(axis=1, dtype=np.float64, keepdims=True) if beside else 0
        np.testing.assert_allclose(found, product + sums, rtol=0, atol=1e-4)
