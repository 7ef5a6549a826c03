"""The planner: from a frozen e-graph to a kernel program, with what it moves and computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from math import inf

from bbrewrite.core.elements import Element
from bbrewrite.core.programs import BlockProgram, Tensor
from bbrewrite.core.terms import Term
from bbrewrite.egraph.view import FrozenGraph
from bbrewrite.plan.extraction.assemble import closed_terms, kernel_term
from bbrewrite.plan.extraction.extract import Extraction, KernelForm, extract, extract_alone
from bbrewrite.plan.extraction.lists import Lists
from bbrewrite.plan.extraction.parts import parts
from bbrewrite.plan.extraction.search import CHOICES_COMPARED, Choice, Found, Prices, priced_choices, search
from bbrewrite.plan.kernel import KernelProgram
from bbrewrite.plan.kernel_counts import KernelCounts
from bbrewrite.plan.partition import Partition, fused_program, partition
from bbrewrite.plan.plans import Plan, PlanCosts, PlanOutline
from bbrewrite.plan.scheduling.scheduled import Scheduled
from bbrewrite.plan.scheduling.schedules import Schedules
from bbrewrite.plan.term_costs import TermCosts

# What may be spent on scheduling kernels beside the unfused ones: an ordinary one counts as one, a large one as the
# several that take as long; those of a small graph are small. And how many are scheduled of those that read the same
# lists, where the graph is too large to try all.
MOST_EFFORT = 12
MOST_EFFORT_OF_SMALL = 32
FORMS_SCHEDULED = 1
# Of a candidate of a large program that many are compared with, which takes most of the time of planning it.
FORMS_OF_CANDIDATE = 2
# No schedule reaches its bound. Where not all is tried, a plan is looked for only if bounds promise that much more than
# what matters: it spares most of the time of planning.
PROMISED_AT_LEAST = 0.02
# That of a candidate: kernels as large as most candidates stay further above their bounds.
PROMISED_OF_CANDIDATE = 0.05
# Where limits leave the unfused plan, and bounds promise that another takes so much less, the search goes on so often:
# what was scheduled before is known by then. Candidates are compared with others anyway.
SEARCHED_ON_FOR = 0.3
SEARCHES_MORE = 3
# The report says that not all plans were compared where one of the others may be faster by so much. No schedule
# reaches its bound, so most often none is. Of a candidate that is never told: not all is tried there.
GAP_TOLD = 0.1


@dataclass(frozen=True)
class _Pricing:
    """What kernels cost by their schedules. `tensors` are all that they read and store."""

    lists: Lists
    tensors: Mapping[str, Tensor]
    schedules: Schedules

    def seconds(self, form: KernelForm) -> float:
        return self.schedules.price(kernel_term(form, self.lists), self.tensors).seconds


@dataclass(frozen=True)
class _PartSearch:
    """The search for the plan of some lists, as long as kernels may be scheduled."""

    prices: Prices
    wanted: tuple[str, ...]
    may_schedule: Callable[[], bool]

    def run(self, ceiling: float, fewest_lists: bool = False) -> Found:
        return search(self.prices, self.wanted, ceiling, self.may_schedule, fewest_lists)


class Planner:
    """Plans of one program on one machine. Kernels that several plans have are scheduled once.

    `originals` are the terms of the unfused definitions. `schedules` know the indices of the e-graph's terms and the
    machine; they may have kernels of this program that were scheduled before, and those that are scheduled now are
    added. Of a `candidate` of a large program not all kernels are tried: it is planned to be compared with others.
    """

    def __init__(
        self,
        graph: FrozenGraph,
        program: BlockProgram,
        originals: Mapping[str, Term],
        schedules: Schedules,
        candidate: bool = False,
    ) -> None:
        self._graph = graph
        self._program = program
        self._indices = schedules.indices
        self._table = schedules.table
        self._machine = schedules.machine
        self._originals = originals
        self._schedules = schedules
        self._partitions: dict[tuple[str, ...], Partition] = {}  # of the plans made, by their terms
        self._lists = Lists(graph, program, self._indices, self._table)
        self._outputs = {tensor.name: self._lists[graph.roots[tensor.name]].name for tensor in program.outputs}
        tensors = {tensor.name: tensor for tensor in program.inputs} | self._lists.tensors
        self._costs = TermCosts(self._table, self._indices, tensors, self._machine)
        self._pricing = _Pricing(self._lists, tensors, schedules)
        self._is_candidate = candidate

    @cached_property
    def _extraction(self) -> Extraction:
        return extract(self._graph, self._lists, self._costs)

    @cached_property
    def _tries_all(self) -> bool:
        return self._is_all_tried(self._extraction)

    @cached_property
    def _prices(self) -> Prices:
        return self._prices_in(self._extraction)

    @cached_property
    def _parts(self) -> tuple[Mapping[str, str], ...]:
        return parts(self._outputs, self._extraction.kernels)

    def _is_all_tried(self, extraction: Extraction) -> bool:
        return extraction.is_complete and not self._is_candidate

    def _prices_in(self, extraction: Extraction) -> Prices:
        some = FORMS_OF_CANDIDATE if extraction.is_complete else FORMS_SCHEDULED
        forms_tried = len(self._graph.classes) if self._is_all_tried(extraction) else some
        return Prices(extraction, self._pricing.seconds, forms_tried)

    def chosen(self) -> Plan:
        """The cheapest plan found for the outputs, that of every part; never one that costs more than the unfused."""
        alone = self._in_one_launch()
        if alone is not None:
            return self._built(alone)
        chosen = [self._chosen_of(part) for part in self._parts]
        outline = chosen[0][0] if len(chosen) == 1 else self._joined([found for found, _ in chosen])
        plan = self._built(outline)
        return replace(plan, notes=(*plan.notes, *(note for _, notes in chosen for note in notes)))

    def _joined(self, found: Sequence[PlanOutline]) -> PlanOutline:
        """The plans of all parts as one."""
        terms = {name: term for plan in found for name, term in plan.terms.items()}
        names = [(term, name) for plan in found for term, name in plan.names.items()]
        # What one part stores for itself may be the output of another: under that name it is stored once.
        names.sort(key=lambda pair: pair[1] in self._outputs)
        return self._outlined({name: terms[name] for name in self._outputs}, dict(names), self._lists.wanted_elements)

    def _in_one_launch(self) -> PlanOutline | None:
        """The cheapest plan of one kernel, where it costs no more than the launches of two: then no other costs less,
        and what there is besides need not be found. That is most often so where arrays are small.
        """
        wanted = tuple(dict.fromkeys(self._outputs.values()))
        limit = 2 * self._costs.launch
        # Most often what comes from memory and goes there tells that it takes longer.
        moved = sum(map(self._costs.store, (*self._program.inputs, *self._program.outputs)))
        if self._costs.launch + moved >= limit:
            return None
        extraction = extract_alone(self._graph, self._lists, self._costs, frozenset(wanted))
        if not any(kernel.bound < limit for kernel in extraction.kernels):
            return None
        found = search(self._prices_in(extraction), wanted, limit, self._budget(self._is_all_tried(extraction)))
        if found.best is None or found.bound_left < inf:
            return None
        plan = self._plan_of(found.best, self._outputs)
        # An output that another one holds already, or as another type, takes a kernel more.
        return plan if len(plan.costs) == 1 else None

    def _chosen_of(self, part: Mapping[str, str]) -> tuple[PlanOutline, tuple[str, ...]]:
        """The plan of a part, with sentences on it."""
        unfused = self._unfused_of(part)
        found, bound_left = self._chosen_beside(unfused, part)
        for _ in range(0 if self._is_candidate else SEARCHES_MORE):
            if found is not unfused or bound_left > (1 - SEARCHED_ON_FOR) * unfused.seconds:
                break
            found, bound_left = self._chosen_beside(unfused, part)
        return found, self._notes(bound_left, found, part)

    def _chosen_beside(self, unfused: PlanOutline, part: Mapping[str, str]) -> tuple[PlanOutline, float]:
        """Of a part's plans that the model does not tell from the cheapest, the one with fewest lists and kernels; and
        what the plans that were not compared take at least.
        """
        searched = _PartSearch(self._prices, tuple(dict.fromkeys(part.values())), self._budget(self._tries_all))
        tolerance = self._machine.target.tolerance
        limit = unfused.seconds * (1 + tolerance)
        nearest = searched.run(limit, fewest_lists=True)
        least = unfused.seconds if nearest.best is None else min(limit, nearest.best.seconds)
        # Most often no plan is so much cheaper that it matters, and bounds alone tell.
        cheaper = searched.run(min(unfused.seconds, least / (1 + tolerance + self._least_promised)))
        if cheaper.best is not None:
            nearest = searched.run(cheaper.best.seconds * (1 + tolerance), fewest_lists=True)
        # A list rounded to an output's type may have to be stored twice, which the search does not know.
        plans = [unfused, *(self._plan_of(found.best, part) for found in (cheaper, nearest) if found.best is not None)]
        return preferred(plans, tolerance), cheaper.bound_left

    @property
    def _least_promised(self) -> float:
        """How much less than what matters bounds must promise, as a share, for a plan to be looked for."""
        return PROMISED_OF_CANDIDATE if self._is_candidate else 0.0 if self._tries_all else PROMISED_AT_LEAST

    def _budget(self, tries_all: bool) -> Callable[[], bool]:
        """Whether more kernels may be scheduled, asked again and again while a part is planned."""
        most = self._schedules.effort + (MOST_EFFORT_OF_SMALL if tries_all else MOST_EFFORT)
        return lambda: self._schedules.effort < most

    def pareto(self) -> tuple[Plan, ...]:
        """The plans worth measuring, the chosen one first: no plan that was considered has fewer or as many buffers,
        bytes of global and of local memory and operations than one of the others, all of them.
        """
        chosen = self.chosen()
        others = [self._unfused_of(self._outputs), *self._considered(self._outputs)]
        kept = [chosen]
        for outline in sorted(others, key=lambda plan: plan.rank):
            if not any(known.is_no_worse(outline) for known in kept):
                kept.append(self._built(outline))
        return tuple(kept)

    def _considered(self, part: Mapping[str, str]) -> Iterator[PlanOutline]:
        """The plans of a part, or of all, of which every kernel was scheduled; cheapest first."""
        choices = priced_choices(self._prices, tuple(dict.fromkeys(part.values())))
        return (self._plan_of(choice, part) for choice in islice(choices, CHOICES_COMPARED))

    def _unfused_of(self, part: Mapping[str, str]) -> PlanOutline:
        """The plan of a part in which every definition is a kernel of its own."""
        names = {term: name for name, term in self._originals.items()}
        own = {definition.tensor.name: definition.tensor.element for definition in self._program.definitions}
        return self._outlined({name: self._originals[name] for name in part}, names, own)

    def _plan_of(self, choice: Choice, part: Mapping[str, str]) -> PlanOutline:
        terms = closed_terms(choice.kernels, self._lists)
        names = {term: name for name, term in terms.items() if name in self._program.tensors}
        return self._outlined(
            {output: terms[name] for output, name in part.items()}, names, self._lists.wanted_elements
        )

    def _outlined(
        self, terms: Mapping[str, Term], names: Mapping[Term, str], declared: Mapping[str, Element]
    ) -> PlanOutline:
        canonical = self._lists.canonical
        parts = partition(terms, names, declared, self._program, self._indices, self._table, canonical)
        tensors = self._tensors_of(parts)
        prices = [self._schedules.price(kernel, tensors) for kernel in parts.kernels]
        costs = tuple(cost for price in prices for cost in price.costs)
        buffers = (*parts.buffers, *(buffer for price in prices for buffer in price.buffers))
        return PlanOutline(costs, terms, names, parts, tuple(buffer.name for buffer in buffers))

    def _built(self, outline: PlanOutline) -> Plan:
        tensors = self._tensors_of(outline.parts)
        chosen = [self._schedules.of(kernel, tensors) for kernel in outline.parts.kernels]
        return self._with_schedules(outline.terms, outline.parts, chosen)

    def _tensors_of(self, parts: Partition) -> dict[str, Tensor]:
        """What the kernels of a plan read and store."""
        tensors: dict[str, Tensor] = {tensor.name: tensor for tensor in self._program.inputs}
        return tensors | {output.tensor.name: output.tensor for kernel in parts.kernels for output in kernel.outputs}

    def _with_schedules(self, terms: Mapping[str, Term], parts: Partition, chosen: Sequence[Scheduled]) -> Plan:
        """The plan whose kernels are these, in order."""
        tensors = self._tensors_of(parts)
        self._partitions[tuple(term.digest for term in terms.values())] = parts
        outputs = tuple(tensors[name] for name in terms)
        indices = self._indices
        for item in chosen:
            if item.shares is not None and item.shares.name not in indices:
                indices = indices.with_index(item.shares)
        kernels = KernelProgram(
            self._program.name,
            indices,
            self._program.inputs,
            (*parts.buffers, *(buffer for item in chosen for buffer in item.buffers)),
            outputs,
            tuple(kernel for item in chosen for kernel in item.kernels),
        )
        notes = tuple(note for item in chosen for note in item.notes)
        fused = fused_program(parts, self._program, self._indices)
        costs = tuple(cost for item in chosen for cost in item.costs)
        choices = tuple(item.choice for item in chosen if item.choice is not None)
        unkept = tuple(found for item in chosen for found in item.unkept)
        return Plan(costs, terms, fused, kernels, notes, choices, unkept)

    def _notes(self, bound_left: float, plan: PlanOutline, part: Mapping[str, str]) -> tuple[str, ...]:
        """Why there are as many kernels as there are, and how far off the plan may be where a limit was met."""
        notes = [*self._why_so_many(plan, part)]
        share = 1 - bound_left / plan.seconds
        if share >= GAP_TOLD and not self._is_candidate:
            notes.append(
                f"not all plans were compared: one of the others may be faster, by {share:.0%} at most, estimated"
            )
        return tuple(notes)

    def _why_so_many(self, plan: PlanOutline, part: Mapping[str, str]) -> Iterator[str]:
        is_whole = len(self._parts) == 1 and not self._is_candidate
        counts = KernelCounts(self._costs, self._pricing.tensors, "" if is_whole else ", ".join(part))
        if plan.buffers:
            fewer = next((found for found in self._considered(part) if found.buffer_count < plan.buffer_count), None)
            if fewer is not None:
                yield counts.why_not_fewer(plan, fewer)
        # Candidates are chosen by what they take together. A kernel of two launches makes counts another matter.
        if self._is_candidate or len(plan.parts.kernels) != len(plan.costs):
            return
        promise = self._prices.promise_of_more(dict.fromkeys(part.values()), len(plan.costs))
        if promise is not None:
            tolerance = self._machine.target.tolerance
            note = counts.why_not_more(plan, promise, tolerance + self._least_promised)
            if note is not None:
                yield note


def preferred[P: PlanCosts](plans: Sequence[P], tolerance: float) -> P:
    """Of the plans that the model does not tell from the fastest, the one with fewest lists and kernels."""
    limit = min(plan.seconds for plan in plans) * (1 + tolerance)
    return min((plan for plan in plans if plan.seconds <= limit), key=lambda plan: plan.size)
