"""The grids and loop orders that scheduling tries for a kernel. What a choice of them costs is for `schedule.py`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from bbrewrite.plan.costs.gpu_costs import GPU_BLOCK_SIZES
from bbrewrite.plan.scheduling.problem import ScheduleProblem
from bbrewrite.plan.scheduling.tried_sizes import BLOCK_SIZES

# Loops of more than this many indices are tried in the program's order only.
PERMUTED_INDICES = 4


class LoopOrders:
    """Which indices of a kernel may form its grid, and in what order its other loops may stand."""

    def __init__(self, problem: ScheduleProblem) -> None:
        self._kernel = problem.kernel
        self._used = problem.used
        self._reduced = problem.reduced
        self._indices = problem.indices
        self._machine = problem.machine
        self.extent = problem.extent

    def grids(self) -> Iterator[tuple[str, ...]]:
        """Sets of output indices that every output has and no reduction binds, the largest first; none is empty
        where there is anything to run in parallel.
        """
        shared = [
            index
            for index in self._kernel.outputs[0].tensor.indices
            if index not in self._reduced and all(index in output.tensor.indices for output in self._kernel.outputs)
        ]
        points = tuple(index for index in shared if not self._indices.is_blocked(index))
        blocked = [index for index in shared if index not in points and self.extent(index) > self.whole(index)]
        single = tuple(index for index in shared if index not in points and index not in blocked)
        # Point indices are batches: parallel, and nothing is shared between their iterations but weights.
        for mask in range(2 ** len(blocked) - 1, -1, -1):
            chosen = {index for bit, index in enumerate(blocked) if mask >> bit & 1} | {*points, *single}
            if chosen or not shared:
                yield tuple(index for index in shared if index in chosen)

    def orders(self, grid: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Orders of the indices outside the grid that are worth trying."""
        rest = tuple(index for index in self._used if index not in grid)
        looping = tuple(index for index in rest if self.extent(index) > self.whole(index))
        single = tuple(index for index in rest if index not in looping)
        if len(looping) > PERMUTED_INDICES:
            return [tuple(sorted(rest, key=lambda index: index in self._reduced))]
        # Loops of a single iteration cost nothing where they stand; around everything those of outputs read best.
        outer = [index for index in single if index not in self._reduced]
        inner = [index for index in single if index in self._reduced]
        return [(*outer, *order, *inner) for order in permutations(looping)]

    def whole(self, index: str) -> int:
        """An extent that one block can span, so that its loop has a single iteration."""
        largest = GPU_BLOCK_SIZES[-1] if self._machine.target.gpu else BLOCK_SIZES[-4]
        return largest if self._indices.is_blocked(index) else 1
