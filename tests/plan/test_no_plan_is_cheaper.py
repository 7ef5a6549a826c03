"""Of all plans offered for a program the chosen one is the cheapest, as far as the model tells; in every process."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bbrewrite.core.spans import Source
from bbrewrite.egraph.inline import inline
from bbrewrite.egraph.saturate import saturate
from bbrewrite.fusion import fuse, snapshot_plans
from bbrewrite.lang.programs import parse_program
from bbrewrite.plan import planner
from bbrewrite.plan.extraction.assemble import kernel_term
from bbrewrite.plan.extraction.extract import extract
from bbrewrite.plan.extraction.lists import Lists
from bbrewrite.plan.machine import Machine
from bbrewrite.plan.planner import PROMISED_AT_LEAST
from bbrewrite.plan.scheduling.schedules import Schedules
from bbrewrite.plan.target import TOLERANCE, Target
from bbrewrite.plan.term_costs import TermCosts
from bbrewrite.request import make_request
from tests.lower.random_programs import programs
from tests.plan.pipelines import NARROW, TARGET, shipped_rules
from tests.plan.processes import printed_in_processes

# Nearer than this a plan of fewer buffers is as good, or the search for a cheaper one is not begun.
NEAR = (1 + TOLERANCE) * (1 + TOLERANCE + PROMISED_AT_LEAST)
SIZES = st.sampled_from([1, 40, 700, 3000])


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(programs(), SIZES, SIZES, SIZES)
def test_no_plan_that_is_offered_is_cheaper(text: str, m: int, n: int, k: int) -> None:
    rules = shipped_rules()
    sized = re.sub(r"m = \d+, n = \d+, k = \d+", f"m = {m}, n = {n}, k = {k}", f"program test\n{text}\n")
    fusion = fuse(make_request(parse_program(Source("test", sized), rules.table), rules, threads=2))
    assert fusion.fused.seconds <= fusion.unfused.seconds * (1 + TOLERANCE)
    chosen, *others = snapshot_plans(fusion)
    assert chosen.seconds == fusion.fused.seconds
    assert all(chosen.seconds <= other.seconds * NEAR for other in others)


NARROW_SOFTMAX = """\
program narrow
index m = 200000, k = {k}
input X[m, k] : f32
output Y[m, k] = softmax[k](X[m, k])
"""


@pytest.mark.parametrize("k", [8, 40])
def test_of_a_small_program_all_plans_are_compared(k: int) -> None:
    rules = shipped_rules()
    fusion = fuse(
        make_request(parse_program(Source("test", NARROW_SOFTMAX.format(k=k)), rules.table), rules, threads=2)
    )
    assert not any("not all plans" in note for note in fusion.notes), fusion.notes


def test_a_gap_that_matters_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "MOST_EFFORT_OF_SMALL", 0)
    rules = shipped_rules()
    fusion = fuse(
        make_request(parse_program(Source("test", NARROW_SOFTMAX.format(k=40)), rules.table), rules, threads=2)
    )
    (note,) = (note for note in fusion.notes if "not all plans" in note)
    (share,) = re.findall(r"by (\d+)% at most", note)
    assert int(share) >= planner.GAP_TOLD * 100


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(programs(), st.sampled_from([TARGET, NARROW]), SIZES, SIZES, SIZES)
def test_no_kernel_costs_less_than_its_bound(text: str, target: Target, m: int, n: int, k: int) -> None:
    rules = shipped_rules()
    sized = re.sub(r"m = \d+, n = \d+, k = \d+", f"m = {m}, n = {n}, k = {k}", f"program test\n{text}\n")
    blocks = make_request(parse_program(Source("test", sized), rules.table), rules, threads=2).blocks
    inlined = inline(blocks)
    graph = saturate(inlined.roots, inlined.indices, blocks.tensors, blocks.assumptions, rules)
    extents = {index.name: index.extent or 1 for index in blocks.indices}
    machine = Machine.running(blocks, target, 2, extents)
    indices = inlined.indices.with_extents(extents)
    lists = Lists(graph, blocks, indices, rules.table)
    tensors = {tensor.name: tensor for tensor in blocks.inputs} | lists.tensors
    schedules = Schedules(indices, rules.table, machine)
    kernels = extract(graph, lists, TermCosts(rules.table, indices, tensors, machine)).kernels
    for kernel in kernels[:3]:
        price = schedules.price(kernel_term(kernel, lists), tensors).seconds
        assert kernel.bound <= price * (1 + 1e-9), kernel.term


def test_a_large_program_has_the_same_plan_in_every_process() -> None:
    script = (
        "from bbrewrite.core.spans import Source\n"
        "from bbrewrite.lang.programs import parse_program\n"
        "from bbrewrite.fusion import fuse\n"
        "from bbrewrite.plan.printing import print_kernel_program\n"
        "from bbrewrite.request import make_request\n"
        "from benchmarks.large_programs import random_graph\n"
        "from tests.plan.pipelines import shipped_rules\n"
        "rules = shipped_rules()\n"
        "program = parse_program(Source('graph', random_graph(22, 3)), rules.table)\n"
        "fusion = fuse(make_request(program, rules, threads=2))\n"
        "print(print_kernel_program(fusion.fused.kernels, rules.table))\n"
    )
    assert len(printed_in_processes(script)) == 1
