"""Timing: medians, and an end to repetition."""

from __future__ import annotations

from time import sleep

from bbrewrite.timing import median_time, timed


def test_a_slow_call_runs_once_and_a_fast_one_often() -> None:
    slow: list[int] = []
    assert median_time(lambda: (slow.append(0), sleep(0.45))) >= 450
    assert len(slow) == 1
    fast: list[int] = []
    median_time(lambda: fast.append(0))
    assert len(fast) == 25


def test_the_result_comes_with_its_duration() -> None:
    result, ms = timed(lambda: sleep(0.01) or 7)
    assert result == 7
    assert ms >= 10
