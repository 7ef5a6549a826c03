"""Tuning measures what the planner offers, takes nothing but right results, and keeps what was fastest.

No test depends on how fast anything runs: where times matter they are given.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bbrewrite.fusion import fuse
from bbrewrite.lang.diagnostics import InputError
from bbrewrite.plan.alternatives import PlanSpace
from bbrewrite.tuning import search
from bbrewrite.tuning.search import Tuned, tune
from bbrewrite.verify.compare import Comparison, OutputComparison
from tests.built import cache_with_products
from tests.cli.conftest import Command, bbrewrite, rules, scaled_sum  # noqa: F401  fixtures
from tests.tuning.scores import request

LONG = 3600.0


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cache_with_products(tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True)
def _few_candidates(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was built is kept from test to test, what was found is not."""
    monkeypatch.setenv("BBREWRITE_CACHE_DIR", str(cache))
    shutil.rmtree(cache / "tuned", ignore_errors=True)
    near = PlanSpace.near
    monkeypatch.setattr(PlanSpace, "near", lambda self, plan: near(self, plan)[:3])
    monkeypatch.setattr(PlanSpace, "pareto", lambda self: (self.chosen(),))


def timed_by(monkeypatch: pytest.MonkeyPatch, milliseconds: Callable[[int], float]) -> None:
    """Makes the time of a contender a function of the order in which contenders are first timed, the own one first."""
    order: dict[object, int] = {}

    def turns(calls, runs, budget):
        numbers = [order.setdefault(call.func.__self__.library, len(order)) for call in calls]
        return [(call(), (milliseconds(number),)) for call, number in zip(calls, numbers, strict=True)]

    monkeypatch.setattr(search, "run_in_turns", turns)


def only(found: tuple[Tuned, ...]) -> Tuned:
    (tuned,) = found
    return tuned


def test_the_fastest_is_kept_and_used(monkeypatch: pytest.MonkeyPatch) -> None:
    # The third contender is twice as fast as the others.
    timed_by(monkeypatch, lambda number: 1.0 if number == 2 else 2.0)
    fusion, found = tune(request(), LONG, 0)
    tuned = only(found)
    assert (tuned.winner.milliseconds, tuned.winner.own_milliseconds, tuned.is_own) == (1.0, 2.0, False)
    assert tuned.winner.choice != fusion.fused.choice
    later = fuse(request())
    assert later.fused.choice == tuned.winner.choice
    assert later.fused.kernels != fusion.fused.kernels


def test_the_own_choice_has_one_time_where_nothing_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rounds of one plan differ on a busy machine, which makes it no faster than itself."""
    busy = iter(range(1000, 0, -1))
    monkeypatch.setattr(search, "_MOST_EXPECTED", 0.0)
    timed_by(monkeypatch, lambda _: float(next(busy)))
    _, found = tune(request(), LONG, 0)
    assert only(found).is_own


def test_what_is_slower_is_not_taken_and_the_search_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    timed_by(monkeypatch, lambda number: 2.0 if number else 1.99)
    fusion, found = tune(request(), LONG, 0)
    assert only(found).is_own
    assert only(found).winner.measured > 1
    assert fuse(request()).fused.kernels == fusion.fused.kernels


def test_wrong_results_are_set_aside_however_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts = iter([True])  # the own choice is right, and nothing after it
    monkeypatch.setattr(
        search,
        "compare_outputs",
        lambda *_: Comparison((OutputComparison("P", 0.0 if next(verdicts, False) else 1.0, 0.0, 0.5),)),
    )
    timed_by(monkeypatch, lambda number: 1.0 if number else 2.0)
    _, found = tune(request(), LONG, 0)
    assert only(found).is_own
    assert only(found).winner.measured == 1
    assert only(found).wrong > 0


def test_a_model_choice_that_is_wrong_is_not_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Comparison((OutputComparison("P", 1.0, 0.0, 0.5),))
    monkeypatch.setattr(search, "compare_outputs", lambda *_: wrong)
    assert tune(request(), LONG, 0)[1] == ()
    assert fuse(request()).winner is None


def test_time_is_kept() -> None:
    _, found = tune(request(), 0.0, 0)
    assert only(found).winner.measured == 1


def test_an_empty_program_has_nothing_to_measure() -> None:
    with pytest.raises(InputError, match=r"size\(m\) is 0"):
        tune(request(m=0), LONG, 0)


def test_the_command(bbrewrite: Command, rules: Path, scaled_sum: Path) -> None:  # noqa: F811
    arguments = (rules, scaled_sum, "--size", "m=64")
    first = bbrewrite("bench", *arguments, "--tune", "--budget", "1")
    assert first.exit_code == 0, first.output
    assert "tuned scaled_sum: " in first.output
    assert "note: tuned on this machine: of " in first.output
    assert "tuned on this machine" in bbrewrite("run", *arguments).output
    assert "tuned on this machine" not in bbrewrite("run", *arguments, "--no-tuned").output
    refused = bbrewrite("bench", *arguments, "--tune", "--target", "numpy")
    assert (refused.exit_code, "--tune measures generated C++" in refused.output) == (2, True)
