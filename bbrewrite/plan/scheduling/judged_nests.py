"""The nests of one kernel by the choices that make them, each judged once: priced at coarse block sizes.

How a nest is made is for `shaped_nests.py` to say; which choices are tried, and at which block sizes a nest is best in
the end, for `schedule.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bbrewrite.core.terms import Term
from bbrewrite.plan.costs.cost import NestCosts
from bbrewrite.plan.costs.events import NestEvents
from bbrewrite.plan.costs.gpu_costs import GpuNestCosts
from bbrewrite.plan.costs.totals import Cost
from bbrewrite.plan.kernel import Statement
from bbrewrite.plan.nests.nest import Nest
from bbrewrite.plan.scheduling.problem import ScheduleProblem
from bbrewrite.plan.scheduling.shaped_nests import ShapedNests
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
    """Judges nests of a kernel at the block sizes that are tried for it."""

    def __init__(self, problem: ScheduleProblem, nests: ShapedNests, sizes: TriedSizes) -> None:
        self._problem = problem
        self._nests = nests
        self._sizes = sizes
        self._extents = {index.name: problem.extent(index.name) for index in problem.indices}
        # The same choices are asked for again; different ones often come to one nest.
        self._built: dict[object, NestChoice | None] = {}
        self._judged: dict[object, tuple[NestEvents, NestCosts, tuple[int, ...], Cost]] = {}

    def built(
        self, grid: tuple[str, ...], order: tuple[str, ...], kept: frozenset[Term], split: str | None
    ) -> NestChoice | None:
        """The nest of these choices at its best coarse block sizes; None where `split` cannot be shared out."""
        choices = (grid, order, kept, split)
        if choices not in self._built:
            self._built[choices] = self._judge(*choices)
        return self._built[choices]

    def nest(
        self, grid: tuple[str, ...], order: tuple[str, ...], kept: frozenset[Term], split: str | None
    ) -> Nest | None:
        """The nest of these choices, whatever it costs; None where `split` cannot be shared out."""
        return self._nests.nest(grid, order, kept, split)

    def _judge(
        self, grid: tuple[str, ...], order: tuple[str, ...], kept: frozenset[Term], split: str | None
    ) -> NestChoice | None:
        nest = self._nests.nest(grid, order, kept, split)
        if nest is None:
            return None
        key = (grid, nest.body)
        judged = self._judged.get(key)
        if judged is None:
            events = self._nests.events(grid, nest.body)
            costs = self._costs(events, nest.body, grid)
            judged = self._judged[key] = (events, costs, *self._sizes.coarse(costs))
        events, costs, blocks, cost = judged
        return NestChoice(grid, order, split, kept, nest, blocks, cost, events, costs)

    def _costs(self, events: NestEvents, body: tuple[Statement, ...], grid: tuple[str, ...]) -> NestCosts:
        problem = self._problem
        machine, used, indices = problem.machine, problem.used, problem.indices
        gpu = machine.target.gpu
        if gpu is None:
            return NestCosts(events, grid, used, self._extents, indices, machine)
        return GpuNestCosts(events, body, grid, used, self._extents, indices, problem.tensors, machine, gpu)
