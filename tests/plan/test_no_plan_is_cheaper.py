"""Of all plans offered for a program the chosen one is the cheapest, as far as the model tells; in every process."""

from __future__ import annotations

import re

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bbrewrite.core.spans import Source
from bbrewrite.lang.programs import parse_program
from bbrewrite.pipeline import fuse, snapshot_plans
from bbrewrite.plan.planner import PROMISED_AT_LEAST, TOLERANCE
from bbrewrite.request import make_request
from tests.lower.random_programs import programs
from tests.plan.pipelines import shipped_rules
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


def test_a_large_program_has_the_same_plan_in_every_process() -> None:
    script = (
        "from bbrewrite.core.spans import Source\n"
        "from bbrewrite.lang.programs import parse_program\n"
        "from bbrewrite.pipeline import fuse\n"
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
