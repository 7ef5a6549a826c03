"""The planner: from a frozen e-graph to a kernel program, with what it moves and computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice

from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import BlockProgram, Tensor
from bbrewrite.core.terms import Term
from bbrewrite.egraph.view import FrozenGraph
from bbrewrite.lang.diagnostics import counted
from bbrewrite.plan.assemble import closed_terms, kernel_term
from bbrewrite.plan.cost import Cost
from bbrewrite.plan.extract import Extraction, KernelForm, extract
from bbrewrite.plan.kernel import KernelProgram
from bbrewrite.plan.lists import Lists
from bbrewrite.plan.machine import Machine
from bbrewrite.plan.partition import KernelTerm, fused_program, partition
from bbrewrite.plan.schedule import Scheduled, schedule
from bbrewrite.plan.search import CHOICES_COMPARED, Choice, Found, Prices, priced_choices, search
from bbrewrite.plan.term_costs import TermCosts

# How many kernels are scheduled at most beside the unfused ones; and of kernels that read the same lists, where the
# graph is too large to try all.
KERNELS_SCHEDULED = 12
FORMS_SCHEDULED = 1
# The model does not tell plans apart that are nearer than this; among such, the one with fewest buffers is taken, and
# of these the one with fewest kernels.
TOLERANCE = 0.05
# No schedule reaches its bound. Where the graph is too large to try all, a plan is looked for only if bounds promise
# that much more than what matters: it spares most of the time of planning.
PROMISED_AT_LEAST = 0.02


@dataclass(frozen=True)
class Plan:
    """A planned program. `fused` is the chosen block program, `kernels` what is generated from it.

    `terms` has the chosen closed term of every output, `notes` sentences for the report, such as that local
    memory did not suffice.
    """

    terms: Mapping[str, Term]
    fused: BlockProgram
    kernels: KernelProgram
    costs: tuple[Cost, ...]  # of the kernels, in order
    notes: tuple[str, ...]

    @property
    def seconds(self) -> float:
        return sum(cost.seconds for cost in self.costs)

    @property
    def rank(self) -> tuple[float, int, int]:
        """What is compared between plans: time, then local memory where none fits, then traffic."""
        return (self.seconds, self.local_bytes, self.global_bytes)

    @property
    def needs(self) -> tuple[int, int, int, int]:
        """What plans are weighed by before they are measured: buffers, bytes, operations and local memory."""
        return (len(self.kernels.buffers), self.global_bytes, self.flops, self.local_bytes)

    @property
    def global_bytes(self) -> int:
        return sum(cost.global_bytes for cost in self.costs)

    @property
    def flops(self) -> int:
        return sum(cost.flops for cost in self.costs)

    @property
    def skipped_share(self) -> float | None:
        """The share of their work that masks let loops skip, for the extents at hand; None where none is narrowed."""
        total = sum(cost.iterations_in_all for cost in self.costs)
        return 1 - sum(cost.iterations for cost in self.costs) / total if total else None

    @property
    def local_bytes(self) -> int:
        """The local memory of the kernel that needs most, on one processor."""
        return max((cost.local_bytes for cost in self.costs), default=0)


def plan_program(
    graph: FrozenGraph,
    program: BlockProgram,
    indices: IndexTable,
    table: OperatorTable,
    machine: Machine,
    originals: Mapping[str, Term],
    scheduled: dict[KernelTerm, Scheduled] | None = None,
) -> Plan:
    """The cheapest plan found for a program's outputs, never one that costs more than the unfused one.

    `indices` are those of the e-graph's terms. `originals` are the terms of the unfused definitions. `scheduled` are
    kernels of this program that were scheduled before for this machine; those that are scheduled now are added.
    """
    return _Planner(graph, program, indices, table, machine, originals, scheduled).chosen()


def pareto_plans(
    graph: FrozenGraph,
    program: BlockProgram,
    indices: IndexTable,
    table: OperatorTable,
    machine: Machine,
    originals: Mapping[str, Term],
) -> tuple[Plan, ...]:
    """The plans worth measuring, the chosen one first: no plan that was considered has fewer or as many buffers, bytes
    of global and of local memory and operations than one of the others, all of them.
    """
    return _Planner(graph, program, indices, table, machine, originals).pareto()


class _Planner:
    """Plans of one program on one machine. Kernels that several plans have are scheduled once."""

    def __init__(
        self,
        graph: FrozenGraph,
        program: BlockProgram,
        indices: IndexTable,
        table: OperatorTable,
        machine: Machine,
        originals: Mapping[str, Term],
        scheduled: dict[KernelTerm, Scheduled] | None = None,
    ) -> None:
        self._program = program
        self._indices = indices.with_extents(machine.extents)
        self._table = table
        self._machine = machine
        self._scheduled = {} if scheduled is None else scheduled
        self._lists = Lists(graph, program, self._indices, table)
        self._outputs = {tensor.name: self._lists[graph.roots[tensor.name]].name for tensor in program.outputs}
        names = {term: name for name, term in originals.items()}
        self._unfused = self._planned({name: originals[name] for name in self._outputs}, names)
        self._scheduled_at_first = len(self._scheduled)
        self._extraction = self._extracted(graph)
        self._prices = Prices(
            self._extraction, self._price, len(graph.classes) if self._extraction.is_complete else FORMS_SCHEDULED
        )

    def _extracted(self, graph: FrozenGraph) -> Extraction:
        tensors = {tensor.name: tensor for tensor in self._program.inputs} | self._lists.tensors
        costs = TermCosts(self._table, self._indices, tensors, self._machine)
        return extract(graph, self._lists, costs)

    def chosen(self) -> Plan:
        """Of the plans that the model does not tell from the cheapest, the one with fewest lists and fewest kernels."""
        limit = self._unfused.seconds * (1 + TOLERANCE)
        nearest = self._search(limit, fewest_lists=True)
        least = self._unfused.seconds if nearest.best is None else min(limit, nearest.best.seconds)
        # Most often no plan is so much cheaper that it matters, and bounds alone tell.
        promised = 0.0 if self._extraction.is_complete else PROMISED_AT_LEAST
        cheaper = self._search(min(self._unfused.seconds, least / (1 + TOLERANCE + promised)))
        if cheaper.best is not None:
            nearest = self._search(cheaper.best.seconds * (1 + TOLERANCE), fewest_lists=True)
        choices = [found.best for found in (cheaper, nearest) if found.best is not None]
        plans = [self._unfused, *map(self._plan_of, choices)]
        # A list rounded to an output's type may have to be stored twice, which the search does not know.
        fastest = min(plan.seconds for plan in plans)
        candidates = [plan for plan in plans if plan.seconds <= fastest * (1 + TOLERANCE)]
        plan = min(candidates, key=lambda plan: (len(plan.kernels.buffers), len(plan.kernels.kernels), *plan.rank))
        return replace(plan, notes=(*plan.notes, *self._notes(min(cheaper.bound_left, nearest.bound_left), plan)))

    def _search(self, ceiling: float, fewest_lists: bool = False) -> Found:
        return search(self._prices, self._wanted, ceiling, self._may_schedule, fewest_lists)

    def _may_schedule(self) -> bool:
        return len(self._scheduled) < KERNELS_SCHEDULED + self._scheduled_at_first

    def pareto(self) -> tuple[Plan, ...]:
        """The chosen plan and the others that nothing beats in every respect."""
        chosen = self.chosen()
        choices = islice(priced_choices(self._prices, self._wanted), CHOICES_COMPARED)
        others = [self._unfused, *(self._plan_of(choice) for choice in choices)]
        kept = [chosen]
        for plan in sorted(others, key=lambda plan: plan.rank):
            if not any(_is_no_worse(known, plan) for known in kept):
                kept.append(plan)
        return tuple(kept)

    @property
    def _wanted(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self._outputs.values()))

    def _price(self, form: KernelForm) -> float:
        kernel = kernel_term(form, self._lists)
        tensors = {tensor.name: tensor for tensor in self._program.inputs} | self._lists.tensors
        return self._schedule(kernel, tensors).cost.seconds

    def _schedule(self, kernel: KernelTerm, tensors: Mapping[str, Tensor]) -> Scheduled:
        if kernel not in self._scheduled:
            self._scheduled[kernel] = schedule(kernel, self._indices, tensors, self._table, self._machine)
        return self._scheduled[kernel]

    def _plan_of(self, choice: Choice) -> Plan:
        terms = closed_terms(choice.kernels, self._lists)
        names = {term: name for name, term in terms.items() if name in self._program.tensors}
        return self._planned({output: terms[name] for output, name in self._outputs.items()}, names)

    def _planned(self, terms: Mapping[str, Term], names: Mapping[Term, str]) -> Plan:
        parts = partition(terms, names, self._program, self._indices, self._table)
        tensors: dict[str, Tensor] = {tensor.name: tensor for tensor in self._program.inputs}
        tensors |= {output.tensor.name: output.tensor for kernel in parts.kernels for output in kernel.outputs}
        chosen = [self._schedule(kernel, tensors) for kernel in parts.kernels]
        outputs = tuple(tensors[tensor.name] for tensor in self._program.outputs)
        kernels = KernelProgram(
            self._program.name,
            self._indices,
            self._program.inputs,
            parts.buffers,
            outputs,
            tuple(item.kernel for item in chosen),
        )
        notes = tuple(note for item in chosen for note in item.notes)
        fused = fused_program(parts, self._program, self._indices)
        return Plan(terms, fused, kernels, tuple(item.cost for item in chosen), notes)

    def _notes(self, bound_left: float, plan: Plan) -> tuple[str, ...]:
        """Why nothing or not everything was fused, and how far off the plan may be where a limit was met."""
        notes: list[str] = []
        if plan.kernels.buffers:
            notes += self._why_stored(plan)
        if bound_left < plan.seconds / (1 + TOLERANCE):
            share = 1 - bound_left / plan.seconds
            notes.append(
                f"planning met its limit of {KERNELS_SCHEDULED} kernels scheduled: this plan is the best so far,"
                f" and none can be faster by more than {share:.0%}, estimated"
            )
        return tuple(notes)

    def _why_stored(self, plan: Plan) -> list[str]:
        """A sentence on the cheapest plan considered with fewer buffers, with its time."""
        fewer = [
            other
            for choice in islice(priced_choices(self._prices, self._wanted), CHOICES_COMPARED)
            if len((other := self._plan_of(choice)).kernels.buffers) < len(plan.kernels.buffers)
        ]
        ours = f"{_milliseconds(plan.seconds)}, estimated"
        stored = ", ".join(tensor.name for tensor in plan.kernels.buffers)
        if not fewer:
            return []
        other = min(fewer, key=lambda plan: plan.rank)
        count = counted(len(other.kernels.kernels), "kernel")
        kept = ", ".join(tensor.name for tensor in other.kernels.buffers)
        without = f"with {kept} alone stored" if kept else "with nothing stored"
        theirs = _milliseconds(other.seconds)
        return [f"{stored} stored: the plan takes {ours}, and {count} {without} would take {theirs}"]


def _is_no_worse(one: Plan, other: Plan) -> bool:
    """Whether a plan needs no more of anything than another."""
    return all(a <= b for a, b in zip(one.needs, other.needs, strict=True))


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"
