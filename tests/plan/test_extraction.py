"""The planner finds what brute force finds on small e-graphs, and says why it stores what it could fuse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from bbrewrite.core.arrays import ArrayProgram
from bbrewrite.core.spans import Source
from bbrewrite.egraph.inline import inline
from bbrewrite.egraph.saturate import saturate
from bbrewrite.egraph.siblings import sibling_pairs
from bbrewrite.lang.programs import parse_program
from bbrewrite.lower.lowering import lower
from bbrewrite.plan.machine import Machine
from bbrewrite.plan.planner import Planner
from bbrewrite.plan.plans import Plan
from bbrewrite.plan.scheduling.schedules import Schedules
from bbrewrite.plan.target import TOLERANCE, Target
from tests.plan.brute_force import BruteForce
from tests.plan.headline import RMSNORM_SWIGLU
from tests.plan.pipelines import NO_RULES, TARGET, plan_text, rules_from, shipped_rules

RULES = """\
rule fuse_consecutive_maps
    at(map(i, x), i)  =>  x

rule factor_out
    reduce(sum, i, x * c)  =>  reduce(sum, i, x) * c
    where i not in free(c)

rule join_exponentials
    exp(x) * exp(y)  =>  exp(x + y)

rule double
    x + x  =>  x * 2
"""
SIBLINGS = """\
rule fuse_siblings
    match x = map(i, a), y = map(i, b)
    then  x => first(p), y => second(p)
    let   p = map(i, pair(a, b))
    where siblings(x, y)

rule pair_lists
    pair(map(i, a), map(i, b))  =>  map(i, pair(a, b))
"""
ROWS = ("sum[k](A[m, k])", "max[k](A[m, k])", "sum[k](A[m, k] * B[k])")
VECTORS = ("u[m]", "exp({0}[m])", "{0}[m] + {0}[m]", "{0}[m] * {1}[m]", "exp({0}[m]) * exp({1}[m])")
MATRICES = ("A[m, k]", "{0}[m] * A[m, k]", "exp(A[m, k]) + {0}[m]", "{0}[m] * exp(A[m, k])")


@dataclass(frozen=True)
class Case:
    """A small program and the machine for which it is planned."""

    text: str
    target: Target
    extents: Mapping[str, int]
    siblings: bool


@st.composite
def cases(draw: st.DrawFn, siblings: bool) -> Case:
    """Two to four definitions that read each other, on a machine where storing is cheap, dear or anything between.

    As siblings they are three at most, all are outputs, and most of them read one matrix.
    """
    vectors, matrices, lines = ["u"], [], []
    for number in range(draw(st.integers(2, 3 if siblings else 4))):
        name = f"T{number}"
        form = draw(st.sampled_from(["row", "vector", "matrix", "row" if siblings else "sum"]))
        one, two = draw(st.sampled_from(vectors)), draw(st.sampled_from(vectors))
        if form == "matrix":
            lines.append(f"{name}[m, k] = {draw(st.sampled_from(MATRICES)).format(one)}")
            matrices.append(name)
        elif form == "sum" and matrices:
            matrix = draw(st.sampled_from(matrices))
            lines.append(f"{name}[m] = sum[k]({matrix}[m, k] * {one}[m])")
            vectors.append(name)
        else:
            body = draw(st.sampled_from(ROWS if form == "row" else VECTORS)).format(one, two)
            lines.append(f"{name}[m] = {body}")
            vectors.append(name)
    outputs = draw(st.sets(st.integers(0, len(lines) - 1), max_size=2)) | {len(lines) - 1}
    outputs |= set(range(len(lines))) if siblings else set()
    lines = [f"output {line}" if number in outputs else line for number, line in enumerate(lines)]
    sizes = {"m": draw(st.sampled_from([1, 40, 3000])), "k": draw(st.sampled_from([1, 30, 5000]))}
    header = f"program small\nindex m = {sizes['m']}, k = {sizes['k']}\ninput A[m, k], B[k], u[m] : f32\n"
    launch = draw(st.sampled_from([0.0, 4e-6, 1e-3]))
    speed = draw(st.sampled_from([1.0, 100.0]))
    return Case(header + "\n".join(lines) + "\n", _machine(launch, speed), sizes, siblings)


def _machine(launch: float, memory_speed: float) -> Target:
    memory = tuple(
        replace(tier, bytes_per_second=tier.bytes_per_second * memory_speed if tier.shared else tier.bytes_per_second)
        for tier in TARGET.memory
    )
    return replace(TARGET, launch_seconds=launch, memory=memory)


def plan_and_brute_force(case: Case) -> tuple[Plan, BruteForce]:
    rules = rules_from(RULES, SIBLINGS) if case.siblings else rules_from(RULES)
    array = parse_program(Source("small", case.text), rules.table)
    assert isinstance(array, ArrayProgram)
    block = lower(array, rules.table)
    inlined = inline(block)
    pairs = sibling_pairs(block)
    graph = saturate(inlined.roots, inlined.indices, block.tensors, block.assumptions, rules, siblings=pairs)
    # Definitions of one value are one list, which brute force does not know.
    assume(len(set(graph.roots.values())) == len(graph.roots))
    machine = Machine.running(block, case.target, 2, case.extents)
    indices = inlined.indices.with_extents(case.extents)
    plan = Planner(graph, block, inlined.roots, Schedules(indices, rules.table, machine)).chosen()
    return plan, BruteForce(graph, block, indices, rules.table, machine)


@settings(max_examples=160, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(cases(siblings=False))
def test_the_plan_is_the_optimum(case: Case) -> None:
    plan, brute_force = plan_and_brute_force(case)
    least = brute_force.least_seconds()
    assert least * (1 - 1e-9) <= plan.seconds <= least * (1 + TOLERANCE), case.text


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(cases(siblings=True))
def test_the_plan_is_the_optimum_where_kernels_store_several_lists(case: Case) -> None:
    plan, brute_force = plan_and_brute_force(case)
    least = brute_force.least_seconds()
    assert least * (1 - 1e-9) <= plan.seconds <= least * (1 + TOLERANCE), case.text


@pytest.mark.parametrize("rows", [160, 1000])
def test_between_unfused_and_wholly_fused_there_are_plans(rows: int) -> None:
    unfused = plan_text(RMSNORM_SWIGLU, NO_RULES, m=rows).plan
    plan = plan_text(RMSNORM_SWIGLU, shipped_rules(), m=rows).plan
    assert len(plan.kernels.kernels) < len(unfused.kernels.kernels)
    assert plan.seconds <= unfused.seconds * (1 + TOLERANCE)


def test_a_list_that_could_be_fused_is_stored_for_a_reason() -> None:
    plan = plan_text(RMSNORM_SWIGLU, shipped_rules(), m=1000).plan
    assert [tensor.name for tensor in plan.kernels.buffers] == ["G"]
    assert any(note.startswith("G stored: the plan takes") and "1 kernel" in note for note in plan.notes), plan.notes


def test_names_of_definitions_change_nothing() -> None:
    names = {"H[": "Alpha[", "G[": "Beta["}
    text = RMSNORM_SWIGLU
    for old, new in names.items():
        text = text.replace(old, new)
    ours, theirs = (plan_text(each, shipped_rules(), m=1000).plan for each in (RMSNORM_SWIGLU, text))
    assert ours.seconds == theirs.seconds
    assert [kernel.grid for kernel in ours.kernels.kernels] == [kernel.grid for kernel in theirs.kernels.kernels]
