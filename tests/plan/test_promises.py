"""What keeping a value promises: it orders and leaves out trials, and loses nothing that matters."""

from __future__ import annotations

from math import inf

import pytest

from bbrewrite.core.spans import Source
from bbrewrite.core.terms import Term
from bbrewrite.fusion import Fusion, fuse
from bbrewrite.lang.programs import parse_program
from bbrewrite.plan.scheduling.judged_nests import NestChoice
from bbrewrite.plan.scheduling.promises import Promises
from bbrewrite.plan.scheduling.schedule import KEPT_FOR, ScheduleSearch
from bbrewrite.request import make_request
from benchmarks.large_programs import small_arrays
from tests.plan.headline import HEADLINE
from tests.plan.pipelines import shipped_rules

PROGRAMS = {**HEADLINE, "small arrays": small_arrays(5, 4)}


def fused(text: str) -> Fusion:
    rules = shipped_rules()
    return fuse(make_request(parse_program(Source("test", text), rules.table), rules, threads=2))


def all_that_may_be(_: Promises, term: Term) -> float:
    """A promise that leaves nothing out."""
    return inf


@pytest.mark.parametrize("name", PROGRAMS)
def test_trying_all_values_finds_nothing_better(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = fused(PROGRAMS[name]).fused.seconds
    monkeypatch.setattr(Promises, "of", all_that_may_be)
    assert found <= fused(PROGRAMS[name]).fused.seconds * (1 + KEPT_FOR)


def test_what_is_kept_gains_what_was_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    """And few are tried that gain nothing."""
    gained: list[float] = []
    keeping_one_more = ScheduleSearch._keeping_one_more

    def watched(search: ScheduleSearch, best: NestChoice, gains: dict[Term, float]) -> NestChoice | None:
        promised = search._promised(best)
        known = dict(gains)
        found = keeping_one_more(search, best, gains)
        for term, gain in gains.items():
            if known.get(term) != gain:
                gained.append(gain)
                assert gain <= promised[term]
        return found

    monkeypatch.setattr(ScheduleSearch, "_keeping_one_more", watched)
    fused(PROGRAMS["small arrays"])
    assert len(gained) < 2 * sum(gain > 0 for gain in gained)
