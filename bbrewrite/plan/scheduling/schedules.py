"""The schedules of a program's kernels, each found once; and what is known of kernels that are equal up to names.

Candidates of one program have many kernels in common, under other names of tensors and indices. What scheduling one of
them came to is kept as the choices made and their cost, so the price of the next is known at once, and its nest is
built again only where a plan is made of it. How a schedule is found is for `schedule.py` to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bbrewrite.core.elements import Element
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Read, Term, walk
from bbrewrite.plan.costs.totals import Cost
from bbrewrite.plan.machine import Machine
from bbrewrite.plan.partition import KernelTerm
from bbrewrite.plan.scheduling.canonical_kernel import CanonicalKernel, canonical_kernel
from bbrewrite.plan.scheduling.judged_nests import SizedNest
from bbrewrite.plan.scheduling.schedule import ScheduleSearch
from bbrewrite.plan.scheduling.scheduled import Scheduled
from bbrewrite.plan.scheduling.shaped_nests import KnownNests

# A kernel, with the types in which what it reads is stored, and of what that comes from: in another plan a list of the
# same name may be stored in another one.
type _TypedKernel = tuple[KernelTerm, tuple[tuple[Element, Element], ...]]

# Kernels of more different terms than this take longer to schedule than others.
ORDINARY_PARTS = 50


@dataclass(frozen=True)
class _Known:
    """The choices made for a kernel, under canonical names, and what they cost."""

    grid: tuple[str, ...]
    order: tuple[str, ...]
    split: str | None
    kept: frozenset[Term]
    blocks: Mapping[str, int]
    cost: Cost

    @staticmethod
    def of(found: Scheduled, canonical: CanonicalKernel) -> _Known | None:
        """What another kernel can follow; None where the schedule is of two launches or has something to say."""
        choice = found.choice
        if choice is None or found.notes or found.unkept:
            return None
        kept = frozenset(same for part, same in canonical.parts.items() if part.digest in choice.kept)
        rename = canonical.indices.__getitem__
        return _Known(
            tuple(map(rename, choice.grid)),
            tuple(map(rename, choice.order)),
            None if choice.split is None else rename(choice.split),
            kept,
            {rename(index): size for index, size in choice.blocks},
            found.costs[0],
        )


class KnownSchedules:
    """What is known of kernels that were scheduled for one target and number of threads, by their canonical forms; and
    the nests of the last ones.
    """

    def __init__(self) -> None:
        self.by_form: dict[object, _Known] = {}
        self.nests = KnownNests()


class _Following(ScheduleSearch):
    """The schedule of a kernel by the choices that were made for an equal one."""

    def following(self, known: _Known, canonical: CanonicalKernel) -> Scheduled | None:
        """None where the choices come to nothing."""
        rename = {name: own for own, name in canonical.indices.items()}.__getitem__
        kept = frozenset(part for part, same in canonical.parts.items() if same in known.kept)
        split = None if known.split is None else rename(known.split)
        grid, order = tuple(map(rename, known.grid)), tuple(map(rename, known.order))
        nest = self._nests.nest(grid, order, kept, split)
        if nest is None:
            return None
        blocks = tuple(known.blocks[canonical.indices[index]] for index in self._used)
        return self._finished(SizedNest(grid, order, split, kept, nest, blocks, known.cost), ())


@dataclass(frozen=True)
class Price:
    """What a kernel costs, or the two that it is split into, with the buffers between these."""

    costs: tuple[Cost, ...]
    buffers: tuple[Tensor, ...] = ()

    @property
    def seconds(self) -> float:
        return sum(cost.seconds for cost in self.costs)


class Schedules:
    """The schedules of kernels of one program on one machine. `indices` are those of the kernels' terms.

    With `elsewhere`, what is known of other programs' kernels is used, and added to.
    """

    def __init__(
        self, indices: IndexTable, table: OperatorTable, machine: Machine, elsewhere: KnownSchedules | None = None
    ) -> None:
        self.indices = indices.with_extents(machine.extents)
        self.table = table
        self.machine = machine
        self._elsewhere = elsewhere or KnownSchedules()
        self._effort = 0.0
        self._reads: dict[KernelTerm, tuple[str, ...]] = {}
        self._canonical: dict[_TypedKernel, CanonicalKernel] = {}
        self._scheduled: dict[_TypedKernel, Scheduled] = {}

    @property
    def effort(self) -> float:
        """How many kernels were asked for, a large one counting as the many that take as long."""
        return self._effort

    def price(self, kernel: KernelTerm, tensors: Mapping[str, Tensor]) -> Price:
        """What the cost model says of a kernel. `tensors` are all that it reads and stores, at least."""
        known = self._elsewhere.by_form.get(self._canonical_of(kernel, tensors).form)
        if known is not None:
            return Price((known.cost,))
        found = self.of(kernel, tensors)
        return Price(found.costs, found.buffers)

    def of(self, kernel: KernelTerm, tensors: Mapping[str, Tensor]) -> Scheduled:
        """The cheapest schedule found for a kernel."""
        key = self._typed(kernel, tensors)
        if key not in self._scheduled:
            self._scheduled[key] = self._found(kernel, tensors)
        return self._scheduled[key]

    def _found(self, kernel: KernelTerm, tensors: Mapping[str, Tensor]) -> Scheduled:
        canonical = self._canonical_of(kernel, tensors)
        known = self._elsewhere.by_form.get(canonical.form)
        search = _Following(kernel, self.indices, tensors, self.table, self.machine, self._elsewhere.nests)
        followed = None if known is None else search.following(known, canonical)
        if followed is not None:
            return followed
        found = search.run()
        made = _Known.of(found, canonical)
        if made is not None:
            self._elsewhere.by_form[canonical.form] = made
        return found

    def _canonical_of(self, kernel: KernelTerm, tensors: Mapping[str, Tensor]) -> CanonicalKernel:
        key = self._typed(kernel, tensors)
        if key not in self._canonical:
            self._effort += _effort(kernel)
            self._canonical[key] = canonical_kernel(kernel, self.indices, tensors, self.machine)
        return self._canonical[key]

    def _typed(self, kernel: KernelTerm, tensors: Mapping[str, Tensor]) -> _TypedKernel:
        if kernel not in self._reads:
            parts = (part for output in kernel.outputs for part in walk(output.body))
            self._reads[kernel] = tuple(sorted({part.tensor for part in parts if isinstance(part, Read)}))
        return kernel, tuple((tensors[name].element, tensors[name].natural) for name in self._reads[kernel])


def _effort(kernel: KernelTerm) -> float:
    """Nests of large kernels are many, each has many statements, and each statement depends on many."""
    parts = {part for output in kernel.outputs for part in walk(output.body)}
    return max(1.0, (len(parts) / ORDINARY_PARTS) ** 3)
