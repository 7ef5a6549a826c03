"""A planned program: its kernels, what they cost, and by what plans are compared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace

from bbrewrite.core.programs import BlockProgram
from bbrewrite.core.terms import Term
from bbrewrite.plan.choices import PlanChoice, ScheduleChoice
from bbrewrite.plan.costs.totals import Cost
from bbrewrite.plan.kernel import KernelProgram
from bbrewrite.plan.partition import Partition
from bbrewrite.plan.unkept import Unkept


@dataclass(frozen=True)
class PlanCosts(ABC):
    """What a plan's kernels cost, in order, and by what plans are compared: they need not be built for it."""

    costs: tuple[Cost, ...]

    @property
    @abstractmethod
    def buffer_count(self) -> int:
        """How many lists are stored between kernels."""

    @property
    def seconds(self) -> float:
        return sum(cost.seconds for cost in self.costs)

    @property
    def rank(self) -> tuple[float, int, int]:
        """What is compared between plans: time, then local memory where none fits, then traffic."""
        return (self.seconds, self.local_bytes, self.global_bytes)

    @property
    def size(self) -> tuple[int, int, float, int, int]:
        """What is compared between plans that the model does not tell apart: fewer buffers, then fewer kernels."""
        return (self.buffer_count, len(self.costs), *self.rank)

    @property
    def needs(self) -> tuple[int, int, int, int]:
        """What plans are weighed by before they are measured: buffers, bytes, operations and local memory."""
        return (self.buffer_count, self.global_bytes, self.flops, self.local_bytes)

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

    def is_no_worse(self, other: PlanCosts) -> bool:
        """Whether this plan needs no more of anything than another."""
        return all(a <= b for a, b in zip(self.needs, other.needs, strict=True))


@dataclass(frozen=True)
class PlanOutline(PlanCosts):
    """A plan whose kernels are chosen and priced but not built. `names` are those of the lists in its terms."""

    terms: Mapping[str, Term]
    names: Mapping[Term, str]
    parts: Partition
    buffers: tuple[str, ...]

    @property
    def buffer_count(self) -> int:
        return len(self.buffers)


@dataclass(frozen=True)
class Plan(PlanCosts):
    """A planned program. `fused` is the chosen block program, `kernels` what is generated from it.

    `terms` has the chosen closed term of every output, `notes` sentences for the report, such as that local
    memory did not suffice; `unkept` what it has no room to keep.
    """

    terms: Mapping[str, Term]
    fused: BlockProgram
    kernels: KernelProgram
    notes: tuple[str, ...]
    # Those of the kernels that run in one launch; none of a plan put together from others.
    schedules: tuple[ScheduleChoice, ...] = ()
    unkept: tuple[Unkept, ...] = ()

    @property
    def choice(self) -> PlanChoice:
        """What makes this plan again."""
        terms = tuple(sorted((name, term.digest) for name, term in self.terms.items()))
        return PlanChoice(terms, self.schedules, self.kernels.unrolled)

    def with_loops(self, unrolled: bool) -> Plan:
        """The plan whose loops the compiler unrolls, or does not. The model prices both alike."""
        return replace(self, kernels=replace(self.kernels, unrolled=unrolled))

    @property
    def buffer_count(self) -> int:
        return len(self.kernels.buffers)

    @property
    def skipped_share(self) -> float | None:
        """The share of their work that masks let loops skip, for the extents at hand; None where none is narrowed."""
        total = sum(cost.iterations_in_all for cost in self.costs)
        return 1 - sum(cost.iterations for cost in self.costs) / total if total else None
