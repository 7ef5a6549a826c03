"""The planner: from a frozen e-graph to a kernel program, with what it moves and computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import BlockProgram, Tensor
from bbrewrite.core.terms import Term
from bbrewrite.egraph.view import FrozenGraph
from bbrewrite.plan.cost import Cost
from bbrewrite.plan.extract import extract
from bbrewrite.plan.kernel import KernelProgram
from bbrewrite.plan.partition import Partition, fused_program, partition
from bbrewrite.plan.schedule import Machine, Scheduled, schedule
from bbrewrite.plan.term_costs import TermCosts

# How many extracted plans are scheduled before the cheapest is taken.
PLANS_SCHEDULED = 3


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
    def local_bytes(self) -> int:
        """The local memory of the kernel that needs most, on one processor."""
        return max((cost.local_bytes for cost in self.costs), default=0)


def plan_program(
    graph: FrozenGraph,
    program: BlockProgram,
    indices: IndexTable,
    table: OperatorTable,
    machine: Machine,
) -> Plan:
    """The cheapest plan found for a program's outputs. `indices` are those of the e-graph's terms."""
    return min(candidate_plans(graph, program, indices, table, machine), key=lambda plan: plan.rank)


def candidate_plans(
    graph: FrozenGraph,
    program: BlockProgram,
    indices: IndexTable,
    table: OperatorTable,
    machine: Machine,
) -> list[Plan]:
    """The plans that are scheduled, the most promising by the extractor's estimate first; never none."""
    indices = indices.with_extents(machine.extents)
    inputs = {tensor.name: tensor for tensor in program.inputs}
    outputs = tuple(tensor.name for tensor in program.outputs)
    costs = TermCosts(table, indices, inputs, machine.target)
    extraction = extract(graph, outputs, costs)
    scheduled: dict[object, Scheduled] = {}
    return [
        _planned(
            terms,
            partition(terms, extraction.list_names, program, indices, table),
            program,
            indices,
            table,
            machine,
            scheduled,
        )
        for terms in extraction.plans[:PLANS_SCHEDULED]
    ]


def _planned(
    terms: Mapping[str, Term],
    parts: Partition,
    program: BlockProgram,
    indices: IndexTable,
    table: OperatorTable,
    machine: Machine,
    scheduled: dict[object, Scheduled],
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
    notes = tuple(_shortage(item, machine) for item in chosen if item.cost.seconds == float("inf"))
    return Plan(terms, fused_program(parts, program, indices), kernels, tuple(item.cost for item in chosen), notes)


def _shortage(item: Scheduled, machine: Machine) -> str:
    return (
        f"kernel {item.kernel.name} needs {item.cost.local_bytes / 1024:.0f} KiB of local memory and the target has"
        f" {machine.target.local_capacity_bytes / 1024:.0f}: no schedule fits, so blocks spill to global memory"
    )
