"""Plans to measure beside the one that the model chooses: other lists stored, other schedules, most promising first.

And the way back: the plan that a choice, read from a file, tells. The cost model orders and prunes; it decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from math import isinf

from bbrewrite.core.terms import walk
from bbrewrite.plan.choices import PlanChoice, ScheduleChoice
from bbrewrite.plan.partition import KernelTerm, Partition
from bbrewrite.plan.planner import Planner
from bbrewrite.plan.plans import Plan
from bbrewrite.plan.scheduling.judged_nests import NestChoice
from bbrewrite.plan.scheduling.schedule import ScheduleSearch, counted
from bbrewrite.plan.scheduling.scheduled import Scheduled
from bbrewrite.plan.scheduling.tried_sizes import columns

# Nests whose block sizes are refined, and those around whose block sizes more are looked at.
_NESTS_REFINED = 8
_NESTS_VARIED = 3
# How far along the sizes that are tried a block may be from the model's own choice.
_STEPS = 2


class PlanSpace(Planner):
    """The plans of a program that could be measured."""

    @cached_property
    def _searches(self) -> dict[KernelTerm, _Alternatives]:
        return {}

    def near(self, plan: Plan) -> list[Plan]:
        """Plans that differ from one of this space in whether loops are unrolled, of which the model knows nothing, or
        in the schedule of one kernel; the fastest by the model first.
        """
        parts = self._parts_of(plan)
        own = self._followed(plan, plan.choice)
        assert own is not None
        found: list[Plan] = []
        for position, kernel in enumerate(parts.kernels):
            for other in self._search_of(plan, kernel).best():
                if other.choice != own[position].choice:
                    changed = [*own[:position], other, *own[position + 1 :]]
                    found.append(self._with_schedules(plan.terms, parts, changed).with_loops(plan.choice.unrolled))
        return [plan.with_loops(not plan.choice.unrolled), *sorted(found, key=lambda other: other.rank)]

    def followed(self, choice: PlanChoice) -> Plan | None:
        """The plan of a choice; None where this program, these extents or this version have no such plan."""
        for plan in self._plans():
            if plan.choice.terms == choice.terms:
                scheduled = self._followed(plan, choice)
                parts = self._parts_of(plan)
                if scheduled is None:
                    return None
                return self._with_schedules(plan.terms, parts, scheduled).with_loops(choice.unrolled)
        return None

    def _plans(self) -> Iterator[Plan]:
        yield self.chosen()
        yield from self.pareto()

    def _parts_of(self, plan: Plan) -> Partition:
        """The kernels of a plan, which the model chose or that was made here."""
        key = tuple(term.digest for term in plan.terms.values())
        if key not in self._partitions:
            self.chosen()
        return self._partitions[key]

    def _followed(self, plan: Plan, choice: PlanChoice) -> list[Scheduled] | None:
        kernels = self._parts_of(plan).kernels
        if len(kernels) != len(choice.kernels):
            return None
        made = [self._search_of(plan, k).followed(c) for k, c in zip(kernels, choice.kernels, strict=True)]
        found = [item for item in made if item is not None]
        return found if len(found) == len(made) else None

    def _search_of(self, plan: Plan, kernel: KernelTerm) -> _Alternatives:
        if kernel not in self._searches:
            tensors = self._tensors_of(self._parts_of(plan))
            self._searches[kernel] = _Alternatives(kernel, self._indices, tensors, self._table, self._machine)
        return self._searches[kernel]


class _Alternatives(ScheduleSearch):
    """Several schedules of one kernel instead of the best."""

    def best(self) -> list[Scheduled]:
        """The schedules worth measuring, the fastest by the model first."""
        started = [choice for grid in self._loops.grids() for choice in self._started(grid)]
        if self._machine.target.gpu is None:
            started += self._started_split()
        started.sort(key=lambda choice: choice.rank)
        refined = started[:_NESTS_REFINED]
        refined += [other for start in refined for other in self._shared_out(start)]
        nests = [self._with_block_sizes(nest) for start in refined for nest in self._descent(start)]
        nests.sort(key=lambda choice: choice.rank)
        found = [*nests, *(other for nest in nests[:_NESTS_VARIED] for other in self._other_blocks(nest))]
        found.sort(key=lambda choice: choice.rank)
        made = [self._finished(counted(choice), ()) for choice in found if not isinf(choice.cost.seconds)]
        return list({item.choice: item for item in made}.values())

    def _other_blocks(self, nest: NestChoice) -> Iterator[NestChoice]:
        """A nest with one block size changed by a few steps of the sizes that are tried."""
        for place, options in enumerate(self._sizes.options):
            own = nest.blocks[place]
            smaller = [size for size in options if size < own][-_STEPS:]
            larger = [size for size in options if size > own][:_STEPS]
            for size in (*smaller, *larger):
                yield self._with_blocks(nest, (*nest.blocks[:place], size, *nest.blocks[place + 1 :]))

    def _with_blocks(self, nest: NestChoice, blocks: tuple[int, ...]) -> NestChoice:
        _, cost = nest.costs.cheapest(columns([blocks]))
        return replace(nest, blocks=blocks, cost=cost)

    def followed(self, choice: ScheduleChoice) -> Scheduled | None:
        """The schedule that a choice tells; None where this kernel has none such, or local memory is short of it."""
        parts = {part.digest: part for output in self._kernel.outputs for part in walk(output.body)}
        sizes = dict(choice.blocks)
        fits = (
            (choice.grid in set(self._loops.grids()) if choice.split is None else not choice.grid)
            and sorted((*choice.grid, *choice.order)) == sorted(self._used) == sorted(sizes)
            and set(choice.kept) <= parts.keys()
            and (choice.split is None or choice.split in self._mergeable or self._is_shareable(choice.split))
            and all(size >= 1 for size in sizes.values())
        )
        if not fits:
            return None
        kept = frozenset(parts[digest] for digest in choice.kept)
        nest = self._nests.built(choice.grid, choice.order, kept, choice.split)
        if nest is None:
            return None
        made = self._with_blocks(nest, tuple(self._allowed(name, sizes[name]) for name in self._used))
        return None if isinf(made.cost.seconds) else self._finished(counted(made), ())

    def _allowed(self, name: str, size: int) -> int:
        """A block size that the index may have: what the program fixes, and nothing beyond the extent."""
        index = self._indices[name]
        if index.block is None:
            return 1
        return index.block if index.block_is_fixed else max(1, min(size, self._loops.extent(name)))
