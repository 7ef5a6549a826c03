"""What a planned kernel loads from each tensor and stores to it, in bytes: the model's total, tensor by tensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Tensor
from bbrewrite.core.types import Typing
from bbrewrite.plan.costs.events import Event, summarise
from bbrewrite.plan.kernel import Kernel
from bbrewrite.plan.masks.visited_share import visited_share


@dataclass(frozen=True)
class KernelTraffic:
    """Bytes by tensor name, repetitions included. Blocks that processors merge belong to no tensor."""

    loaded: Mapping[str, int]
    stored: Mapping[str, int]


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

    def total(event: Event) -> int:
        moved = event.amount * prod(indices.extent(axis) or 0 for axis in event.axes)
        repeats = prod(trips(loop) for loop in event.loops if loop not in event.axes)
        # Of a split kernel, every processor does what is not shared out.
        everyone = kernel.is_split and event.shared is None and not event.once
        visited = visited_share(event.narrowed, blocks, every, frozenset(event.axes))
        return round(moved * repeats * visited) * (threads if everyone else 1)

    def by_tensor(events: tuple[Event, ...]) -> dict[str, int]:
        found: dict[str, int] = {}
        for event in events:
            found[event.tensor] = found.get(event.tensor, 0) + total(event)
        return found

    return KernelTraffic(by_tensor(events.loads), by_tensor(events.stores))
