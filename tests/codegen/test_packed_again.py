"""Packed right operands that are kept for later blocks of rows: which ones, and that products stay what they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from bbrewrite.codegen.passes.flatten import flatten
from bbrewrite.codegen.passes.packed_again import with_kept_operands
from bbrewrite.codegen.steps import Pack, PackedOperand, Product, leaf_name, walk_steps
from bbrewrite.core.operators import builtin_table
from bbrewrite.core.terms import Number
from bbrewrite.plan.kernel import KernelProgram, Let, Loop, Store
from tests.built import built
from tests.codegen.kernel_cases import (
    BF16,
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
SIZES = {"m": 60, "n": 60, "d": 16, "l": 12}


def _planned(program: KernelProgram, extents: Mapping[str, int]) -> KernelProgram:
    """The program, planned for these extents."""
    kernels = tuple(replace(one, indices=one.indices.with_extents(extents)) for one in program.kernels)
    return replace(program, indices=program.indices.with_extents(extents), kernels=kernels)


def _kept(program: KernelProgram) -> dict[str, tuple[str, str]]:
    """What is kept, for which indices and for how long; every product takes what has been packed for it."""
    (kernel,) = program.kernels
    flat = with_kept_operands(flatten(kernel, TABLE), kernel)
    steps = list(walk_steps(flat.steps))
    packed = {step.packed: step for step in steps if isinstance(step, Pack)}
    assert set(flat.packed) == set(packed)
    assert set(packed) == {s.right for s in steps if isinstance(s, Product) and isinstance(s.right, PackedOperand)}
    return {
        f"{leaf_name(step.source)}{chr(39) * step.transposed}": (" ".join(operand.kept), " ".join(operand.per))
        for operand, step in packed.items()
        if operand.kept
    }


def _twice() -> KernelProgram:
    """Y = X W + X W', where blocks of W are packed in both directions."""
    total = block("total", "m n")
    body = (
        Let(total, Number(0.0)),
        Loop("k", (add_to(total, op("dot", read("X", "m", "k"), read("W", "n", "k"))),)),
        Loop("k", (add_to(total, op("dot", read("X", "m", "k"), op("transpose", read("W", "k", "n")))),)),
        Store(output("Y", "m n"), use(total)),
    )
    table = indices(m=ROWS, n=ROWS, k=f"n:{ROWS}")
    return single("twice", table, "m n", body, tensor("X", "m n"), tensor("W", "n n"), output("Y", "m n"))


@pytest.mark.parametrize(
    ("program", "extents", "kept"),
    [
        pytest.param(attention(b=ROWS), SIZES, {"K'": ("n d", ""), "V": ("l n", "")}, id="attention"),
        pytest.param(attention(b=ROWS, causal=True), SIZES, {"K'": ("n d", ""), "V": ("l n", "")}, id="under a mask"),
        pytest.param(
            attention(b=ROWS, batch=True),
            SIZES | {"h": 4, "g": 2},
            {"K'": ("n d", "h"), "V": ("l n", "h")},
            id="for one head at a time",
        ),
        pytest.param(attention(b=ROWS), SIZES | {"m": ROWS}, {}, id="one block of rows"),
        pytest.param(
            attention(b=ROWS), SIZES | {"m": ROWS, "l": ROWS + 1}, {"K'": ("n d", "")}, id="blocks of columns"
        ),
        pytest.param(attention(b=ROWS), {}, {}, id="extents not known"),
        pytest.param(matmul(b=ROWS), {"m": 48, "n": 48, "k": 48}, {"B": ("n k", "")}, id="a matrix"),
        pytest.param(matmul(b=ROWS), {"m": 48, "n": 1 << 10, "k": 1 << 11}, {}, id="more than caches hold"),
        pytest.param(_twice(), {"m": 48, "n": 48}, {"W": ("n k", ""), "W'": ("n k", "")}, id="in both directions"),
    ],
)
def test_operands_that_several_blocks_of_rows_need_are_kept(
    program: KernelProgram, extents: Mapping[str, int], kept: dict[str, tuple[str, str]]
) -> None:
    assert _kept(_planned(program, extents)) == kept


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("program", "planned", "sizes"),
    [
        pytest.param(attention(b=ROWS), SIZES, [SIZES, {"m": 59, "n": 77, "d": 29, "l": 3}], id="attention"),
        pytest.param(attention(b=ROWS, causal=True), SIZES, [SIZES, {"m": 59, "n": 59, "d": 29, "l": 3}], id="causal"),
        *(
            pytest.param(
                matmul("matmul", kind, ROWS), {"m": 48, "n": 48, "k": 48}, [{"m": 75, "n": 45, "k": 61}], id=kind.value
            )
            for kind in (BF16, F64)
        ),
        pytest.param(
            attention(b=ROWS, batch=True), SIZES | {"h": 4, "g": 2}, [SIZES | {"h": 5, "g": 3}], id="several heads"
        ),
        pytest.param(_twice(), {"m": 48, "n": 48}, [{"m": 48, "n": 48}, {"m": 5, "n": 29}], id="both directions"),
    ],
)
def test_results_do_not_depend_on_it(
    program: KernelProgram, planned: dict[str, int], sizes: list[dict[str, int]], threads: int
) -> None:
    """Bit by bit, at the planned extents and at others."""
    again, kept = built([program, _planned(program, planned)], TABLE)
    for extents in sizes:
        arrays = arrays_for(program, extents, 0)
        (want,), (found,) = (one.run(arrays, extents, threads).values() for one in (again, kept))
        np.testing.assert_array_equal(found, want)
