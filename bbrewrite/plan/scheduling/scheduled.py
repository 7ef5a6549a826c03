"""What scheduling a kernel comes to: what runs, what the cost model says of it, and the choices that made it."""

from __future__ import annotations

from dataclasses import dataclass

from bbrewrite.core.indices import Index
from bbrewrite.core.programs import Tensor
from bbrewrite.plan.choices import ScheduleChoice
from bbrewrite.plan.costs.totals import Cost
from bbrewrite.plan.kernel import Kernel
from bbrewrite.plan.unkept import Unkept


@dataclass(frozen=True)
class Scheduled:
    """A kernel with the cost that the model gives it; `notes` are sentences on a schedule that does not fit into local
    memory, and `unkept` has what there is no room to keep in it.

    Where its reduction is split over a GPU there are two kernels, with `buffers` between them, whose first index is
    `shares`; `choice` has the choices that made one kernel, and is None for two.
    """

    kernels: tuple[Kernel, ...]
    costs: tuple[Cost, ...]
    choice: ScheduleChoice | None
    notes: tuple[str, ...]
    buffers: tuple[Tensor, ...] = ()
    shares: Index | None = None
    unkept: tuple[Unkept, ...] = ()

    @property
    def seconds(self) -> float:
        return sum(cost.seconds for cost in self.costs)
