"""Fetching in passing is waited for where panels are narrow, and what loops load again takes of the nearest memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bbrewrite.core.terms import Number
from bbrewrite.core.types import Typing
from bbrewrite.plan.costs.cost import NestCosts
from bbrewrite.plan.costs.events import summarise
from bbrewrite.plan.kernel import Let, Loop, Store, Update
from bbrewrite.plan.machine import Machine
from bbrewrite.plan.target import TOLERANCE
from tests.codegen.kernel_cases import (
    BF16,
    F32,
    add_to,
    block,
    indices,
    op,
    output,
    read,
    single,
    table_with_weight,
    tensor,
    use,
)
from tests.plan.headline import HEADLINE
from tests.plan.pipelines import NARROW, NO_RULES, plan_text, shipped_rules
from tests.plan.test_headline import blocks_of, only_kernel

TABLE = table_with_weight()
OPERATIONS = 7.0
BLOCK = 64.0
LARGE = {"m": 640, "n": 2048, "k": 1024}
A, B = read("A", "m", "k"), read("B", "k", "n")


def waited(extents: dict[str, int], element: object = F32, combines: bool = False, transposed: bool = False) -> float:
    """How much longer a product takes where fetching is waited for, in vector instructions for every vector of B in
    every block of rows.
    """
    total, held = block("total", "m n"), read("B", "n", "k") if transposed else op("transpose", B)
    product = op("dot", A, held)
    added = Update(total, op("add", use(total), product), ("weighted", 0)) if combines else add_to(total, product)
    body = (Let(total, Number(0.0)), Loop("k", (added,)), Store(output("C", "m n"), use(total)))
    right = tensor("B", "n k" if transposed else "k n", BF16 if element is BF16 else F32)
    program = single("product", indices(m=64, n=64, k=64), "m n", body, tensor("A", "m k"), right, output("C", "m n"))
    (kernel,) = program.kernels
    tensors = {item.name: item for item in (*kernel.reads, *kernel.writes)}
    typing = Typing(TABLE, program.indices, tensors).with_locals({b.name: b.type for b in kernel.local_blocks})
    events = summarise(kernel.body, kernel.grid, TABLE, typing, tensors)

    def seconds(operations: float) -> float:
        target = replace(NARROW, fetching_operations=operations)
        costs = NestCosts(
            events,
            kernel.grid,
            ("m", "n", "k"),
            extents,
            program.indices.with_extents(extents),
            Machine(target, 1, extents),
        )
        return costs.cheapest(np.array([[BLOCK]] * 3))[1].seconds

    vectors = extents["n"] * extents["k"] * -(-extents["m"] // BLOCK) / NARROW.vector_lanes
    return (seconds(OPERATIONS) - seconds(0.0)) * NARROW.vector_operations_per_second / vectors


def test_every_block_of_rows_waits_for_what_it_fetches() -> None:
    assert waited(LARGE) == pytest.approx(OPERATIONS)


@pytest.mark.parametrize("extents", [{**LARGE, "m": 16}, {**LARGE, "n": 64}], ids=["few rows", "soon near"])
def test_what_is_read_as_it_lies_or_is_near_is_not_waited_for(extents: dict[str, int]) -> None:
    assert waited(extents) == pytest.approx(0, abs=1e-6)


def test_what_is_packed_ahead_of_its_product_is_not_fetched_beside_it() -> None:
    assert waited(LARGE, element=BF16) == pytest.approx(0, abs=1e-6)
    assert waited(LARGE, transposed=True) == pytest.approx(0, abs=1e-6)
    assert waited(LARGE, combines=True) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(("queries", "keys"), [(4096, 4096), (1000, 3000)])
def test_queries_are_loaded_once(queries: int, keys: int) -> None:
    """A block that a loop loads again and again takes as much of the nearest memory as one that is kept."""
    planned = plan_text(HEADLINE["attention"], shipped_rules(), target=NARROW, m=queries, n=keys)
    blocks = blocks_of(planned, only_kernel(planned), "m")
    assert planned.plan.global_bytes <= 4 * 64 * (2 * queries + 2 * keys * blocks)
    assert not any("loads Q" in note for note in planned.repeated)


@pytest.mark.parametrize("name", HEADLINE)
def test_with_narrow_panels_the_programs_of_the_paper_are_one_kernel(name: str) -> None:
    only_kernel(planned := plan_text(HEADLINE[name], shipped_rules(), target=NARROW))
    unfused = plan_text(HEADLINE[name], NO_RULES, target=NARROW)
    assert planned.plan.seconds <= (1 + TOLERANCE) * unfused.plan.seconds


def test_taller_blocks_are_chosen_where_fetching_is_waited_for() -> None:
    """Weights are fetched less often than they would be if that took no time."""
    matmul = """\
program matmul
index m = 2048, k = 1024, n = 1024
input X[m, k] : f32
weight W[k, n] : f32
output Y[m, n] = sum[k](X[m, k] * W[k, n])
"""
    free = replace(NARROW, fetching_operations=0.0)
    rows = [blocks_of(p, only_kernel(p), "m") for p in (plan_text(matmul, NO_RULES, target=t) for t in (NARROW, free))]
    assert rows[0] < rows[1]
