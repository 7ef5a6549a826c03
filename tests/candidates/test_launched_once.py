"""Definitions whose launches cost more than their work become candidates as large as may be, planned once each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pytest

from bbrewrite.candidates.cover import Alone, Bounds, Planned, cover
from bbrewrite.core.programs import BlockProgram
from bbrewrite.core.spans import Source
from bbrewrite.lang.programs import parse_program
from bbrewrite.plan.plans import Plan
from bbrewrite.request import make_request
from benchmarks.large_programs import elementwise_chain
from tests.plan.pipelines import shipped_rules

COUNT = 12


@dataclass(frozen=True)
class Kernels:
    """Of a plan what the search for a cover reads."""

    kernels: tuple[None, ...]


@dataclass(frozen=True)
class Outcome:
    """The plan of a candidate of so many kernels."""

    kernels: Kernels
    seconds: float

    @property
    def fused(self) -> Plan:
        return cast(Any, self)


def covered(most_fused: int, work: float, is_known: bool = True) -> tuple[list[int], list[int]]:
    """The sizes of the candidates of a chain, and of those that were planned, where kernels take so many definitions at
    most; a launch takes 1, and each definition `work`, which the search knows or does not.
    """
    rules = shipped_rules()
    text = elementwise_chain(COUNT - 1, 100, 1)
    blocks = make_request(parse_program(Source("chain", text), rules.table), rules, threads=2).blocks
    assert len(blocks.definitions) == COUNT
    planned: list[int] = []

    def plan(part: BlockProgram) -> Planned:
        size = len(part.definitions)
        planned.append(size)
        kernels = -(-size // most_fused)
        return Outcome(Kernels((None,) * kernels), kernels + work * size)

    alone = Alone(dict.fromkeys(range(COUNT), work), 1.0) if is_known else None
    found = cover(blocks, lambda parts: list(map(plan, parts)), Bounds(0, 5), alone)
    return [len(chosen.candidate.members) for chosen in found], planned


def test_each_candidate_is_planned_once_and_nothing_else_is() -> None:
    sizes, planned = covered(most_fused=100, work=0.01)
    assert sizes == [5, 5, 2]
    assert sorted(planned) in ([2, 5], [2, 5, 5])


def test_where_work_counts_candidates_grow_by_trials() -> None:
    sizes, planned = covered(most_fused=100, work=0.5)
    assert sizes == [5, 5, 2]
    assert planned[0] == 1


@pytest.mark.parametrize("most_fused", [1, 2, 3])
def test_what_is_no_single_kernel_is_cut_as_it_would_be(most_fused: int) -> None:
    assert covered(most_fused, 0.01)[0] == covered(most_fused, 0.01, is_known=False)[0]
