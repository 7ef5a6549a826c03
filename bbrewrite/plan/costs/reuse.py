"""From which tier of memory a nest's loads come: of each load the share that every shared tier serves.

A block that a loop loads again comes from the nearest tier that has room for everything touched in between: what one
iteration of that loop touches. What is loaded for the first time comes from where its tensor lies between kernels.
Threads that load the same blocks are not counted on to do so at one time: measured, they do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from bbrewrite.plan.costs.events import Event
from bbrewrite.plan.target import Target

type _Loops = tuple[str, ...]


@dataclass(frozen=True)
class _Reused:
    """A load's origin at first, and the loops that repeat it: each with all loops around it, outermost first."""

    distance: float
    loops: tuple[_Loops, ...]


class Residence:
    """The shares of a nest's loads and stores, for many choices of block sizes at once.

    `distances` are the bytes touched before the first use of each event's tensor; `columns` the places of indices
    among the rows of trip counts.
    """

    def __init__(
        self,
        traffic: Sequence[Event],
        distances: Sequence[float],
        columns: Mapping[str, int],
        extents: Mapping[str, int],
        target: Target,
    ) -> None:
        self._columns = columns
        self._capacities = [tier.capacity_bytes for tier in target.shared_tiers]
        self._reused = [
            _Reused(distance, tuple(event.loops[: n + 1] for n, i in enumerate(event.loops) if event.is_repeated(i)))
            for event, distance in zip(traffic, distances, strict=True)
        ]
        # One tier serves all loads alike.
        self._repeating = list(dict.fromkeys(loops for reused in self._reused for loops in reused.loops))
        if len(self._capacities) == 1:
            self._repeating = []
        rows: list[list[float]] = []
        amounts: list[float] = []
        self._parts: list[slice] = []
        for loops in self._repeating:
            inside = {event.block: event for event in traffic if event.loops[: len(loops)] == loops}
            self._parts.append(slice(len(rows), len(rows) + len(inside)))
            for event in inside.values():
                rows.append(self._exponents(event, loops))
                amounts.append(event.amount * prod(extents[axis] or 1 for axis in event.axes))
        self._matrix = np.array(rows, dtype=np.float64).reshape(len(rows), len(columns))
        self._amounts = np.array(amounts, dtype=np.float64)[:, None]

    def _exponents(self, event: Event, loops: _Loops) -> list[float]:
        """Of the trip counts in what one iteration of the innermost of `loops` touches of an event's tensor."""

        def exponent(name: str) -> float:
            if name in event.axes:
                return -1.0 if name in loops else 0.0
            return 1.0 if name in event.loops[len(loops) :] and event.visits(name) else 0.0

        return [exponent(name) for name in self._columns]

    def shares(self, trips: NDArray[np.float64], log_trips: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """For each shared tier the shares of all events, a row for each, that it serves."""
        between: dict[_Loops, NDArray[np.float64]] = {}
        if self._repeating:
            touched = self._amounts * np.exp(self._matrix @ log_trips)
            for loops, part in zip(self._repeating, self._parts, strict=True):
                between[loops] = np.add.reduce(touched[part], axis=0)
        known: dict[_Reused, list[NDArray[np.float64]]] = {}
        for reused in self._reused:
            if reused not in known:
                known[reused] = self._shares_of(reused, between, trips)
        return [np.array([known[reused][tier] for reused in self._reused]) for tier in range(len(self._capacities))]

    def _shares_of(
        self, reused: _Reused, between: Mapping[_Loops, NDArray[np.float64]], trips: NDArray[np.float64]
    ) -> list[NDArray[np.float64]]:
        served = [np.zeros(trips.shape[1]) for _ in self._capacities]
        served[self._tier(reused.distance)] += 1
        if not between or not reused.loops:
            return served
        total = np.ones(trips.shape[1])
        for loops in reused.loops:
            own = trips[self._columns[loops[-1]]]
            again = total * (own - 1)
            unserved = np.ones(trips.shape[1], dtype=np.bool_)
            for tier, capacity in enumerate(self._capacities):
                fits = unserved & (between[loops] <= capacity)
                served[tier] += again * fits
                unserved &= ~fits
            total = total * own
        return [share / total for share in served]

    def _tier(self, distance: float) -> int:
        return next(tier for tier, capacity in enumerate(self._capacities) if distance <= capacity)
