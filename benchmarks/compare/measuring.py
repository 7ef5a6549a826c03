"""Times the contenders of a workload, interleaved: in every round each one runs for a while, in another order.

Before its timed calls a contender rests, until the waiting threads of the one before have gone to sleep, and is warmed
up. What the machine itself can do at that time is measured in the same way, as one of them. Results are checked first;
one that is wrong takes no part.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median

from benchmarks.compare import ours
from benchmarks.compare.contenders import Contender
from benchmarks.compare.libraries import BUILDERS
from benchmarks.compare.limits import Limit, Limits
from benchmarks.compare.results import OURS, Row, Times
from benchmarks.compare.workloads import Workload

# Threads of OpenBLAS wait for more work at full speed for some tenths of a second.
_REST_SECONDS = 0.3
_WARM_SECONDS = 0.05


def measure(
    workload: Workload, names: Sequence[str], threads: int, rounds: int, call_seconds: float, limits: Limits
) -> Row:
    """The times of our kernel and of the named libraries."""
    contenders = [_checked(ours.contender, OURS, workload, threads)]
    contenders += [_checked(BUILDERS[name], name, workload, threads) for name in names]
    present = [each for each in contenders if each is not None]
    live = [each for each in present if not each.fault]
    limit = limits.of(workload)
    rates: list[float] = []
    turns = [*live[:1], limit, *live[1:]]  # beside ours, since what is left of a limit is told round by round
    for number in range(rounds):
        start = number % len(turns)
        for each in [*turns[start:], *turns[:start]]:
            if isinstance(each, Limit):
                rates.append(median(_warmed(each.rate, call_seconds)[1]))
            else:
                each.rounds.append(median(_warmed(each.call, call_seconds)[0]))
    times = tuple(Times(each.name, tuple(each.rounds), each.error, each.fault) for each in present)
    work, unit = (workload.flops, "GFLOP/s") if workload.is_product else (workload.least_bytes, "GB/s")
    return Row(workload.kind, workload.shape, workload.element, work, unit, limit.name, tuple(rates), times)


def _checked(build: object, name: str, workload: Workload, threads: int) -> Contender | None:
    assert callable(build)
    try:
        contender = build(workload, threads)
        if contender is None:
            return None
        contender.call()
        contender.error = workload.error(contender.fetch())
        if not contender.error <= workload.tolerance:
            contender.fault = f"wrong: off by {contender.error:.1e}"
        return contender
    except ImportError as error:
        return Contender(name, lambda: None, lambda: workload.reference, fault=f"not installed ({error.name})")
    except Exception as error:  # a library that refuses a program is a result too
        first = str(error).strip().partition("\n")[0]
        return Contender(name, lambda: None, lambda: workload.reference, fault=f"{type(error).__name__}: {first}"[:100])


def _warmed[T](call: Callable[[], T], call_seconds: float) -> tuple[list[float], list[T]]:
    """How long calls took, and what they returned, after a rest and others that do not count."""
    time.sleep(_REST_SECONDS)
    start = time.perf_counter()
    calls = 0
    while calls == 0 or time.perf_counter() - start < _WARM_SECONDS:
        call()
        calls += 1
    one = (time.perf_counter() - start) / calls
    times: list[float] = []
    results: list[T] = []
    for _ in range(max(2, min(200, int(call_seconds / one)))):
        start = time.perf_counter()
        results.append(call())
        times.append(time.perf_counter() - start)
    return times, results
