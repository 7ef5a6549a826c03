"""What a kernel comes to for given block sizes, as the cost model gives it. How it is found is for `cost.py` to say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Occupancy:
    """How a kernel's blocks of threads fill a GPU: `blocks` of them, of `threads` each, `resident` on every processor
    at one time. A thread's `registers` are estimated.
    """

    blocks: int
    threads: int
    registers: int
    shared_bytes: int
    resident: int
    waves: float


@dataclass(frozen=True)
class Cost:
    """The totals of a nest for given block sizes and extents; `seconds` is infinite where local memory is short.

    `tier_bytes` are the global bytes by the tier of shared memory that they come from or go to, nearest first.
    """

    seconds: float
    global_bytes: int
    tier_bytes: tuple[int, ...]
    flops: int
    local_bytes: int
    iterations: float = 0.0  # of loops that masks narrow, where work on a part of a block counts as that part
    iterations_in_all: float = 0.0  # of such loops, if nothing were masked
    occupancy: Occupancy | None = None  # of a GPU

    @property
    def rank(self) -> tuple[float, int, int]:
        """Feasible and fast first; what does not fit in local memory is ordered by how much it needs."""
        return (self.seconds, self.local_bytes, self.global_bytes)


def total(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """What all rows come to, for each column."""
    return np.add.reduce(rows, axis=0)


def weighted_total(rows: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same of rows that count by weights."""
    return total(rows * weights)
