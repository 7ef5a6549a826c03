"""Loops narrowed by masks: all conditions, extents and block sizes give what the reference says, and save work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.plan.kernel import Kernel, KernelProgram, Loop, Statement, walk_statements
from bbrewrite.plan.masks.visible import Bound, Linear, LoopBounds, Outermost, Quotient
from bbrewrite.plan.printing import print_kernel_program
from bbrewrite.verify.reference import evaluate
from tests.array_programs import draw_inputs
from tests.built import built
from tests.plan.masked_programs import BODIES, conditions, masked_program
from tests.plan.pipelines import Planned, plan_text, shipped_rules

ANY_CASE = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
CAUSAL, WINDOW = "n <= m", "(n <= m and m - n < 3)"
CHUNKS = "floor(m / 3) == floor(n / 3)"
SINK_AND_WINDOW, DOCUMENTS = "((n <= m and m - n < 2) or n < 1)", "D[m] == F[n]"

type Arrays = dict[str, np.ndarray[Any, Any]]


def planned(form: str, condition: str, block: int | None, **sizes: int) -> Planned:
    return plan_text(masked_program(form, condition), shipped_rules(), block=block, **sizes)


def arrays_of(plan: Planned, seed: int, are_sorted: bool) -> Arrays:
    arrays = draw_inputs(plan.array, plan.extents, seed)
    return {name: np.sort(a) if are_sorted and name in "DF" else a for name, a in arrays.items()}


def check(plan: Planned, kernels: KernelProgram, arrays: Arrays) -> None:
    expected = evaluate(plan.array, arrays, plan.extents, plan.table)["O"]
    found = run_kernels(kernels, arrays, plan.extents, plan.table)["O"]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def narrowed_loops(kernels: KernelProgram) -> list[Loop]:
    statements = [s for kernel in kernels.kernels for s in walk_statements(kernel.body)]
    return [s for s in statements if isinstance(s, Loop) and s.bounds is not None]


@ANY_CASE
@given(
    st.sampled_from(sorted(BODIES)),
    conditions(),
    st.sampled_from([1, 2, 3, 4, None]),
    st.integers(1, 11),
    st.integers(1, 11),
    st.integers(0, 3),
    st.booleans(),
)
@example("softmax", WINDOW, 2, 9, 9, 0, True)
@example("by hand", "n < m - 3", 2, 9, 7, 0, True)
@example("softmax", SINK_AND_WINDOW, 2, 11, 11, 0, True)
def test_masked_plans_mean_what_the_reference_says(
    form: str, condition: str, block: int | None, m: int, n: int, seed: int, are_sorted: bool
) -> None:
    plan = planned(form, condition, block, m=m, n=n)
    check(plan, plan.plan.kernels, arrays_of(plan, seed, are_sorted))


@pytest.mark.parametrize("form", sorted(BODIES.keys() - {"two masks"}))
def test_every_form_is_narrowed(form: str) -> None:
    plan = planned(form, CAUSAL, 4, m=32, n=32)
    assert plan.plan.skipped_share == pytest.approx(7 / 16)  # 36 of 64 blocks are on or below the diagonal


def test_sums_of_two_masks_are_narrowed_to_what_either_shows() -> None:
    plan = planned("two masks", "n < 6", 2, m=16, n=16)
    assert plan.plan.skipped_share == pytest.approx(5 / 8)


@pytest.mark.parametrize(
    ("condition", "visited"),
    [
        (CAUSAL, 36),
        (WINDOW, 8 + 7),
        ("n < 5", 8 * 3),
        ("(n <= m or n < 4)", 36 + 1),
        (SINK_AND_WINDOW, 8 + 7 + 6),
        ("(not n > m)", 36),
        ("n <= m + size(n) - size(m)", 36),
        ("n == m + 2", 7),
        ("(n <= m and m < n)", 8),  # each is possible in a block on the diagonal, though never both
        ("n != m", 64),
        ("floor(m / 4) == floor(n / 4)", 8 * 2),
        ("floor(m / 3) == floor(n / 3)", 8 + 2 * 5),
        ("(floor(m / 4) - floor(n / 4) < 2 and n <= m)", 36 - 3 * 4),
        (DOCUMENTS, 64),  # what tensors hold is not known when planning
    ],
)
def test_blocks_that_a_mask_hides_are_counted(condition: str, visited: int) -> None:
    plan = planned("softmax", condition, 2, m=16, n=16)
    assert (plan.plan.skipped_share or 0) == pytest.approx(1 - visited / 64)


@pytest.mark.parametrize(
    "body",
    [
        "output O[m] : f64 = sum[n](where(n <= m, X[m, n], 1))",  # hidden entries count
        "output O[m] : f64 = max[n](where(n <= m, X[m, n], 0))",
        "output O[m] : f64 = sum[n](exp(where(n <= m, X[m, n], 0)))",
        "output O[m] : f64 = sum[n](where(X[m, n] <= X[m, n], X[m, n], 0))",  # no condition on positions
        "output O[m, n] : f64 = where(n <= m, X[m, n], 0)",  # hidden entries are stored
    ],
)
def test_what_hidden_entries_change_is_not_narrowed(body: str) -> None:
    text = f"program test\nindex m = 8, n = 8\ninput X[m, n] : f64\n{body}\n"
    plan = plan_text(text, shipped_rules(), block=2)
    assert not narrowed_loops(plan.plan.kernels)
    check(plan, plan.plan.kernels, draw_inputs(plan.array, plan.extents))


def test_positions_divided_by_what_has_no_exact_reciprocal() -> None:
    """49 * (1 / 49) is below 1: a rule that multiplies by reciprocals must not move a position to another chunk."""
    plan = planned("softmax", "floor(m / 49) == floor(n / 49)", 7, m=101, n=101)
    check(plan, plan.plan.kernels, arrays_of(plan, 0, True))


@pytest.mark.parametrize("are_sorted", [True, False])
def test_documents_are_found_at_run_time(are_sorted: bool) -> None:
    plan = planned("softmax", DOCUMENTS, 4, m=16, n=16)
    (loop, *_) = narrowed_loops(plan.plan.kernels)
    assert loop.bounds
    assert {read.tensor for read in loop.bounds.reads} == {"D", "F"}
    arrays = arrays_of(plan, 1, are_sorted)
    check(plan, plan.plan.kernels, arrays)


# Mutants: bounds that are one element short lose something.


def shorter(bound: Bound | None, by: int) -> Bound | None:
    match bound:
        case Quotient(linear, greatest, divisor):
            return Quotient(linear.plus(Linear((), by * divisor)), greatest, divisor)
        case Outermost(positions, greatest):
            return Outermost(tuple(inner for p in positions if (inner := shorter(p, by))), greatest)
        case None:
            return None


def mutants(bounds: LoopBounds) -> Iterator[LoopBounds]:
    if bounds.begin is not None:
        yield replace(bounds, begin=shorter(bounds.begin, 1))
    if bounds.end is not None:
        yield replace(bounds, end=shorter(bounds.end, -1))


def with_bounds(body: tuple[Statement, ...], old: LoopBounds, new: LoopBounds) -> tuple[Statement, ...]:
    return tuple(
        replace(s, body=with_bounds(s.body, old, new), bounds=new if s.bounds == old else s.bounds)
        if isinstance(s, Loop)
        else s
        for s in body
    )


@pytest.mark.parametrize(
    "condition", [CAUSAL, WINDOW, "n < p", "n == m + 1", "2 * n <= m", "n < L[m]", "n > m - 2", CHUNKS]
)
def test_a_bound_that_is_off_by_one_is_caught(condition: str) -> None:
    plan = planned("sum", condition, 1, m=9, n=9)
    arrays = arrays_of(plan, 0, True)
    check(plan, plan.plan.kernels, arrays)
    (kernel,) = plan.plan.kernels.kernels
    (loop,) = narrowed_loops(plan.plan.kernels)
    assert loop.bounds
    changed = list(mutants(loop.bounds))
    assert changed
    for bounds in changed:
        mutant: Kernel = replace(kernel, body=with_bounds(kernel.body, loop.bounds, bounds))
        with pytest.raises(AssertionError):
            check(plan, replace(plan.plan.kernels, kernels=(mutant,)), arrays)


COMPILED = [
    ("softmax", CAUSAL, 4),
    ("softmax", SINK_AND_WINDOW, 3),
    ("by hand", "n < m - 3", 2),
    ("softmax", f"({DOCUMENTS} and n <= m)", 2),
    ("softmax", "((n < p or n <= m + size(n) - size(m)) and not 3 * n - 4 > 2 * m)", 3),
    ("max", "n < L[m]", 2),
    ("product", WINDOW, 4),
    ("sum", "(n <= m and m - n < 3)", 1),
    ("sum", f"({CHUNKS} and n <= m)", 2),
]


def test_generated_code_visits_what_the_executor_visits() -> None:
    plans = [planned(form, condition, block) for form, condition, block in COMPILED]
    compiled = built([plan.plan.kernels for plan in plans], shipped_rules().table)
    for plan, program in zip(plans, compiled, strict=True):
        for m, n, are_sorted in ((7, 7, True), (1, 9, False), (13, 4, True), (12, 12, False), (10, 17, True)):
            at_hand = replace(plan, extents={**plan.extents, "m": m, "n": n})
            arrays = arrays_of(at_hand, m, are_sorted)
            expected = evaluate(at_hand.array, arrays, at_hand.extents, at_hand.table)["O"]
            found = program.run(arrays, at_hand.extents, 2)["O"]
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_printed_bounds() -> None:
    plan = planned("sum", f"({WINDOW} and {DOCUMENTS} or 2 * n < p)", 2, m=16, n=16)
    text = print_kernel_program(plan.plan.kernels, plan.table)
    assert (
        "for n up to max(last(m) + 1, (greatest(p) + 1) / 2) where possibly"
        " (m >= n and n + 2 >= m and D[m] >= F[n] and F[n] >= D[m]) or p >= 2 * n + 1:" in text
    )
