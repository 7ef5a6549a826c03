"""Sentences on what a plan loads several times more than there is of it: how often, why, and what keeps it from being
kept. Only what matters to all that the plan moves is told.

What moves is counted by `costs/traffic.py`; what local memory is short of is found where kernels are scheduled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.printing import print_term
from bbrewrite.plan.costs.traffic import Moved, kernel_traffic
from bbrewrite.plan.kernel import Kernel, Loop, Merge, Update, walk_statements
from bbrewrite.plan.machine import bytes_of
from bbrewrite.plan.plans import Plan
from bbrewrite.units import byte_count

# What is loaded again, or merged, is told from this share of all that the plan moves on; the largest few of it.
TOLD_FROM = 0.1
MOST_TOLD = 3
# Beside a tensor that is loaded as often, others are named whose bytes are at least such a share of its own.
NAMED_FROM = 0.05
# Numbers of times nearer to a whole one, as a share, are told as that.
NEARLY_WHOLE = 0.02


@dataclass(frozen=True)
class _Repeated:
    """Something that moves again: its bytes beyond what moves once, and the sentence on it."""

    extra: int
    note: str


def repeated_load_notes(plan: Plan, extents: Mapping[str, int], threads: int, table: OperatorTable) -> tuple[str, ...]:
    """The sentences, on what is most first. `extents` are those of root indices."""
    least = TOLD_FROM * plan.global_bytes
    found = [
        repeated
        for kernel, cost in zip(plan.kernels.kernels, plan.costs, strict=True)
        if cost.global_bytes > least
        for repeated in _KernelLoads(kernel, plan, extents, threads, table).repeated()
        if repeated.extra >= least
    ]
    found.sort(key=lambda repeated: -repeated.extra)
    return tuple(repeated.note for repeated in found[:MOST_TOLD])


class _KernelLoads:
    """What one kernel of a plan loads."""

    def __init__(
        self, kernel: Kernel, plan: Plan, extents: Mapping[str, int], threads: int, table: OperatorTable
    ) -> None:
        self._kernel = kernel
        self._threads = threads
        self._table = table
        self._indices = kernel.indices.with_extents(extents)
        self._unkept = {unkept.tensor: unkept for unkept in plan.unkept if unkept.kernel == kernel.name}
        tensors = {tensor.name: tensor for tensor in (*kernel.reads, *kernel.writes)}
        self._sizes = {name: bytes_of((tensor,), self._indices) for name, tensor in tensors.items()}
        self._traffic = kernel_traffic(kernel, tensors, extents, table, threads)

    def repeated(self) -> Iterator[_Repeated]:
        """What it loads more than once; tensors that are loaded alike are told together, without the small ones."""
        alike: dict[tuple[str, str], list[str]] = {}
        loaded = self._traffic.loaded
        for name, total in loaded.items():
            if total > self._sizes[name] > 0:
                alike.setdefault((_times(total / self._sizes[name]), self._why(name)), []).append(name)
        for (times, why), names in alike.items():
            least = NAMED_FROM * max(loaded[name] for name in names)
            named = [name for name in names if loaded[name] >= least]
            total = sum(loaded[name] for name in named)
            yield _Repeated(
                total - sum(self._sizes[name] for name in named),
                f"kernel {self._kernel.name} loads {_listed(named)} {times} times{' each' if len(named) > 1 else ''},"
                f" {byte_count(total)} in all: {why}",
            )
        yield from self._merged()

    def _why(self, tensor: str) -> str:
        loads = [load for load in self._traffic.loads if load.tensor == tensor]
        places = Counter(self._repeats(load) for load in loads)
        why = _listed([_in_places(repeats, count) for repeats, count in places.items()])
        if any(load.visited < 1 for load in loads):
            why += ", as far as masks let it be seen"
        unkept = self._unkept.get(tensor)
        if unkept is None:
            return why
        needed, near = byte_count(unkept.needed_bytes), byte_count(unkept.near_bytes)
        return f"{why}; with its blocks kept, the kernel would need {needed} of local memory, of which {near} are near"

    def _repeats(self, load: Moved) -> str:
        """What repeats a load; nothing where it happens once."""
        parts: list[str] = []
        if load.processors > 1:
            parts.append(f"by each of {load.processors} processors")
        if load.loops:
            parts.append(
                "for each of " + " and each of ".join(_iterations(*loop, self._indices) for loop in load.loops)
            )
        addressed = load.whole / self._sizes[load.tensor]
        if load.block is not None and addressed > 1 + NEARLY_WHOLE:
            parts.append(f"{_times(addressed)} times through `{print_term(load.block, self._table)}`")
        return ", ".join(parts)

    def _merged(self) -> Iterator[_Repeated]:
        """What processors read of each other's accumulators."""
        total = sum(merge.bytes for merge in self._traffic.merges)
        if total:
            shared = _listed(sorted(_shared_reductions(self._kernel)))
            yield _Repeated(
                total,
                f"kernel {self._kernel.name} moves {byte_count(total)} to merge what {self._threads} processors"
                f" accumulate, which share out the loop over {shared}",
            )


def _shared_reductions(kernel: Kernel) -> set[str]:
    """The indices of shared loops in which accumulators grow that are merged."""
    merged = {s.source.name for s in walk_statements(kernel.body) if isinstance(s, Merge)}
    loops = [s for s in walk_statements(kernel.body) if isinstance(s, Loop) and s.shared]
    return {
        loop.index
        for loop in loops
        if any(isinstance(s, Update) and s.target.name in merged for s in walk_statements(loop.body))
    }


def _in_places(repeats: str, count: int) -> str:
    if count > 1:
        return f"in {count} places {repeats}".rstrip()
    return repeats or "once"


def _iterations(index: str, trips: int, indices: IndexTable) -> str:
    if indices[index].is_share:
        return f"{trips} shares"
    return f"{trips} {'blocks' if indices.is_blocked(index) else 'values'} of {index}"


def _times(factor: float) -> str:
    whole = round(factor)
    return str(whole) if abs(factor - whole) <= NEARLY_WHOLE * factor else f"{factor:.1f}"


def _listed(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
