"""Timing: repetition, and an end to it."""

from __future__ import annotations

from time import sleep

from bbrewrite.timing import run_and_time, timed


def test_a_slow_call_runs_once() -> None:
    runs: list[int] = []
    result, times = run_and_time(lambda: (runs.append(0), sleep(0.05), 7)[2], budget_ms=30)
    assert result == 7
    assert len(runs) == len(times) == 1
    assert times[0] >= 50


def test_a_fast_call_runs_often_after_a_warming_run() -> None:
    runs: list[int] = []
    _, times = run_and_time(lambda: runs.append(0), most_runs=9)
    assert len(times) == 9
    assert len(runs) == 10


def test_the_result_comes_with_its_duration() -> None:
    result, ms = timed(lambda: sleep(0.01) or 7)
    assert result == 7
    assert ms >= 10
