"""How many of a narrowed loop's blocks are visited, on average over the loops around it, for given block sizes.

Positions and extents are known when a program is planned; what tensors hold is known when arrays are given. Until then
a condition on that counts as possible everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from bbrewrite.core.terms import IndexValue, Read, Size, Term
from bbrewrite.plan.block_extremes import Array, extreme_of_read
from bbrewrite.plan.visible import ALWAYS, LoopBounds, block_range, possible

# Where more combinations of outer blocks than this exist, an even choice of them stands for all.
_SAMPLES = 4096
# Beyond what any position can be: the extremes of values that are not known.
_FAR = 2**40


@dataclass(frozen=True)
class NarrowedLoop:
    """A loop with bounds; `scope` are the indices of the loops and the grid around it."""

    index: str
    bounds: LoopBounds
    scope: frozenset[str]

    @property
    def outer(self) -> tuple[str, ...]:
        """The indices around the loop on which its bounds depend."""
        return tuple(sorted(frozenset[str]().union(*(leaf.free for leaf in self.bounds.leaves)) & self.scope))


def visited_share(
    loop: NarrowedLoop,
    blocks: Mapping[str, int],
    extents: Mapping[str, int],
    arrays: Mapping[str, Array] = MappingProxyType({}),
) -> float:
    """The share of the loop's blocks that are visited. `extents` has every index, `blocks` those of the loop."""
    trips = {name: -(-max(1, extents[name]) // blocks[name]) for name in (*loop.outer, loop.index)}
    numbers: dict[str, Any] = {}
    each = max(1, int(_SAMPLES ** (1 / max(1, len(loop.outer)))))
    for place, name in enumerate(loop.outer):
        chosen = np.unique(np.linspace(0, trips[name] - 1, min(trips[name], each)).astype(np.int64))
        numbers[name] = chosen.reshape([-1 if place == axis else 1 for axis in range(len(loop.outer) + 1)])

    def extreme(leaf: Term, greatest: bool) -> Any:
        match leaf:
            case Size(index):
                return extents[index]
            case IndexValue(index):
                if index not in numbers:
                    return extents[index] - 1 if greatest else 0
                first = numbers[index] * blocks[index]
                return np.minimum(first + blocks[index], extents[index]) - 1 if greatest else first
            case Read(tensor) if tensor in arrays:
                return extreme_of_read(leaf, greatest, arrays[tensor], blocks, numbers)
            case _:
                return _FAR if greatest else -_FAR

    first, past = block_range(loop.bounds, blocks[loop.index], trips[loop.index], extreme)
    if loop.bounds.test == ALWAYS:
        visited: Any = (past - first) / trips[loop.index]
        return float(visited.mean())
    number: Any = np.arange(trips[loop.index])
    numbers[loop.index] = number
    visited = (number >= first) & (number < past) & possible(loop.bounds.test, extreme)
    return float(visited.mean())
