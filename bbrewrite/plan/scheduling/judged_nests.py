"""The nests of one kernel by the choices that make them, each judged once: built, narrowed, and priced at coarse sizes.

Which choices are tried, and at which block sizes a nest is best in the end, is for `schedule.py` to say.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bbrewrite.core.terms import Term
from bbrewrite.core.types import Typing
from bbrewrite.plan.costs.cost import NestCosts
from bbrewrite.plan.costs.events import NestEvents, summarise
from bbrewrite.plan.costs.gpu_costs import GpuNestCosts
from bbrewrite.plan.costs.totals import Cost
from bbrewrite.plan.kernel import Statement
from bbrewrite.plan.masks.narrowing import Narrowing, may_narrow, with_ranges_only
from bbrewrite.plan.nests.naming import Naming, name_values
from bbrewrite.plan.nests.nest import Nest, NestBuilder
from bbrewrite.plan.scheduling.problem import ScheduleProblem
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
    """One point of the search: it knows what happens in its nest, and what that costs at other block sizes."""

    events: NestEvents
    costs: NestCosts


class JudgedNests:
    """Builds and judges nests of a kernel, at the block sizes that are tried for it."""

    def __init__(self, problem: ScheduleProblem, sizes: TriedSizes) -> None:
        self._problem = problem
        self._sizes = sizes
        table, tensors = problem.table, problem.tensors
        self._typing = Typing(table, problem.indices, tensors)
        is_narrowable = may_narrow(iter(problem.terms), self._typing)
        self._narrowing = Narrowing(table, self._typing, tensors) if is_narrowable else None
        self._extents = {index.name: problem.extent(index.name) for index in problem.indices}
        self._named: dict[frozenset[Term], Naming] = {}
        # The same choices are asked for again; different ones often come to one nest.
        self._built: dict[object, NestChoice | None] = {}
        self._narrowed: dict[tuple[tuple[str, ...], tuple[Statement, ...]], tuple[Statement, ...]] = {}
        self._judged: dict[object, tuple[NestEvents, NestCosts, tuple[int, ...], Cost]] = {}

    def built(
        self, grid: tuple[str, ...], order: tuple[str, ...], kept: frozenset[Term], split: str | None
    ) -> NestChoice | None:
        """The nest of these choices at its best coarse block sizes; None where `split` cannot be shared out."""
        choices = (grid, order, kept, split)
        if choices not in self._built:
            self._built[choices] = self._judge(*choices)
        return self._built[choices]

    def _judge(
        self, grid: tuple[str, ...], order: tuple[str, ...], kept: frozenset[Term], split: str | None
    ) -> NestChoice | None:
        nest = self.nest(grid, order, kept, split)
        if nest is None:
            return None
        key = (grid, nest.body)
        judged = self._judged.get(key)
        if judged is None:
            events = summarise(nest.body, grid, self._problem.table, self._typing, self._problem.tensors)
            costs = self._costs(events, nest.body, grid)
            judged = self._judged[key] = (events, costs, *self._sizes.coarse(costs))
        events, costs, blocks, cost = judged
        return NestChoice(grid, order, split, kept, nest, blocks, cost, events, costs)

    def nest(
        self, grid: tuple[str, ...], order: tuple[str, ...], kept: frozenset[Term], split: str | None
    ) -> Nest | None:
        """The nest of these choices with its loops narrowed, and one shared out; None where that cannot be."""
        kernel, table = self._problem.kernel, self._problem.table
        if kept not in self._named:
            self._named[kept] = name_values(kernel, kept, table)
        nest = NestBuilder(kernel, self._named[kept], kept, order, grid, table, self._typing).build()
        body = nest.body
        if self._narrowing is not None:
            if (grid, body) not in self._narrowed:
                narrowed = self._narrowing.of(body, grid)
                has_ranges_only = self._problem.machine.target.gpu is not None
                self._narrowed[grid, body] = with_ranges_only(narrowed) if has_ranges_only else narrowed
            body = self._narrowed[grid, body]
        if split is not None:
            is_reduced = split in self._problem.reduced
            shared = split_reduction(body, split, nest.accumulators) if is_reduced else share_out(body, split)
            if shared is None:
                return None
            body = shared
        return replace(nest, body=body)

    def _costs(self, events: NestEvents, body: tuple[Statement, ...], grid: tuple[str, ...]) -> NestCosts:
        problem = self._problem
        machine, used, indices = problem.machine, problem.used, problem.indices
        gpu = machine.target.gpu
        if gpu is None:
            return NestCosts(events, grid, used, self._extents, indices, machine)
        return GpuNestCosts(events, body, grid, used, self._extents, indices, problem.tensors, machine, gpu)
