"""What blocks come from: sums are held wide and rounded, which makes nothing of them that they were not."""

from __future__ import annotations

import pytest

from bbrewrite.core.elements import Element
from bbrewrite.core.operators import builtin_table
from bbrewrite.core.terms import Cast, Number
from bbrewrite.core.types import Typing
from bbrewrite.plan.kernel import Barrier, Let, Loop, Merge, Store
from bbrewrite.plan.nests.natural_types import NaturalTypes
from tests.codegen.kernel_cases import BF16, F32, F64, add_to, block, indices, op, output, read, single, tensor, use


@pytest.mark.parametrize(
    ("summed", "shifted", "cast", "natural"),
    [
        pytest.param(BF16, BF16, "f32", BF16, id="a rounded sum of bf16"),
        pytest.param(F32, BF16, "f32", F32, id="a rounded sum of f32"),
        pytest.param(F64, BF16, "f32", F32, id="double precision that the program rounds"),
        pytest.param(BF16, F32, "f32", F32, id="a shifted block of f32"),
        pytest.param(F32, BF16, "bf16", BF16, id="a sum that the program rounds to bf16"),
    ],
)
def test_the_type_that_a_shifted_block_comes_from(
    summed: Element, shifted: Element, cast: str, natural: Element
) -> None:
    sums, mean = block("sums", "m", element=F64), block("mean", "m")
    body = (
        Let(sums, Number(0.0)),
        Loop("k", (add_to(sums, op("row_sum", read("A", "m", "k"))),)),
        Let(mean, Cast(cast, op("negate", use(sums)))),
        Loop("k", (Store(output("Y", "m k"), op("row_shift", read("X", "m", "k"), use(mean))),)),
    )
    tensors = tensor("A", "m k", summed), tensor("X", "m k", shifted), output("Y", "m k")
    (kernel,) = single("shifted", indices(m=16, k=16), "m", body, *tensors).kernels
    store = body[-1].body[0]
    assert isinstance(store, Store)
    held = {local.name: local.type for local in kernel.local_blocks}
    known = {one.name: one for one in tensors}
    typing = Typing(builtin_table(), kernel.indices, known, held)
    assert NaturalTypes(kernel.body, typing, known).element(store.expression) is natural


@pytest.mark.parametrize("summed", [BF16, F32])
def test_what_processors_merge_comes_from_what_each_of_them_computed(summed: Element) -> None:
    sums, merged, mean = block("sums", "m", element=F64), block("merged", "m", element=F64), block("mean", "m")
    body = (
        Let(sums, Number(0.0)),
        Loop("k", (add_to(sums, op("row_sum", read("A", "m", "k"))),), shared=True),
        Barrier(),
        Merge(merged, sums, "sum"),
        Let(mean, Cast("f32", op("rsqrt", use(merged)))),
        Loop("k", (Store(output("Y", "m k"), op("row_scale", read("A", "m", "k"), use(mean))),), shared=True),
    )
    tensors = {"A": tensor("A", "m k", summed), "Y": output("Y", "m k")}
    table = indices(m=16, k=16)
    (kernel,) = single("merged", table, "", (Loop("m", body),), *tensors.values()).kernels
    held = {local.name: local.type for local in kernel.local_blocks}
    natural = NaturalTypes(kernel.body, Typing(builtin_table(), kernel.indices, tensors, held), tensors)
    assert natural.element(use(merged)) is summed
    assert natural.element(use(mean)) is summed
