"""Kernels that keep whole rows local: one pass after another over each row, however long it is at run time."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from bbrewrite.codegen.passes.flatten import flatten
from bbrewrite.codegen.steps import Assign, Rows, leaves_read, walk_steps
from bbrewrite.core.elements import Element
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.terms import Number, Size, Term
from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.plan.kernel import KernelProgram, Let, Loop, Statement, Store, Update
from bbrewrite.runtime.library import CompiledProgram
from tests.built import built
from tests.codegen.kernel_cases import (
    BF16,
    F32,
    INF,
    add_to,
    arrays_for,
    block,
    indices,
    op,
    output,
    read,
    shift_of,
    single,
    table_with_weight,
    tensor,
    use,
)

TABLE = table_with_weight()
# Planned for rows of 16, and columns of 16; or for long rows.
_INDICES, _LONG = indices(m=4, n=16), indices(m=4, n=4096)
_X = read("X", "m", "n")


def _whole(name: str, body: Sequence[Statement], element: Element = F32, axes: str = "m n") -> KernelProgram:
    made = single(name, _INDICES, "m", body, tensor("X", axes, element), output("Y", axes, element))
    return replace(made, kernels=tuple(replace(kernel, whole=frozenset({"n"})) for kernel in made.kernels))


def _softmax(loaded: bool, element: Element = F32) -> KernelProgram:
    """The maximum, then exponentials and their sum, then the quotient; `loaded` where rows are loaded once."""
    held, exps = block("held", "m n", "n", element.compute_type), block("exps", "m n", "n")
    top, shift, total, factor = (block(name, "m") for name in ("top", "shift", "total", "factor"))
    x: Term = use(held) if loaded else _X
    load = (Let(held, _X),) if loaded else ()
    body = (
        Let(top, Number(-INF)),
        Loop("n", (*load, Update(top, op("maximum", use(top), op("row_max", x))))),
        Let(shift, shift_of(use(top))),
        Let(total, Number(0.0)),
        Loop("n", (Let(exps, op("exp", op("row_shift", x, use(shift)))), add_to(total, op("row_sum", use(exps))))),
        Let(factor, op("recip", use(total))),
        Loop("n", (Store(output("Y", "m n", element), op("row_scale", use(exps), use(factor))),)),
    )
    return _whole(f"softmax_{'loaded_' if loaded else ''}{element}", body, element)


def _scaled(name: str, combine: str, fold: str) -> KernelProgram:
    """Rows multiplied by what one pass over them gives."""
    total = block("total", "m")
    body = (
        Let(total, Number(0.0)),
        Loop("n", (Update(total, op(combine, use(total), op(fold, op("multiply", _X, _X)))),)),
        Loop("n", (Store(output("Y", "m n"), op("row_scale", _X, use(total))),)),
    )
    return _whole(name, body)


def _deviations() -> KernelProgram:
    """Rows without their mean, divided by the root of what their squares add up to."""
    shifted = block("shifted", "m n", "n")
    mean, shift, total = (block(name, "m") for name in ("mean", "shift", "total"))
    body = (
        Let(mean, Number(0.0)),
        Loop("n", (add_to(mean, op("row_sum", _X)),)),
        Let(shift, op("negate", op("divide", use(mean), Size("n")))),
        Let(total, Number(0.0)),
        Loop(
            "n",
            (
                Let(shifted, op("row_shift", _X, use(shift))),
                add_to(total, op("row_sum", op("multiply", use(shifted), use(shifted)))),
            ),
        ),
        Loop("n", (Store(output("Y", "m n"), op("row_scale", use(shifted), op("rsqrt", use(total)))),)),
    )
    return _whole("deviations", body)


def _columns() -> KernelProgram:
    """What is whole runs down the columns, whose sums are over all rows."""
    total = block("total", "m")
    x = read("X", "n", "m")
    body = (
        Let(total, Number(0.0)),
        Loop("n", (add_to(total, op("col_sum", x)),)),
        Loop("n", (Store(output("Y", "n m"), op("col_scale", x, use(total))),)),
    )
    return _whole("columns", body, axes="n m")


CASES = {
    case.name: case
    for case in (
        _softmax(loaded=False),
        _softmax(loaded=True),
        _softmax(loaded=False, element=BF16),
        _softmax(loaded=True, element=BF16),
        _deviations(),
        _scaled("squares", "add", "row_sum"),
        _scaled("largest", "maximum", "row_max"),
        _columns(),
    )
}


@functools.cache
def _compiled() -> dict[str, CompiledProgram]:
    return dict(zip(CASES, built(list(CASES.values()), TABLE), strict=True))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("extents", [{"m": 1, "n": 1}, {"m": 6, "n": 16}, {"m": 9, "n": 67}, {"m": 3, "n": 5000}])
def test_rows_may_be_longer_and_shorter_than_planned_for(name: str, extents: dict[str, int]) -> None:
    arrays = arrays_for(CASES[name], extents, 1)
    expected = run_kernels(CASES[name], arrays, extents, TABLE)["Y"].astype(np.float64)
    found = _compiled()[name].run(arrays, extents, 2)["Y"].astype(np.float64)
    tolerance = 2e-2 if "bf16" in name else 1e-5
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


def _rows(name: str, table: IndexTable = _INDICES) -> Rows:
    (kernel,) = CASES[name].kernels
    kernel = replace(kernel, indices=table)
    (rows,) = (step for step in walk_steps(flatten(kernel, TABLE).steps) if isinstance(step, Rows))
    return rows


@pytest.mark.parametrize("name", [name for name in CASES if name != "columns"])
def test_a_row_passes_through_the_nearest_cache_once(name: str) -> None:
    """All passes stand in one loop over rows, and local blocks of matrices are single rows."""
    (kernel,) = CASES[name].kernels
    flat = flatten(kernel, TABLE)
    assert any(isinstance(step, Assign) and step.target in kernel.writes for step in _rows(name).steps)
    matrices = {block.name for block in flat.blocks if len(block.type.axes) == 2}
    assert matrices == flat.single_rows | flat.row_pairs
    assert flat.row_pairs == matrices & {"exps", "shifted"}, "the row before is still to be stored"


@pytest.mark.parametrize("name", ["softmax_f32", "softmax_loaded_f32"])
def test_what_is_loaded_in_its_own_type_is_not_copied(name: str) -> None:
    assert all(_X in leaves_read(one.steps[0]) for one in _rows(name).passes[:1])
    assert "held" not in {step.target.name for step in _rows(name).steps}


_QUARTERS = {
    "softmax_f32": [1, 3],
    "softmax_loaded_f32": [1, 3],
    "softmax_bf16": [1, 3],
    "deviations": [2, 2],
    "squares": [4],
    "largest": [4],
}


@pytest.mark.parametrize("is_long", [False, True])
@pytest.mark.parametrize("name", _QUARTERS)
def test_the_next_row_is_fetched_and_the_one_before_stored_beside_passes_that_fold(name: str, is_long: bool) -> None:
    """Beside all passes over a long row, where the one that computes more does more of it; else beside the last one."""
    rows = _rows(name, _LONG if is_long else _INDICES)
    assert rows.ahead == (_X,)
    assert rows.behind == rows.passes[-1].steps[0]
    assert [one.quarters for one in rows.passes if one.quarters] == (_QUARTERS[name] if is_long else [4])


def test_columns_are_neither_fetched_nor_stored_beside_others() -> None:
    (kernel,) = CASES["columns"].kernels
    rows = [step for step in walk_steps(flatten(kernel, TABLE).steps) if isinstance(step, Rows)]
    assert not any(step.ahead or step.behind for step in rows)


@pytest.mark.parametrize("name", ["softmax_f32", "softmax_bf16", "squares", "deviations"])
def test_results_that_go_past_the_caches_are_whole(name: str) -> None:
    """Rows that begin anywhere in a cache line, more of them than one block has, the last block not full."""
    extents = {"m": 2047 if "bf16" not in name else 4093, "n": 4111}
    arrays = arrays_for(CASES[name], extents, 1)
    x = arrays["X"].astype(np.float32)
    if name == "deviations":
        shifted = x - x.mean(1, keepdims=True, dtype=np.float64)
        expected = shifted / np.sqrt(np.square(shifted).sum(1, keepdims=True))
    elif name == "squares":
        expected = x * np.square(x, dtype=np.float64).sum(1, keepdims=True)
    else:
        exps = np.exp(x - x.max(1, keepdims=True))
        expected = exps / exps.sum(1, keepdims=True)
    found = _compiled()[name].run(arrays, extents, 2)["Y"].astype(np.float32)
    assert found.nbytes * (1 if "bf16" not in name else 0.5) > 32 << 20
    tolerance = 1e-2 if "bf16" in name else 1e-4
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=1e-6 * np.abs(expected).max())
