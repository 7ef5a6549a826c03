"""Wall-clock measurement of stages and of kernels, in milliseconds."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter

# Enough for a steady median of fast programs, few enough that slow ones do not keep anyone waiting.
_BUDGET_MS = 400.0
_MOST_RUNS = 25


def timed[T](work: Callable[[], T]) -> tuple[T, float]:
    """The result of `work` and how long it took."""
    start = perf_counter()
    result = work()
    return result, (perf_counter() - start) * 1000


def median_time(work: Callable[[], object]) -> float:
    """The median duration of `work`, which has already run once (so that caches and pages are warm).

    Runs at least once more, and up to 25 times while 0.4 seconds last.
    """
    times: list[float] = []
    while not times or (len(times) < _MOST_RUNS and sum(times) < _BUDGET_MS):
        times.append(timed(work)[1])
    return median(times)
