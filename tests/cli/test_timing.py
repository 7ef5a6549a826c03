"""Timing: warming, repetition in turns, an end to it, and how far times scatter."""

from __future__ import annotations

from time import sleep

import pytest

from bbrewrite import timing
from bbrewrite.timing import run_in_turns, spread, timed


def test_works_take_turns_after_they_are_warm() -> None:
    runs: list[str] = []
    works = [lambda name=name: (runs.append(name), name)[1] for name in "ab"]
    found = run_in_turns(works, most_runs=9)
    assert [result for result, _ in found] == ["a", "b"]
    assert all(len(times) == 9 for _, times in found)
    assert "".join(runs[-18:]) == "ab" * 9
    assert runs[:-18].count("a") > 1
    assert runs[:-18].count("b") > 1


def test_the_first_run_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """However much longer it takes than those after it, by a clock that only the work moves."""
    now, durations = [0.0], iter([0.3])
    monkeypatch.setattr(timing, "perf_counter", lambda: now[0])

    def work() -> None:
        now[0] += next(durations, 0.001)

    ((_, times),) = run_in_turns([work], most_runs=5)
    assert times == pytest.approx([1.0] * 5)


def test_a_slow_work_is_measured_once_when_warm() -> None:
    runs: list[int] = []
    found = run_in_turns([lambda: (runs.append(0), sleep(0.05), 7)[2], lambda: 8], budget_ms=30)
    assert [(result, len(times)) for result, times in found] == [(7, 1), (8, 1)]
    assert len(runs) == 2


def test_a_very_long_run_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "_LONG_MS", 50.0)
    runs: list[int] = []
    found = run_in_turns([lambda: (runs.append(0), sleep(0.06))[1], lambda: None])
    assert len(runs) == 1
    assert all(len(times) == 1 for _, times in found)
    assert found[0][1][0] >= 60


def test_the_spread_is_that_of_the_middle_half() -> None:
    assert spread([3.0]) == 0
    assert spread([2.0] * 9 + [900.0]) == 0
    assert spread([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx(2 / 3)


def test_the_result_comes_with_its_duration() -> None:
    result, ms = timed(lambda: sleep(0.01) or 7)
    assert result == 7
    assert ms >= 10
