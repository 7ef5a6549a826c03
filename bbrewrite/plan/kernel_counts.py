"""Why a plan has as many kernels as it has, in sentences: what one of fewer or of more would cost instead.

What plans there are, and what they cost, is for `extraction/search.py` and the planner to say; nothing is chosen here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Apply, Read, walk
from bbrewrite.lang.diagnostics import counted
from bbrewrite.plan.extraction.search import Promise
from bbrewrite.plan.machine import bytes_of
from bbrewrite.plan.plans import PlanCosts, PlanOutline
from bbrewrite.plan.term_costs import TermCosts
from bbrewrite.units import byte_count, operation_count

# Operations repeated are told as a reason from this share of all on.
REPEATED_FROM = 0.01


@dataclass(frozen=True)
class _Totals:
    """What kernels take together; `moving` are the seconds that their bytes alone would."""

    kernels: int
    seconds: float
    bytes: int
    moving: float
    flops: float


@dataclass(frozen=True)
class KernelCounts:
    """Compares the plan of some outputs with others of them. `makes` names these where they are not all there are;
    `tensors` are all that kernels read and store.
    """

    costs: TermCosts
    tensors: Mapping[str, Tensor]
    makes: str

    def why_not_fewer(self, plan: PlanOutline, other: PlanOutline) -> str:
        """A sentence on the cheapest plan considered that stores less between kernels."""
        who = f"what makes {self.makes}" if self.makes else "the plan"
        ours = f"{', '.join(plan.buffers)} stored: {who} takes {_milliseconds(plan.seconds)}, estimated"
        without = f"with {', '.join(other.buffers)} alone stored" if other.buffers else "with nothing stored"
        theirs = f"{counted(len(other.costs), 'kernel')} {without} would take {_milliseconds(other.seconds)}"
        why = self._dearer(self._of_plan(plan), self._of_plan(other))
        return f"{ours}, and {theirs}{_behind(': ', why)}"

    def why_not_more(self, plan: PlanOutline, promise: Promise, not_told_apart: float) -> str | None:
        """A sentence on what is promised of plans of more kernels; None where it is so much less, as a share, that only
        limits can have kept it from being looked at.
        """
        if promise.seconds * (1 + not_told_apart) < plan.seconds:
            return None
        own = len(plan.costs)
        whose = f"for {self.makes}, " if self.makes else ""
        ours = f"{whose}{counted(own, 'kernel')} {'take' if own > 1 else 'takes'}"
        least = "" if promise.is_kept else "at least "
        which = _behind(" with ", self._stored_by(promise, plan))
        why = (
            _behind(", ", self._dearer(self._of_plan(plan), self._of_promise(promise)))
            if promise.seconds >= plan.seconds
            else ", too little less to matter"
        )
        return (
            f"{ours} {_milliseconds(plan.seconds)}, estimated, and more would take {least}"
            f"{_milliseconds(promise.seconds)}: {len(promise.kernels)}{which}{why}"
        )

    def _stored_by(self, promise: Promise, plan: PlanOutline) -> str:
        """What kernels store between them."""
        stored = [name for kernel in promise.kernels for name in kernel.stores if name not in plan.terms]
        named = [name for name in stored if not name.startswith("#")]
        unnamed = len(stored) - len(named)
        names = [*named, *([counted(unnamed, "list")] if unnamed else [])]
        return f"{', '.join(names)} stored" if names else ""

    def _dearer(self, ours: _Totals, theirs: _Totals) -> str:
        """What takes most of the time for which others take more: to launch, to move or to compute."""
        launches = theirs.kernels - ours.kernels
        launching, moving = launches * self.costs.launch, theirs.moving - ours.moving
        moved, repeated = theirs.bytes - ours.bytes, theirs.flops - ours.flops
        is_repeated = repeated >= REPEATED_FROM * ours.flops
        parts = [
            (launching, f"{counted(launches, 'launch', 'launches')} more"),
            (moving, f"{byte_count(moved)} more to move" if moved > 0 else ""),
            (
                theirs.seconds - ours.seconds - launching - moving,
                f"{operation_count(repeated)} more to compute" if is_repeated else "",
            ),
        ]
        seconds, said = max(parts, key=lambda part: part[0])
        return said if seconds > 0 else ""

    def _of_plan(self, plan: PlanCosts) -> _Totals:
        return _Totals(len(plan.costs), plan.seconds, plan.global_bytes, self.costs.moving(plan.costs), plan.flops)

    def _of_promise(self, promise: Promise) -> _Totals:
        """What the kernels do at least: each operator runs once on all of its blocks, and all is loaded once."""
        parts = [part for kernel in promise.kernels for part in dict.fromkeys(walk(kernel.term))]
        reads = [part for part in parts if isinstance(part, Read)]
        stores = [self.tensors[name] for kernel in promise.kernels for name in kernel.stores]
        return _Totals(
            len(promise.kernels),
            promise.seconds,
            sum(map(self.costs.bytes_read, reads)) + bytes_of(stores, self.costs.indices),
            sum(map(self.costs.evaluation, reads)) + sum(map(self.costs.store, stores)),
            sum(self.costs.operations(part) for part in parts if isinstance(part, Apply)),
        )


def _behind(start: str, text: str) -> str:
    return start + text if text else ""


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"
