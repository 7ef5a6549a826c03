"""What a planned kernel loads from each tensor and stores to it, in bytes: the model's total, tensor by tensor, and how
often what a statement loads moves again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Term
from bbrewrite.core.types import Typing
from bbrewrite.plan.costs.events import Event, summarise
from bbrewrite.plan.kernel import Kernel
from bbrewrite.plan.masks.visited_share import visited_share


@dataclass(frozen=True)
class Moved:
    """What one statement loads, stores or merges in a call: its bytes, repetitions included, and what repeats them.

    The same blocks move in each of so many iterations of `loops`, and by each of so many `processors`. `whole` are the
    bytes without that, if masks hid nothing; `visited` is the share that they leave.
    """

    tensor: str
    block: Term | None
    bytes: int
    whole: int
    loops: tuple[tuple[str, int], ...]
    processors: int
    visited: float


@dataclass(frozen=True)
class KernelTraffic:
    """What each statement moves. What processors merge belongs to no tensor."""

    loads: tuple[Moved, ...]
    stores: tuple[Moved, ...]
    merges: tuple[Moved, ...]

    @property
    def loaded(self) -> Mapping[str, int]:
        """Bytes by tensor name."""
        return _by_tensor(self.loads)

    @property
    def stored(self) -> Mapping[str, int]:
        """The same of stores."""
        return _by_tensor(self.stores)


def kernel_traffic(
    kernel: Kernel, tensors: Mapping[str, Tensor], extents: Mapping[str, int], table: OperatorTable, threads: int
) -> KernelTraffic:
    """The traffic of one call. `tensors` are those that kernels touch, `extents` those of root indices."""
    indices = kernel.indices.with_extents(extents)
    events = summarise(kernel.body, kernel.grid, table, Typing(table, indices, tensors), tensors)

    every = {index.name: indices.extent(index.name) or 0 for index in indices}
    blocks = {index.name: index.block or 1 for index in indices}

    def trips(loop: str) -> int:
        return -(-every[loop] // blocks[loop])

    def moved(event: Event) -> Moved:
        around = [loop for loop in event.loops if loop not in event.axes]
        again = tuple((loop, trips(loop)) for loop in around if event.is_repeated(loop) and trips(loop) > 1)
        once = event.amount * prod(indices.extent(axis) or 0 for axis in event.axes)
        whole = once * prod(trips(loop) for loop in around if not event.is_repeated(loop))
        # Of a split kernel, every processor does what is not shared out.
        processors = threads if kernel.is_split and event.shared is None and not event.once else 1
        visited = visited_share(event.narrowed, blocks, every, frozenset(event.axes))
        total = round(once * prod(map(trips, around)) * visited) * processors
        return Moved(event.tensor, event.block, total, round(whole), again, processors, visited)

    def all_moved(events: Iterable[Event]) -> tuple[Moved, ...]:
        return tuple(map(moved, events))

    merged = [event._replace(amount=event.amount * threads) for event in events.merged]
    return KernelTraffic(all_moved(events.loads), all_moved(events.stores), all_moved(merged))


def _by_tensor(moves: Iterable[Moved]) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for move in moves:
        found[move.tensor] = found.get(move.tensor, 0) + move.bytes
    return found
