"""Wall-clock measurement of stages and of kernels, in milliseconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import quantiles
from time import perf_counter

# Enough for steady medians of fast programs, few enough that slow ones do not keep anyone waiting.
_BUDGET_MS = 800.0
_MOST_RUNS = 25
_WARM_MS = 40.0  # until threads have started and the processor runs at its usual speed
_LONG_MS = 4000.0  # a run so long has warmed itself


def timed[T](work: Callable[[], T]) -> tuple[T, float]:
    """The result of `work` and how long it took."""
    start = perf_counter()
    result = work()
    return result, (perf_counter() - start) * 1000


def run_in_turns[T](
    works: Sequence[Callable[[], T]], most_runs: int = _MOST_RUNS, budget_ms: float = _BUDGET_MS
) -> list[tuple[T, tuple[float, ...]]]:
    """The result of each work and the durations of its runs, which take turns: what slows the machine slows all.

    Warming runs come first and do not count, except where they are so long that nothing is left to warm. There are at
    most `most_runs` rounds after them, none once the budget is spent, and one in any case.
    """
    warmed = [_warm(work) for work in works]
    results = [result for result, _ in warmed]
    if any(first > _LONG_MS for _, first in warmed):
        return [(result, (first,)) for result, first in warmed]
    rounds: list[list[float]] = []
    while not rounds or (len(rounds) < most_runs and sum(map(sum, rounds)) < budget_ms):
        rounds.append([timed(work)[1] for work in works])
    return [(result, times) for result, times in zip(results, zip(*rounds, strict=True), strict=True)]


def spread(times: Sequence[float]) -> float:
    """How far durations scatter: the middle half of them, relative to their median. Of one it is 0."""
    if len(times) < 2:
        return 0.0
    lower, middle, upper = quantiles(times, n=4, method="inclusive")
    return (upper - lower) / middle if middle else 0.0


def _warm[T](work: Callable[[], T]) -> tuple[T, float]:
    """The result of a first run and its duration, after as many more as it takes."""
    result, first = timed(work)
    spent = first
    while spent < _WARM_MS:
        spent += max(timed(work)[1], _WARM_MS / 100)
    return result, first
