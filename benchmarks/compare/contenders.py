"""What is compared: something that computes a workload's result when it is called, again and again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.compare.workloads import Array


@dataclass
class Contender:
    """`call` runs once; `fetch` gives the result of the last call as a float32 array of the reference's shape.

    `rounds` collects the median time of each round, in seconds; `fault` says why it takes no part.
    """

    name: str
    call: Callable[[], object]
    fetch: Callable[[], Array]
    rounds: list[float] = field(default_factory=list[float])
    error: float = 0.0
    fault: str = ""
