"""What the report says of plans of fewer and of more kernels is what these cost."""

from __future__ import annotations

import re
from dataclasses import replace
from math import inf

import pytest
from hypothesis import HealthCheck, given, settings

from bbrewrite.fusion import Fusion, fuse, snapshot_plans
from bbrewrite.plan.planner import PROMISED_AT_LEAST
from bbrewrite.plan.plans import Plan
from bbrewrite.plan.target import TOLERANCE
from bbrewrite.request import make_request, read_program
from bbrewrite.units import byte_count, operation_count
from tests.cli.conftest import ROOT
from tests.plan.headline import HEADLINE
from tests.plan.pipelines import NO_RULES, TARGET, plan_text, shipped_rules
from tests.plan.test_extraction import Case, cases, plan_and_brute_force

MORE = re.compile(r"^(\d+) kernels? takes? (\S+) ms, estimated, and more would take (at least |)(\S+) ms: (\d+)")
FEWER = re.compile(r" takes (\S+) ms, estimated, and (\d+) kernels? with .* would take (\S+) ms(?:: (.*)|)$")
DIGITS = 0.006  # of times in three digits, as a share


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(cases(siblings=False))
def test_of_a_small_program_the_note_tells_what_brute_force_finds(case: Case) -> None:
    # A plan of one kernel that takes no longer than two launches is compared with no other.
    case = replace(case, target=replace(case.target, launch_seconds=0.0))
    plan, brute_force = plan_and_brute_force(case)
    least = brute_force.least_by_kernels()
    kernels = len(plan.costs)
    least_of_more = min((seconds for count, seconds in least.items() if count > kernels), default=inf)
    found = [match for note in plan.notes if (match := MORE.search(note))]
    if not found:
        of_parts = any(note.startswith("for ") for note in plan.notes)
        assert of_parts or least_of_more == inf or plan.seconds <= 2 * case.target.launch_seconds, (
            case.text,
            plan.notes,
        )
        return
    (match,) = found
    own, seconds, at_least, more, count = match.groups()
    assert int(own) == kernels
    assert float(seconds) / 1e3 == pytest.approx(plan.seconds, rel=DIGITS)
    assert float(more) / 1e3 <= least_of_more * (1 + DIGITS)
    assert float(more) / 1e3 <= least[int(count)] * (1 + DIGITS)
    if not at_least:
        assert float(more) / 1e3 == pytest.approx(least_of_more, rel=DIGITS)
    assert float(more) * (1 + TOLERANCE + PROMISED_AT_LEAST) >= float(seconds) * (1 - DIGITS)


def fused(name: str) -> Fusion:
    rules = shipped_rules()
    return fuse(make_request(read_program(ROOT / f"examples/{name}.bb", rules.table), rules, threads=2))


EXAMPLES = ["attention", "differential_attention", "layernorm_mlp", "row_moments", "self_attention"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_is_said_of_fewer_kernels_is_a_snapshot(name: str) -> None:
    fusion = fused(name)
    plans = snapshot_plans(fusion)
    told = [match for note in fusion.notes if (match := FEWER.search(note))]
    assert bool(told) == bool(fusion.after.buffers)
    for match in told:
        own, kernels, seconds, why = match.groups()
        assert own == milliseconds(fusion.fused)
        (other,) = (plan for plan in plans if len(plan.costs) == int(kernels) and milliseconds(plan) == seconds)
        moved, repeated = other.global_bytes - fusion.fused.global_bytes, other.flops - fusion.fused.flops
        assert why in (f"{byte_count(moved)} more to move", f"{operation_count(repeated)} more to compute")


def milliseconds(plan: Plan) -> str:
    return f"{plan.seconds * 1e3:.3g}"


@pytest.mark.parametrize(
    ("stored", "launch_seconds", "why"),
    [
        ("B[m, n] = exp(X[m, n])\noutput Y[m, n] = B[m, n] * 2\n", 4e-6, "2 with B stored, 128.0 MiB more to move"),
        ("B[m] = sum[n](X[m, n])\noutput Y[m] = B[m] * 2\n", 1e-3, "2 with B stored, 1 launch more"),
    ],
)
def test_the_reason_is_what_takes_most(stored: str, launch_seconds: float, why: str) -> None:
    """Large lists take their traffic, small ones the launch."""
    text = f"program steps\nindex m = 4096, n = 4096\ninput X[m, n] : f32\n{stored}"
    plan = plan_text(text, shipped_rules(), target=replace(TARGET, launch_seconds=launch_seconds)).plan
    assert [note.rpartition(": ")[2] for note in plan.notes if MORE.search(note)] == [why]


def test_work_that_is_repeated_is_a_reason() -> None:
    """With many processors the scores of attention are rather computed again than stored."""
    plan = plan_text(HEADLINE["attention"], shipped_rules(), threads=16).plan
    again = operation_count(2 * 4096 * 4096 * 64)
    assert [note.rpartition(", ")[2] for note in plan.notes if MORE.search(note)] == [f"{again} more to compute"]


@pytest.mark.parametrize("name", HEADLINE)
def test_where_nothing_else_could_be_chosen_nothing_is_said(name: str) -> None:
    assert not any(MORE.search(note) or FEWER.search(note) for note in plan_text(HEADLINE[name], NO_RULES).plan.notes)
