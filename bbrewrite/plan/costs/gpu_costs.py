"""What a built nest costs on a GPU, as a function of block sizes: the model of `cost.py` with a GPU's limits.

A cell of the grid is a block of threads. Blocks that are read lie in shared memory, those that are computed in the
threads' registers; what does not fit there is not considered. How registers are really given out is the compiler's
business: the estimate counts what loops leave to the next iteration, the two largest of the other blocks, and the
largest operand that tensor cores take from registers.

Registers and shared memory decide how many blocks of threads a multiprocessor has at one time. Few warps leave it
waiting, and few busy multiprocessors leave the memory waiting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bbrewrite.core.elements import Element
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Apply, Local, Read, Term, untransposed, walk
from bbrewrite.core.widening import is_widened, unwidened
from bbrewrite.plan.costs.cost import NestCosts
from bbrewrite.plan.costs.events import NestEvents
from bbrewrite.plan.costs.totals import Occupancy
from bbrewrite.plan.kernel import Let, LocalBlock, Statement, Store, Update, compute_element, walk_statements
from bbrewrite.plan.machine import Machine
from bbrewrite.plan.target import RESERVED_SHARED_BYTES, Gpu, MemoryTier

GPU_BLOCK_SIZES = (16, 32, 64, 128)
# Registers of a thread that hold no block: addresses, counters, and operands on their way to the tensor cores.
_OTHER_REGISTERS = 64
# Registers are given to warps in units of so many a thread.
_REGISTER_UNIT = 8
_STRIP, _GROUP = 16, 8
_WARPS = 4
_WARP_SIZE = 32
# Blocks of so many columns reach the full rate of the tensor cores; in smaller ones the fragments of the left operand,
# which are loaded for each strip of rows, are used too seldom.
_FULL_COLUMNS = 64


@dataclass(frozen=True)
class _Held:
    """A block in one of the memories: the columns of its axes and lists among the indices, and its bytes an entry.

    In shared memory each of its rows has `padding` bytes more, so that what a warp reads lies in different banks.
    """

    axes: tuple[int, ...]
    lists: tuple[int, ...]
    bytes: int
    padding: int = _STRIP


class GpuNestCosts(NestCosts):
    """See the module text."""

    def __init__(
        self,
        events: NestEvents,
        body: tuple[Statement, ...],
        grid: tuple[str, ...],
        names: tuple[str, ...],
        extents: Mapping[str, int],
        indices: IndexTable,
        tensors: Mapping[str, Tensor],
        machine: Machine,
        gpu: Gpu,
    ) -> None:
        super().__init__(events, grid, names, extents, indices, machine)
        self._gpu = gpu
        target = machine.target
        statements = [s for s in walk_statements(body) if isinstance(s, Let | Update | Store)]
        updated = {s.target.name for s in statements if isinstance(s, Update)}
        views = {
            s.target.name: tensors[s.expression.tensor].element.size_bytes
            for s in statements
            if isinstance(s, Let) and isinstance(s.expression, Read)
        }
        blocks = {s.target.name: s.target for s in statements if isinstance(s, Let | Update)}
        in_registers = [block for name, block in blocks.items() if name not in views]
        # Accumulators of a loop inside another are no longer needed when that one goes on.
        outside = {s.target.name for s in body if isinstance(s, Let)}
        lasting = {b.name for b in in_registers if b.list_indices or b.name in updated & outside}
        self._accumulators = [self._held(b) for b in in_registers if b.name in lasting]
        self._others = [self._held(b) for b in in_registers if b.name not in lasting]
        # Products that are no addends of their target get a block of their own.
        for event, is_added in zip(events.products, _added_products(statements), strict=True):
            if not is_added:
                axes = tuple(self._column[axis] for axis in event.axes[:2])
                self._others.append(_Held(axes, (), Element.F32.size_bytes))
        read = {leaf.tensor for s in statements for leaf in walk(s.expression) if isinstance(leaf, Read)}
        floats = {tensors[name].natural for name in read if tensors[name].element.is_float}
        is_narrow = (floats <= {Element.F16} or floats <= {Element.BF16}) and not _keeps_precision(statements, views)
        is_tf32 = gpu.tf32 and floats <= {Element.F32}
        self._shared = self._tiles(statements, blocks, views, events, is_tf32)
        # Of tf32 half as many fit into an instruction of the tensor cores; all else is left to the vector unit.
        scalar = 2 * target.vector_lanes * target.vector_operations_per_second / target.matrix_flops_per_second
        self._product_rate = 1.0 if is_narrow else 0.5 if is_tf32 else scalar
        self._fragments: list[_Held] = []
        for event, (*operands, is_turned) in zip(events.products, _product_operands(statements), strict=True):
            rows, columns, contracted = (self._column[axis] for axis in event.axes)
            computed = [
                not isinstance(operand, Read) and not (isinstance(operand, Local) and operand.name in views)
                for operand in operands
            ]
            stays = (is_narrow or is_tf32) and not is_turned
            size = Element.BF16.size_bytes if is_narrow else Element.F32.size_bytes
            for is_computed, axis in zip(computed, (rows, columns), strict=True):
                if is_computed and axis == rows and stays:
                    self._fragments.append(_Held((rows, contracted), (), size))
                elif is_computed:
                    # The other operands of products pass through shared memory where they are computed.
                    self._shared.append(_Held((axis, contracted), (), size, _GROUP * size if is_tf32 else _STRIP))

    def _tiles(
        self,
        statements: list[Let | Update | Store],
        blocks: Mapping[str, LocalBlock],
        views: Mapping[str, int],
        events: NestEvents,
        is_tf32: bool,
    ) -> list[_Held]:
        """What is loaded: views once, every other load with tiles of its own, as many as a ring has."""

        def padding(entry_bytes: int) -> int:
            # Of operands of products whole fragments are read; a kernel without products reads pairs of entries, and so
            # may products of tf32.
            return _STRIP if events.products and not is_tf32 else max(_STRIP, _GROUP * entry_bytes)

        found = [replace(self._held(blocks[name], size), padding=padding(size)) for name, size in views.items()]
        held = Counter(s.expression.tensor for s in statements if isinstance(s, Let) and isinstance(s.expression, Read))
        for event in events.loads:
            if held[event.tensor]:
                held[event.tensor] -= 1
                continue
            size, axes = round(event.amount), tuple(self._column[axis] for axis in event.axes)
            found += [_Held(axes, (), size, padding(size))] * self._gpu.ring_copies
        return found

    def _held(self, block: LocalBlock, size: int | None = None) -> _Held:
        axes, lists = (
            tuple(self._column[index] for index in indices) for indices in (block.type.axes, block.list_indices)
        )
        return _Held(axes, lists, size or compute_element(block.type.element).size_bytes)

    def _held_bytes(
        self, spans: NDArray[np.float64], trips: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self._local_bytes(spans, trips), np.zeros(spans.shape[1])

    def _fits(
        self,
        near: NDArray[np.float64],
        lists: NDArray[np.float64],
        spans: NDArray[np.float64],
        trips: NDArray[np.float64],
    ) -> NDArray[np.bool_]:
        """Whether shared memory and registers suffice."""
        shared = near + lists <= self._gpu.shared_bytes_per_block
        return shared & (self._thread_registers(spans, trips) <= self._gpu.registers_per_thread)

    def _slowdown(self, spans: NDArray[np.float64], trips: NDArray[np.float64]) -> NDArray[np.float64]:
        each = np.ceil(self._cells(trips) / self._threads)
        active = np.minimum(self._resident(spans, trips), each) * self._warps(spans)
        return 1 + self._gpu.warps_for_half_rate / active

    def _tier_seconds(
        self, tier: MemoryTier, own: NDArray[np.float64], everyone: Callable[[], NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        return np.maximum(own / self._gpu.bytes_per_second_of_processor, everyone() / tier.bytes_per_second)

    def _occupancy(self, spans: NDArray[np.float64], trips: NDArray[np.float64]) -> Occupancy:
        cells, resident = float(self._cells(trips)[0]), float(self._resident(spans, trips)[0])
        return Occupancy(
            round(cells),
            round(float(self._warps(spans)[0])) * _WARP_SIZE,
            round(float(self._thread_registers(spans, trips)[0])),
            round(float(self._local_bytes(spans, trips)[0])),
            round(resident),
            cells / (resident * self._threads),
        )

    def _resident(self, spans: NDArray[np.float64], trips: NDArray[np.float64]) -> NDArray[np.float64]:
        """How many blocks of threads a processor has at one time."""
        gpu = self._gpu
        threads = self._warps(spans) * _WARP_SIZE
        registers = np.ceil(self._thread_registers(spans, trips) / _REGISTER_UNIT) * _REGISTER_UNIT
        shared = self._local_bytes(spans, trips) + RESERVED_SHARED_BYTES
        bounds = [
            gpu.registers_per_processor / (registers * threads),
            gpu.shared_bytes_per_processor / shared,
            gpu.threads_per_processor / threads,
            np.full(spans.shape[1], float(gpu.blocks_per_processor)),
        ]
        return np.maximum(1.0, np.floor(np.min(bounds, axis=0)))

    def _warps(self, spans: NDArray[np.float64]) -> NDArray[np.float64]:
        """The warps of a block of threads: one for each strip of rows of the largest block, as far as that goes."""
        rows = np.ones(spans.shape[1])
        for held in (*self._accumulators, *self._others):
            if held.axes:
                rows = np.maximum(rows, spans[held.axes[0]])
        return np.minimum(_WARPS, np.ceil(rows / _STRIP))

    def _thread_registers(self, spans: NDArray[np.float64], trips: NDArray[np.float64]) -> NDArray[np.float64]:
        """The registers of a thread, estimated."""
        accumulators = sum(
            (self._registers(held, spans, trips) for held in self._accumulators), np.zeros(spans.shape[1])
        )
        others = [self._registers(held, spans, trips) for held in self._others]
        largest = np.sort([*others, *np.zeros((2, spans.shape[1]))], axis=0)[-2:].sum(axis=0)
        fragments = np.zeros(spans.shape[1])
        for held in self._fragments:
            fragments = np.maximum(fragments, self._registers(held, spans, trips))
        return accumulators + largest + fragments + _OTHER_REGISTERS

    def _local_bytes(self, spans: NDArray[np.float64], trips: NDArray[np.float64]) -> NDArray[np.float64]:
        """The shared memory of a block of threads, tiles padded as the generator pads them."""
        total = np.zeros(spans.shape[1])
        for held in self._shared:
            padded = [np.ceil(spans[axis] / _STRIP) * _STRIP for axis in held.axes]
            rows = padded[0] if len(padded) == 2 else np.ones(spans.shape[1])
            columns = padded[-1] if padded else np.ones(spans.shape[1])
            length = np.prod([trips[index] for index in held.lists], axis=0) if held.lists else 1.0
            total += rows * (columns * held.bytes + held.padding) * length
        return total

    def _registers(self, held: _Held, spans: NDArray[np.float64], trips: NDArray[np.float64]) -> NDArray[np.float64]:
        """The registers that a block takes of each thread."""
        words = held.bytes / Element.F32.size_bytes
        length = np.prod([trips[index] for index in held.lists], axis=0) if held.lists else 1.0
        if not held.axes:
            return np.full(spans.shape[1], words) * length
        strips = np.ceil(spans[held.axes[0]] / _STRIP)
        # The largest rows decide how many warps there are; smaller blocks leave some idle.
        each = np.ceil(strips / _WARPS) * 2
        columns = np.ceil(spans[held.axes[1]] / 8) * 2 if len(held.axes) == 2 else 1.0
        return each * columns * words * length

    def _matrix_efficiency(self, spans: NDArray[np.float64]) -> NDArray[np.float64]:
        """The share of the tensor cores' rate that products of such blocks reach."""
        rows, columns, contracted = spans
        # Strips are multiplied whole. How many there are decides about warps, of which few make work slower anyway.
        filled = rows / (np.ceil(rows / _STRIP) * _STRIP) * np.minimum(1.0, columns / _FULL_COLUMNS)
        return filled / (1 + _STRIP / contracted) * self._product_rate


