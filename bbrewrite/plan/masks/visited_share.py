"""Which share of the blocks of narrowed loops, or of the elements in them, is visited for given block sizes.

Positions and extents are known when a program is planned; what tensors hold is known when arrays are given. Until then
a condition on that counts as possible everywhere. Loops of which one decides about the other, or which depend on the
same index around them, are counted together: the product of their shares would be another number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from bbrewrite.core.terms import IndexValue, Read, Size, Term
from bbrewrite.plan.masks.block_extremes import Array, extreme_of_read
from bbrewrite.plan.masks.visible import ALWAYS, Extreme, LoopBounds, block_range, possible

# Where more combinations of outer blocks than this exist, an even choice of them stands for all: for choosing among
# many block sizes, and for those that were chosen.
SAMPLES, MOST_COUNTED = 1 << 12, 1 << 20
# Beyond what any position can be: the extremes of values that are not known.
_FAR = 2**40


@dataclass(frozen=True)
class NarrowedLoop:
    """A loop with bounds; `scope` are the indices of the loops and the grid around it."""

    index: str
    bounds: LoopBounds
    scope: frozenset[str]

    @cached_property
    def outer(self) -> tuple[str, ...]:
        """The indices around the loop on which its bounds depend."""
        return tuple(sorted(frozenset[str]().union(*(leaf.free for leaf in self.bounds.leaves)) & self.scope))

    @cached_property
    def indices(self) -> frozenset[str]:
        """Those that decide which blocks are visited."""
        return frozenset({*self.outer, self.index})


def counted_together(loops: Sequence[NarrowedLoop]) -> tuple[tuple[NarrowedLoop, ...], ...]:
    """Loops inside each other in groups, the shares of which are independent of each other."""
    groups: list[tuple[NarrowedLoop, ...]] = []
    for loop in loops:
        related = [group for group in groups if any(loop.indices & other.indices for other in group)]
        groups = [group for group in groups if group not in related]
        groups.append((*(other for group in related for other in group), loop))
    return tuple(groups)


def visited_share(
    loops: Sequence[NarrowedLoop],
    blocks: Mapping[str, int],
    extents: Mapping[str, int],
    elements: frozenset[str] = frozenset(),
    arrays: Mapping[str, Array] = MappingProxyType({}),
    most: int = MOST_COUNTED,
) -> float:
    """The share of what happens in the innermost of several loops, were all their blocks visited, that does happen.

    It happens for every block, or along the indices `elements` for every element of one: the last block of an index
    has as many as there are. `extents` has every index, `blocks` those of the loops; of more than `most` combinations
    of outer blocks a choice is looked at. Over nothing, the share is that of one element.
    """
    return prod(_Count(group, blocks, extents, elements, arrays, most).share() for group in counted_together(loops))


class _Count:
    """Counts what the loops of one group visit, for all combinations of the blocks on which they depend at once."""

    def __init__(
        self,
        loops: Sequence[NarrowedLoop],
        blocks: Mapping[str, int],
        extents: Mapping[str, int],
        elements: frozenset[str],
        arrays: Mapping[str, Array],
        most: int,
    ) -> None:
        self._loops = loops
        self._blocks = blocks
        self._extents = extents
        self._elements = elements
        self._arrays = arrays
        # Each of these indices is an axis of what is computed; a last one is for the blocks of a loop with a test.
        self._outer = tuple(sorted(frozenset[str]().union(*(loop.outer for loop in loops))))
        tested = max((self._trips(loop.index) for loop in loops if loop.bounds.test != ALWAYS), default=1)
        most = max(min(most, SAMPLES), most // tested)
        each = max(1, int(most ** (1 / max(1, len(self._outer)))))
        self._numbers: dict[str, Any] = {}
        for place, name in enumerate(self._outer):
            trips = self._trips(name)
            chosen = np.arange(trips) if trips <= each else np.linspace(0, trips - 1, each).astype(np.int64)
            self._numbers[name] = chosen.reshape([-1 if place == axis else 1 for axis in range(len(self._outer) + 1)])

    def share(self) -> float:
        visited: Any = self._around()
        in_all: Any = visited.sum()
        for loop in self._loops:
            if loop.index in self._numbers:  # the bounds of a loop inside depend on it
                visited = visited * self._is_visited(loop, self._numbers)
            else:
                visited = visited * self._visited(loop)
                in_all = in_all * (self._extent(loop.index) if self._counts(loop.index) else self._trips(loop.index))
        return float(visited.sum() / in_all)

    def _around(self) -> Any:
        """What each combination of outer blocks counts for."""
        found: Any = np.ones(1)
        for name in self._outer:
            found = found * self._amount(name, self._numbers[name])
        return found

    def _visited(self, loop: NarrowedLoop) -> Any:
        """How many of its blocks, or elements, a loop visits in each combination of outer blocks."""
        if loop.bounds.test == ALWAYS:
            first, past = self._range(loop, self._numbers)
            if not self._counts(loop.index):
                return past - first
            block, extent = self._blocks[loop.index], self._extent(loop.index)
            return np.minimum(past * block, extent) - np.minimum(first * block, extent)
        every = np.arange(self._trips(loop.index))
        seen = self._is_visited(loop, {**self._numbers, loop.index: every})
        return (seen * self._amount(loop.index, every)).sum(axis=-1, keepdims=True)

    def _is_visited(self, loop: NarrowedLoop, numbers: Mapping[str, Any]) -> Any:
        first, past = self._range(loop, numbers)
        number = numbers[loop.index]
        own = {name: numbers[name] for name in loop.indices}
        return (number >= first) & (number < past) & possible(loop.bounds.test, self._extremes(own))

    def _range(self, loop: NarrowedLoop, numbers: Mapping[str, Any]) -> tuple[Any, Any]:
        outer = {name: numbers[name] for name in loop.outer}
        return block_range(loop.bounds, self._blocks[loop.index], self._trips(loop.index), self._extremes(outer))

    def _extremes(self, numbers: Mapping[str, Any]) -> Extreme:
        """Those of leaves in the blocks of these numbers."""

        def extreme(leaf: Term, greatest: bool) -> Any:
            match leaf:
                case Size(index):
                    return self._extents[index]
                case IndexValue(index):
                    if index not in numbers:
                        return self._extents[index] - 1 if greatest else 0
                    first = numbers[index] * self._blocks[index]
                    return np.minimum(first + self._blocks[index], self._extents[index]) - 1 if greatest else first
                case Read(tensor) if tensor in self._arrays:
                    return extreme_of_read(leaf, greatest, self._arrays[tensor], self._blocks, numbers)
                case _:
                    return _FAR if greatest else -_FAR

        return extreme

    def _amount(self, index: str, numbers: Any) -> Any:
        """What each of an index's blocks counts for."""
        if not self._counts(index):
            return np.ones(np.shape(numbers))
        block = self._blocks[index]
        return np.minimum(block, self._extent(index) - numbers * block)

    def _counts(self, index: str) -> bool:
        return index in self._elements

    def _extent(self, index: str) -> int:
        return max(1, self._extents[index])

    def _trips(self, index: str) -> int:
        return -(-self._extent(index) // self._blocks[index])
