"""Wall-clock measurement of stages and of kernels, in milliseconds."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

# Enough for a steady median of fast programs, few enough that slow ones do not keep anyone waiting.
_BUDGET_MS = 400.0
_MOST_RUNS = 25


def timed[T](work: Callable[[], T]) -> tuple[T, float]:
    """The result of `work` and how long it took."""
    start = perf_counter()
    result = work()
    return result, (perf_counter() - start) * 1000


def run_and_time[T](
    work: Callable[[], T], most_runs: int = _MOST_RUNS, budget_ms: float = _BUDGET_MS
) -> tuple[T, list[float]]:
    """The result of a first, warming run and the durations of those after it.

    There are at most `most_runs` and none once the budget is spent; where the first run alone spends it, its own
    duration is the only one.
    """
    result, first = timed(work)
    if first > budget_ms:
        return result, [first]
    times: list[float] = []
    while not times or (len(times) < most_runs and sum(times) < budget_ms):
        times.append(timed(work)[1])
    return result, times
