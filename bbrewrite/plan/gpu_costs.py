"""What a built nest costs on a GPU, as a function of block sizes: the model of `cost.py` with a GPU's limits.

A cell of the grid is a block of threads. Blocks that are read lie in shared memory, those that are computed in the
threads' registers; what does not fit there is not considered. How registers are really given out is the compiler's
business: the estimate counts all accumulators, and twice the largest of the other blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bbrewrite.core.elements import Element
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Apply, Local, Read, Term, walk
from bbrewrite.plan.cost import NestCosts
from bbrewrite.plan.events import NestEvents
from bbrewrite.plan.kernel import Let, LocalBlock, Statement, Store, Update, compute_element, walk_statements
from bbrewrite.plan.machine import Machine
from bbrewrite.plan.target import Gpu

GPU_BLOCK_SIZES = (16, 32, 64, 128)
# Registers of a thread that hold no block: addresses, counters, and operands on their way to the tensor cores.
_OTHER_REGISTERS = 64
_STRIP = 16
_WARPS = 4
_WARP_SIZE = 32
# Blocks that reach the full rate of the tensor cores; smaller ones wait for their operands.
_FULL_ROWS, _FULL_COLUMNS = 64, 64


@dataclass(frozen=True)
class _Held:
    """A block in one of the memories: the columns of its axes and lists among the indices, and its bytes an entry."""

    axes: tuple[int, ...]
    lists: tuple[int, ...]
    bytes: int


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
        statements = [s for s in walk_statements(body) if isinstance(s, Let | Update | Store)]
        updated = {s.target.name for s in statements if isinstance(s, Update)}
        views = {
            s.target.name: tensors[s.expression.tensor].element.size_bytes
            for s in statements
            if isinstance(s, Let) and isinstance(s.expression, Read)
        }
        blocks = {s.target.name: s.target for s in statements if isinstance(s, Let | Update)}
        in_registers = [block for name, block in blocks.items() if name not in views]
        self._accumulators = [self._held(b) for b in in_registers if b.name in updated or b.list_indices]
        self._others = [self._held(b) for b in in_registers if b.name not in updated and not b.list_indices]
        self._shared = [self._held(blocks[name], size) for name, size in views.items()]
        # Every other load has tiles of its own, as many as a ring has.
        for event in events.loads:
            size = round(event.amount) * gpu.ring_copies
            self._shared.append(_Held(tuple(self._column[axis] for axis in event.axes), (), size))
        # Operands of products that are computed pass through shared memory.
        for event, operands in zip(events.products, _product_operands(statements), strict=False):
            rows, columns, contracted = (self._column[axis] for axis in event.axes)
            for operand, axis in zip(operands, (rows, columns), strict=True):
                if not isinstance(operand, Read) and not (isinstance(operand, Local) and operand.name in views):
                    self._shared.append(_Held((axis, contracted), (), Element.F32.size_bytes))
        floats = {tensor.element for tensor in tensors.values() if tensor.element.is_float}
        self._has_narrow_products = floats <= {Element.F16} or floats <= {Element.BF16}

    def _held(self, block: LocalBlock, size: int | None = None) -> _Held:
        axes, lists = (
            tuple(self._column[index] for index in indices) for indices in (block.type.axes, block.list_indices)
        )
        return _Held(axes, lists, size or compute_element(block.type.element).size_bytes)

    def _fits(self, spans: NDArray[np.float64], trips: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether shared memory and registers suffice."""
        shared = self._local_bytes(spans, trips) <= self._gpu.shared_bytes_per_block
        registers = sum((self._registers(held, spans, trips) for held in self._accumulators), np.zeros(spans.shape[1]))
        largest = np.zeros(spans.shape[1])
        for held in self._others:
            largest = np.maximum(largest, self._registers(held, spans, trips))
        return shared & (registers + 2 * largest <= self._gpu.registers_per_thread - _OTHER_REGISTERS)

    def _local_bytes(self, spans: NDArray[np.float64], trips: NDArray[np.float64]) -> NDArray[np.float64]:
        """The shared memory of a block of threads, tiles padded as the generator pads them."""
        total = np.zeros(spans.shape[1])
        for held in self._shared:
            padded = [np.ceil(spans[axis] / _STRIP) * _STRIP for axis in held.axes]
            rows = padded[0] if len(padded) == 2 else np.ones(spans.shape[1])
            columns = padded[-1] if padded else np.ones(spans.shape[1])
            length = np.prod([trips[index] for index in held.lists], axis=0) if held.lists else 1.0
            total += rows * (columns * held.bytes + _STRIP) * length
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
        filled = np.minimum(1.0, rows / _FULL_ROWS) * np.minimum(1.0, columns / _FULL_COLUMNS)
        share = filled / (1 + _STRIP / contracted)
        if self._has_narrow_products:
            return share
        target = self._target
        return share * (2 * target.vector_lanes * target.vector_operations_per_second / target.matrix_flops_per_second)


def _product_operands(statements: list[Let | Update | Store]) -> list[tuple[Term, Term]]:
    """The operands of all products, in the order of the events, without transpositions."""
    found: list[tuple[Term, Term]] = []
    for statement in statements:
        for term in walk(statement.expression):
            if isinstance(term, Apply) and term.operator == "dot":
                left, right = (_untransposed(operand) for operand in term.operands)
                found.append((left, right))
    return found


def _untransposed(term: Term) -> Term:
    return term.operands[0] if isinstance(term, Apply) and term.operator == "transpose" else term
