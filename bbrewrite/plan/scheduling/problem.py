"""What scheduling starts from: a kernel, what its terms mean, and the machine; and which loops the kernel has.

Which schedules are tried for it is for `schedule.py` to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Reduce, Term, walk
from bbrewrite.plan.machine import Machine
from bbrewrite.plan.partition import KernelTerm


@dataclass(frozen=True)
class ScheduleProblem:
    """A kernel to be scheduled. `tensors` are all that it reads and stores, at least."""

    kernel: KernelTerm
    indices: IndexTable
    tensors: Mapping[str, Tensor]
    table: OperatorTable
    machine: Machine

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """Every term of every output."""
        return tuple(term for output in self.kernel.outputs for term in walk(output.body))

    @cached_property
    def reduced(self) -> tuple[str, ...]:
        """The indices of its reductions."""
        return tuple(dict.fromkeys(term.index for term in self.terms if isinstance(term, Reduce)))

    @cached_property
    def nests(self) -> tuple[frozenset[str], ...]:
        """The indices of the loops that each of its values, and each store, needs."""
        outputs = (frozenset(output.tensor.indices) for output in self.kernel.outputs)
        return (*map(_loops_of, self.terms), *outputs)

    @cached_property
    def used(self) -> tuple[str, ...]:
        """All its indices, in order."""
        found = frozenset[str]().union(*self.nests)
        return tuple(index.name for index in self.indices if index.name in found)

    def extent(self, index: str) -> int:
        """How many positions an index has."""
        return self.machine.extents[self.indices.root(index)]


def _loops_of(term: Term) -> frozenset[str]:
    return term.free | {term.index} if isinstance(term, Reduce) else term.free
