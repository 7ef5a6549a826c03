"""Sums of products that are made where they are stored: which ones, and that results stay what they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from bbrewrite.codegen.passes.flatten import flatten
from bbrewrite.codegen.steps import Product, walk_steps
from bbrewrite.core.elements import Element
from bbrewrite.core.operators import builtin_table
from bbrewrite.core.programs import Role, Tensor
from bbrewrite.core.terms import Number, Term
from bbrewrite.plan.kernel import KernelProgram, Let, Loop, Statement, Store
from bbrewrite.runtime.module import compile_programs
from tests.codegen.kernel_cases import (
    BF16,
    F32,
    add_to,
    arrays_for,
    block,
    indices,
    op,
    output,
    read,
    single,
    tensor,
    use,
)

TABLE = builtin_table()
SUM = block("acc", "m n")
EXTENTS = {"m": 200, "k": 300, "n": 150}
X, W = read("X", "m", "k"), read("W", "k", "n")


def _program(
    stored: Term | None = None,
    element: Element = F32,
    extents: Mapping[str, int] = EXTENTS,
    before: Sequence[Statement] = (),
) -> KernelProgram:
    """Y = X W in blocks that contract up to 320 at once."""
    result = output("Y", "m n", element)
    body = (
        Let(SUM, Number(0.0)),
        Loop("k", (*before, add_to(SUM, op("dot", X, op("transpose", W))))),
        Store(result, use(SUM) if stored is None else stored),
    )
    weight = Tensor("W", ("k", "n"), F32, Role.WEIGHT)
    table = indices(m=200, k=320, n=64)
    made = single("product", table, "m n", body, tensor("X", "m k"), weight, result)
    kernels = tuple(replace(one, indices=one.indices.with_extents(extents)) for one in made.kernels)
    return replace(made, indices=made.indices.with_extents(extents), kernels=kernels)


def _targets(program: KernelProgram, prepared: bool = True) -> list[str]:
    (kernel,) = program.kernels
    flat = flatten(kernel, TABLE, frozenset({"W"} if prepared else ()))
    names = [step.target.name for step in walk_steps(flat.steps) if isinstance(step, Product)]
    assert [one.name for one in flat.blocks if one.name == SUM.name] == ([] if names == ["Y"] else [SUM.name])
    return names


def test_a_sum_that_is_stored_as_it_is_is_made_there() -> None:
    assert _targets(_program()) == ["Y"]


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(_program(op("relu", use(SUM))), id="more is done with it"),
        pytest.param(_program(element=BF16), id="stored in another type"),
        pytest.param(_program(extents=EXTENTS | {"k": 400}), id="several products"),
        pytest.param(_program(extents=EXTENTS | {"n": 5000}), id="a large weight"),
        pytest.param(_program(before=(Let(block("rows", "m"), op("row_sum", X)),)), id="more in the loop"),
    ],
)
def test_other_sums_have_blocks(program: KernelProgram) -> None:
    assert _targets(program) == [SUM.name]


def test_sums_that_pack_their_weight_have_blocks() -> None:
    assert _targets(_program(), prepared=False) == [SUM.name]


def test_results_are_the_same_at_other_extents() -> None:
    (compiled,) = compile_programs([_program()], TABLE, prepare=True)
    for m, k, n in ((200, 300, 150), (450, 320, 64), (37, 700, 131), (1, 1, 1), (100, 5, 64)):
        extents = {"m": m, "k": k, "n": n}
        arrays = {name: np.rint(4 * array) for name, array in arrays_for(_program(), extents, 0).items()}
        found = compiled.run(compiled.prepare(arrays, 2), extents, 2)["Y"]
        # Small whole numbers: every sum is exact.
        np.testing.assert_array_equal(found, arrays["X"] @ arrays["W"])
