"""The nests of one kernel by the choices that make them, each judged once: built, narrowed, and priced at coarse sizes.

Which choices are tried, and at which block sizes a nest is best in the end, is for `schedule.py` to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Term, walk
from bbrewrite.core.types import Typing
from bbrewrite.plan.costs.cost import Cost, NestCosts
from bbrewrite.plan.costs.events import summarise
from bbrewrite.plan.costs.gpu_costs import GpuNestCosts
from bbrewrite.plan.kernel import Statement
from bbrewrite.plan.machine import Machine
from bbrewrite.plan.masks.narrowing import Narrowing, may_narrow, with_ranges_only
from bbrewrite.plan.nests.naming import Naming, name_values
from bbrewrite.plan.nests.nest import Nest, NestBuilder
from bbrewrite.plan.partition import KernelTerm
from bbrewrite.plan.scheduling.split import share_out, split_reduction
from bbrewrite.plan.scheduling.tried_sizes import TriedSizes


@dataclass(frozen=True)
class SizedNest:
    """A nest with the choices that made it, block sizes, and what they cost."""

    grid: tuple[str, ...]
    order: tuple[str, ...]
    split: str | None  # the index whose loop processors share out
    kept: frozenset[Term]
    nest: Nest
    blocks: tuple[int, ...]  # in the order of the indices used
    cost: Cost

    @property
    def rank(self) -> tuple[float, int, int]:
        return self.cost.rank


@dataclass(frozen=True)
class NestChoice(SizedNest):
    """One point of the search: it knows what its nest costs at other block sizes."""

    costs: NestCosts


class JudgedNests:
    """Builds and judges nests of a kernel. `reduced` are the indices of its reductions, `used` all its indices."""

    def __init__(
        self,
        kernel: KernelTerm,
        indices: IndexTable,
        tensors: Mapping[str, Tensor],
        table: OperatorTable,
        machine: Machine,
        reduced: tuple[str, ...],
        used: tuple[str, ...],
        sizes: TriedSizes,
    ) -> None:
        self._kernel = kernel
        self._indices = indices
        self._tensors = tensors
        self._table = table
        self._machine = machine
        self._reduced = reduced
        self._used = used
        self._sizes = sizes
        self._typing = Typing(table, indices, tensors)
        terms = (term for output in kernel.outputs for term in walk(output.body))
        self._narrowing = Narrowing(table, self._typing, tensors) if may_narrow(terms, self._typing) else None
        self._extents = {index.name: machine.extents[indices.root(index.name)] for index in indices}
        self._named: dict[frozenset[Term], Naming] = {}
        # Different choices often come to one nest.
        self._narrowed: dict[tuple[tuple[str, ...], tuple[Statement, ...]], tuple[Statement, ...]] = {}
        self._judged: dict[tuple[tuple[str, ...], tuple[Statement, ...]], tuple[NestCosts, tuple[int, ...], Cost]] = {}

    def built(
        self, grid: tuple[str, ...], order: tuple[str, ...], kept: frozenset[Term], split: str | None
    ) -> NestChoice | None:
        """The nest of these choices at its best coarse block sizes; None where `split` cannot be shared out."""
        nest = self.nest(grid, order, kept, split)
        if nest is None:
            return None
        if (grid, nest.body) not in self._judged:
            costs = self._costs(nest.body, grid)
            self._judged[grid, nest.body] = (costs, *self._sizes.coarse(costs))
        costs, blocks, cost = self._judged[grid, nest.body]
        return NestChoice(grid, order, split, kept, nest, blocks, cost, costs)

    def nest(
        self, grid: tuple[str, ...], order: tuple[str, ...], kept: frozenset[Term], split: str | None
    ) -> Nest | None:
        """The nest of these choices with its loops narrowed, and one shared out; None where that cannot be."""
        if kept not in self._named:
            self._named[kept] = name_values(self._kernel, kept, self._table)
        nest = NestBuilder(self._kernel, self._named[kept], kept, order, grid, self._table, self._typing).build()
        body = nest.body
        if self._narrowing is not None:
            if (grid, body) not in self._narrowed:
                narrowed = self._narrowing.of(body, grid)
                self._narrowed[grid, body] = with_ranges_only(narrowed) if self._machine.target.gpu else narrowed
            body = self._narrowed[grid, body]
        if split is not None:
            is_reduced = split in self._reduced
            shared = split_reduction(body, split, nest.accumulators) if is_reduced else share_out(body, split)
            if shared is None:
                return None
            body = shared
        return replace(nest, body=body)

    def _costs(self, body: tuple[Statement, ...], grid: tuple[str, ...]) -> NestCosts:
        events = summarise(body, grid, self._table, self._typing, self._tensors)
        gpu = self._machine.target.gpu
        if gpu is None:
            return NestCosts(events, grid, self._used, self._extents, self._indices, self._machine)
        return GpuNestCosts(
            events, body, grid, self._used, self._extents, self._indices, self._tensors, self._machine, gpu
        )
