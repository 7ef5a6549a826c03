"""Which block sizes are tried for a nest, and the search among them: all combinations of coarse ones, then descent.

What a choice costs is the cost model's business, which loops there are that of scheduling.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from bbrewrite.core.indices import IndexTable
from bbrewrite.plan.costs.cost import NestCosts
from bbrewrite.plan.costs.gpu_costs import GPU_BLOCK_SIZES
from bbrewrite.plan.costs.totals import Cost
from bbrewrite.plan.machine import Machine
from bbrewrite.plan.term_costs import LARGEST_BLOCK

# Block sizes that are tried: multiples of register tiles, from a few rows to most of a cache.
BLOCK_SIZES = (1, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512)
# Sizes that share an extent out evenly are tried too: up to so many blocks for each processor, none larger than this.
EVEN_BLOCKS = 8
LARGEST_EVEN_BLOCK = LARGEST_BLOCK
# The sizes of which all combinations are tried, and how many combinations at most.
COARSE_SIZES = (16, 64, 128, 256, 512)
COMBINATION_LIMIT = 3125
DESCENT_ROUNDS = 3


class TriedSizes:
    """The sizes that are tried for the indices of a kernel; a choice has one for each, in their order."""

    def __init__(
        self,
        used: tuple[str, ...],
        indices: IndexTable,
        machine: Machine,
        may_span: frozenset[str] = frozenset(),
        of_single_rows: frozenset[str] = frozenset(),
    ) -> None:
        """Along the indices in `may_span` a block may be as long as the extent, however long that is, and along columns
        of products `of_single_rows` as long as an even share of it.
        """
        self._may_span = may_span
        self._of_single_rows = of_single_rows
        self._indices = indices
        self._machine = machine
        self._sizes = GPU_BLOCK_SIZES if machine.target.gpu else BLOCK_SIZES
        self._starts = tuple(self._starting_block(name) for name in used)
        self.options = [self._block_options(name) for name in used]
        every = [options or [start] for start, options in zip(self._starts, self.options, strict=True)]
        # Where all combinations are tried, `coarse` finds the best and none is left to descend to.
        self.all_are_tried = prod(map(len, every)) <= COMBINATION_LIMIT
        self._combinations = columns(list(product(*every)) if self.all_are_tried else self._coarse_combinations())

    def coarse(self, costs: NestCosts, further: int = 0) -> tuple[tuple[int, ...], Cost]:
        """The best coarse sizes, and their cost. The model may know so many further indices, which have no blocks."""
        ones = np.ones((further, self._combinations.shape[1]))
        combinations = np.concatenate([self._combinations, ones])
        position, cost = costs.cheapest(combinations)
        return tuple(int(size) for size in combinations[:, position]), cost

    def descended(self, costs: NestCosts, start: tuple[int, ...]) -> tuple[tuple[int, ...], Cost]:
        """The sizes that descent along one index after another finds, and their cost."""
        best, cost = start, None
        settled = 0  # so many indices in a row have the best size beside those of all others
        for place, options in [*enumerate(self.options)] * DESCENT_ROUNDS:
            trials = [best, *((*best[:place], size, *best[place + 1 :]) for size in options)]
            if options:
                position, cost = costs.cheapest(columns(trials))
                settled = 0 if trials[position] != best else settled
                best = trials[position]
            settled += 1
            if settled == len(self.options):
                break
        return best, cost or costs.cheapest(columns([best]))[1]

    def _starting_block(self, name: str) -> int:
        index = self._indices[name]
        if index.block is None:
            return 1
        if index.block_is_fixed:
            return index.block
        return max(1, min(64, self._extent(name)))

    def _block_options(self, name: str) -> list[int]:
        index = self._indices[name]
        if index.block is None or index.block_is_fixed:
            return []
        extent = self._extent(name)
        tried = set(self._sizes)
        if self._machine.target.gpu is None:
            largest = extent if name in self._of_single_rows else LARGEST_EVEN_BLOCK
            tried |= {size for size in self._even_shares(extent) if size <= largest}
        sizes = sorted(size for size in tried if size < extent)
        ends_whole = name in self._may_span or extent <= self._sizes[-1]
        return [*sizes, extent] if ends_whole and extent >= 1 else sizes

    def _even_shares(self, extent: int) -> Iterator[int]:
        """Block sizes, in whole register tiles, that leave every processor the same number of blocks."""
        columns = self._machine.target.matrix_columns
        for blocks in range(1, EVEN_BLOCKS + 1):
            yield -(-extent // (blocks * self._machine.threads * columns)) * columns

    def _coarse_combinations(self) -> list[tuple[int, ...]]:
        """All combinations of coarse block sizes; indices beyond the limit keep their starting block."""
        choices: list[list[int]] = []
        total = 1
        for start, options in zip(self._starts, self.options, strict=True):
            coarse = [size for size in options if size in COARSE_SIZES or size > LARGEST_BLOCK] or [start]
            if total * len(coarse) > COMBINATION_LIMIT:
                coarse = [start]
            total *= len(coarse)
            choices.append(coarse)
        return list(product(*choices))

    def _extent(self, name: str) -> int:
        return self._machine.extents[self._indices.root(name)]


def columns(choices: list[tuple[int, ...]]) -> NDArray[np.float64]:
    """Choices of block sizes as the cost model takes them: a column each."""
    return np.array(choices, dtype=np.float64).T
