"""The planner: from a frozen e-graph to a kernel program, with what it moves and computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import BlockProgram, Tensor
from bbrewrite.core.terms import Term
from bbrewrite.egraph.view import FrozenGraph
from bbrewrite.plan.cost import Cost
from bbrewrite.plan.extract import ExtractedPlan, extract
from bbrewrite.plan.kernel import KernelProgram
from bbrewrite.plan.partition import KernelTerm, Partition, fused_program, partition
from bbrewrite.plan.schedule import Machine, Scheduled, schedule
from bbrewrite.plan.term_costs import TermCosts

# How many extracted plans are scheduled at most.
PLANS_SCHEDULED = 6
# The model does not tell plans apart that are nearer than this; among such, the one with fewest buffers is taken, and
# of these the one with fewest kernels.
TOLERANCE = 0.05


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
    def global_bytes(self) -> int:
        return sum(cost.global_bytes for cost in self.costs)

    @property
    def flops(self) -> int:
        return sum(cost.flops for cost in self.costs)

    @property
    def skipped_share(self) -> float | None:
        """The share of blocks that masks let loops skip, for the extents at hand; None where no loop is narrowed."""
        total = sum(cost.blocks_in_all for cost in self.costs)
        return 1 - sum(cost.blocks_visited for cost in self.costs) / total if total else None

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
    """The cheapest plan found for a program's outputs.

    `indices` are those of the e-graph's terms. `originals` are the terms of the unfused definitions: their plan is
    always among those compared. `scheduled` are kernels of this program that were scheduled before for this machine;
    those that are scheduled now are added.
    """
    return cheapest(candidate_plans(graph, program, indices, table, machine, originals, scheduled))


def cheapest(plans: Sequence[Plan]) -> Plan:
    """The plan that is chosen: of the fastest, which the model does not tell apart, the one with fewest buffers."""
    fastest = min(plan.seconds for plan in plans)
    near = [plan for plan in plans if plan.seconds <= fastest * (1 + TOLERANCE)]
    return min(near, key=lambda plan: (len(plan.kernels.buffers), len(plan.kernels.kernels), *plan.rank))


def candidate_plans(
    graph: FrozenGraph,
    program: BlockProgram,
    indices: IndexTable,
    table: OperatorTable,
    machine: Machine,
    originals: Mapping[str, Term],
    scheduled: dict[KernelTerm, Scheduled] | None = None,
) -> list[Plan]:
    """The plans that are scheduled: the unfused one, then the most promising by the extractor's estimate."""
    indices = indices.with_extents(machine.extents)
    inputs = {tensor.name: tensor for tensor in program.inputs}
    outputs = tuple(tensor.name for tensor in program.outputs)
    unfused = {name: originals[name] for name in outputs}
    costs = TermCosts(table, indices, inputs, machine.target)
    extraction = extract(graph, outputs, costs)
    names = {**extraction.list_names, **{term: name for name, term in originals.items()}}
    scheduled = {} if scheduled is None else scheduled
    plans: list[Plan] = []
    for extracted in [ExtractedPlan(unfused, 0.0), *extraction.plans[:PLANS_SCHEDULED]]:
        # The estimate hoists everything and fills all processors: no schedule of a plan is faster.
        if plans and min(plan.seconds for plan in plans) <= extracted.estimate:
            break
        parts = partition(extracted.roots, names, program, indices, table)
        plans.append(_planned(extracted.roots, parts, program, indices, table, machine, scheduled))
    return plans


def _planned(
    terms: Mapping[str, Term],
    parts: Partition,
    program: BlockProgram,
    indices: IndexTable,
    table: OperatorTable,
    machine: Machine,
    scheduled: dict[KernelTerm, Scheduled],
) -> Plan:
    tensors: dict[str, Tensor] = {tensor.name: tensor for tensor in program.inputs}
    tensors |= {output.tensor.name: output.tensor for kernel in parts.kernels for output in kernel.outputs}
    chosen: list[Scheduled] = []
    for kernel in parts.kernels:
        if kernel not in scheduled:
            scheduled[kernel] = schedule(kernel, indices, tensors, table, machine)
        chosen.append(scheduled[kernel])
    outputs = tuple(tensors[tensor.name] for tensor in program.outputs)
    kernels = KernelProgram(
        program.name, indices, program.inputs, parts.buffers, outputs, tuple(item.kernel for item in chosen)
    )
    notes = tuple(note for item in chosen for note in item.notes)
    return Plan(terms, fused_program(parts, program, indices), kernels, tuple(item.cost for item in chosen), notes)