def _product_operands(statements: list[Let | Update | Store]) -> list[tuple[Term, Term, bool]]:
    """All products' operands in the order of the events, without transpositions, and whether the left one had one."""
    found: list[tuple[Term, Term, bool]] = []
    for statement in statements:
        for term in walk(statement.expression):
            if isinstance(term, Apply) and term.operator == "dot":
                own, other = (unwidened(operand) for operand in term.operands)
                left = untransposed(own)
                found.append((left, untransposed(other), left is not own))
    return found


def _keeps_precision(statements: list[Let | Update | Store], views: Mapping[str, int]) -> bool:
    """Whether some product computes with an operand that must not be rounded to 16 bits, and is not loaded as it is."""
    products = {
        term
        for statement in statements
        for term in walk(statement.expression)
        if isinstance(term, Apply) and term.operator == "dot" and any(map(is_widened, term.operands))
    }
    operands = (untransposed(unwidened(operand)) for product in products for operand in product.operands)
    return any(not isinstance(o, Read) and not (isinstance(o, Local) and o.name in views) for o in operands)


def _added_products(statements: list[Let | Update | Store]) -> list[bool]:
    """For all products, in the order of the events, whether they are added to their statement's target as they are."""
    found: list[bool] = []
    for statement in statements:
        added = _addends(statement.expression) if isinstance(statement, Update) else set[Term]()
        found += [
            term in added for term in walk(statement.expression) if isinstance(term, Apply) and term.operator == "dot"
        ]
    return found


def _addends(term: Term) -> set[Term]:
    if isinstance(term, Apply) and term.operator == "add":
        return set[Term]().union(*map(_addends, term.operands))
    return {term}
