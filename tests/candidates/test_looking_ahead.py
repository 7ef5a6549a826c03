"""Looking ahead, so that candidates can be planned side by side, changes nothing in a cover."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bbrewrite import fusion
from bbrewrite.candidates.cover import Alone, Bounds, Planned, cover
from bbrewrite.core.programs import BlockProgram
from bbrewrite.core.spans import Source
from bbrewrite.lang.programs import parse_program
from bbrewrite.plan.printing import print_kernel_program
from bbrewrite.request import Request, make_request
from bbrewrite.workers import Workers
from benchmarks.large_programs import random_graph, small_arrays
from tests.candidates.programs import random_network
from tests.candidates.test_launched_once import Kernels, Outcome
from tests.plan.pipelines import shipped_rules

CASES = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


def requested(text: str) -> Request:
    rules = shipped_rules()
    return make_request(parse_program(Source("test", text), rules.table), rules, threads=2)


@CASES
@given(
    st.integers(0, 1000),
    st.sampled_from([random_network, random_graph, small_arrays]),
    st.integers(2, 14),
    st.floats(0.0, 0.4),
    st.booleans(),
)
def test_a_cover_is_the_same(seed: int, kind: object, largest: int, gain: float, launches_count: bool) -> None:
    """Whatever candidates are worth: here what they take together is drawn for each class."""
    assert callable(kind)
    request = requested(kind(15, seed))
    blocks = replace(request.blocks, indices=request.blocks.indices.with_extents(request.extents))
    plans: list[list[BlockProgram]] = [[], []]

    def covered(looks_ahead: bool) -> list[tuple[int, ...]]:
        def plan(parts: Sequence[BlockProgram]) -> list[Planned]:
            plans[looks_ahead] += parts
            return [outcome(part) for part in parts]

        alone = Alone(dict.fromkeys(range(len(blocks.definitions)), 0.02), 1.0) if launches_count else None
        found = cover(blocks, plan, Bounds(0, largest), alone, looks_ahead=looks_ahead)
        return [chosen.candidate.members for chosen in found]

    def outcome(part: BlockProgram) -> Planned:
        count = len(part.definitions)
        draw = random.Random(f"{seed} {part.definitions}")
        kernels = draw.randint(1, count)
        return Outcome(Kernels((None,) * kernels), count * (1 + draw.uniform(-gain, 0.2)))

    assert covered(looks_ahead=True) == covered(looks_ahead=False)
    one_by_one, ahead = (set(found) for found in plans)
    assert one_by_one <= ahead
    assert all(len(set(found)) == len(found) for found in plans)


def test_a_plan_is_the_same_however_many_processes_make_it(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []

    class Counted(Workers):
        def __exit__(self, *error: object) -> None:
            started.append(len(self.running))
            super().__exit__(*error)

    monkeypatch.setattr(fusion, "Workers", Counted)

    def planned(processors: int) -> tuple[str, str, float, dict[str, int]]:
        monkeypatch.setattr(fusion, "default_threads", lambda: processors)
        found = fusion.fuse(requested(random_network(24, 3)), bounds=Bounds(0, 2))
        text = print_kernel_program(found.fused.kernels, found.request.rules.table)
        return text, found.text, found.fused.seconds, found.rules_applied

    assert planned(3) == planned(1)
    assert started[0] > started[1] == 0
