"""What a built nest costs on a target, as a function of block sizes.

A nest is summarised once as *events*: work and traffic with the axes of the blocks they act on and the loops
around them. An event happens once for each block of every loop, so for given block sizes its total is the
product of its axes' extents and of the trip counts of the loops that are not among its axes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from bbrewrite.core.elements import Element
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Apply, Local, Read, Term, walk
from bbrewrite.core.types import Typing
from bbrewrite.plan.kernel import Let, LocalBlock, Loop, Statement, Store, Update
from bbrewrite.plan.target import Target
from bbrewrite.plan.term_costs import LAYOUT_WORK, body_work

# Calling a block operator costs about this long, whatever the block's size.
STATEMENT_SECONDS = 2.0e-8
# Writing a block to local memory and reading it back, in vector instructions for one vector.
PASS_WORK = 3.0


@dataclass(frozen=True)
class Event:
    """`amount` per element of a block with `axes`, in every iteration of `loops` (grid included)."""

    amount: float
    axes: tuple[str, ...]
    loops: tuple[str, ...]


@dataclass(frozen=True)
class NestEvents:
    """Everything in a nest that costs. Products have axes (rows, columns, contracted)."""

    products: tuple[Event, ...]
    packing: tuple[Event, ...]  # elements
    vector_work: tuple[Event, ...]
    loads: tuple[Event, ...]  # bytes from global memory
    stores: tuple[Event, ...]
    statements: tuple[Event, ...]
    flops: tuple[Event, ...]  # arithmetic operations, whatever unit does them
    local_blocks: tuple[LocalBlock, ...]


@dataclass(frozen=True)
class Cost:
    """The totals of a nest for given block sizes and extents; `seconds` is infinite where local memory is short."""

    seconds: float
    global_bytes: int
    flops: int
    local_bytes: int

    @property
    def rank(self) -> tuple[float, int, int]:
        """Feasible and fast first; what does not fit in local memory is ordered by how much it needs."""
        return (self.seconds, self.local_bytes, self.global_bytes)


def summarise(
    body: tuple[Statement, ...],
    grid: tuple[str, ...],
    table: OperatorTable,
    typing: Typing,
    tensors: Mapping[str, Tensor],
) -> NestEvents:
    """The events of a nest."""
    return _Summary(table, typing, tensors).of(body, grid)


class _Summary:
    def __init__(self, table: OperatorTable, typing: Typing, tensors: Mapping[str, Tensor]) -> None:
        self._table = table
        self._typing = typing
        self._tensors = tensors
        self._products: list[Event] = []
        self._packing: list[Event] = []
        self._vector: list[Event] = []
        self._loads: list[Event] = []
        self._stores: list[Event] = []
        self._statements: list[Event] = []
        self._flops: list[Event] = []
        self._blocks: dict[str, LocalBlock] = {}

    def of(self, body: tuple[Statement, ...], grid: tuple[str, ...]) -> NestEvents:
        self._collect_blocks(body)
        self._typing = self._typing.with_locals({name: block.type for name, block in self._blocks.items()})
        self._visit(body, grid)
        return NestEvents(
            tuple(self._products),
            tuple(self._packing),
            tuple(self._vector),
            tuple(self._loads),
            tuple(self._stores),
            tuple(self._statements),
            tuple(self._flops),
            tuple(self._blocks.values()),
        )

    def _collect_blocks(self, body: tuple[Statement, ...]) -> None:
        for statement in body:
            match statement:
                case Loop(_, inner):
                    self._collect_blocks(inner)
                case Let(target, _) | Update(target, _):
                    self._blocks[target.name] = target
                case Store():
                    pass

    def _visit(self, body: tuple[Statement, ...], loops: tuple[str, ...]) -> None:
        loaded: set[Term] = set()
        for statement in body:
            match statement:
                case Loop(index, inner):
                    self._visit(inner, (*loops, index))
                case Let(target, expression) | Update(target, expression):
                    self._statements.append(Event(1.0, (), loops))
                    around = (*loops, *(i for i in target.list_indices if i not in loops))
                    self._vector.append(Event(PASS_WORK, target.type.axes, around))
                    self._expression(expression, loops, loaded)
                case Store(tensor, expression):
                    axes = self._typing.block(expression).axes
                    self._statements.append(Event(1.0, (), loops))
                    around = (*loops, *(index for index in tensor.indices if index not in loops))
                    self._stores.append(Event(float(tensor.element.size_bytes), axes, around))
                    self._expression(expression, loops, loaded)

    def _expression(self, expression: Term, loops: tuple[str, ...], loaded: set[Term]) -> None:
        for term in walk(expression):
            match term:
                case Read(tensor, _):
                    if term not in loaded:
                        loaded.add(term)
                        element = self._tensors[tensor].element
                        axes = self._typing.block(term).axes
                        self._loads.append(Event(float(element.size_bytes), axes, loops))
                case Apply():
                    self._operator(term, loops)
                case _:
                    pass

    def _operator(self, term: Apply, loops: tuple[str, ...]) -> None:
        operator = self._table.operators[term.operator]
        result = self._typing.block(term)
        if operator.name == "dot":
            rows, contracted = self._typing.block(term.operands[0]).axes
            columns = self._typing.block(term.operands[1]).axes[0]
            axes = (rows, columns, contracted)
            self._products.append(Event(2.0, axes, loops))
            self._flops.append(Event(2.0, axes, loops))
            # The second operand is packed on load, the first written to a block where it is none in memory.
            self._packing.append(Event(1.0, (columns, contracted), loops))
            if not isinstance(term.operands[0], Read | Local):
                self._vector.append(Event(PASS_WORK, (rows, contracted), loops))
            return
        widest = max((self._typing.block(operand).axes for operand in term.operands), key=len, default=())
        axes = widest if operator.fold else result.axes
        function = self._table.functions.get(operator.function)
        work = 1.0 if operator.fold else 0.0
        if function is not None:
            work += body_work(self._table, function.body) if function.body else function.work
            self._flops.append(Event(1.0, axes, loops))
        elif operator.fold:
            self._flops.append(Event(1.0, axes, loops))
        self._vector.append(Event(work or LAYOUT_WORK / 2, axes, loops))


class NestCosts:
    """A nest's costs for many choices of block sizes at once.

    Every amount is a product of extents and trip counts, so all events are evaluated together as
    exp(E . log trips) with a 0/1 matrix E.
    """

    def __init__(
        self,
        events: NestEvents,
        grid: tuple[str, ...],
        names: tuple[str, ...],
        extents: Mapping[str, int],
        target: Target,
        threads: int,
    ) -> None:
        self._target = target
        self._threads = threads
        self._column = {name: position for position, name in enumerate(names)}
        self._extents = np.array([max(1, extents[name]) for name in names], dtype=np.float64)
        self._empty = any(extents[name] == 0 for name in names)
        self._grid = [self._column[index] for index in grid]
        self._products = [tuple(self._column[axis] for axis in event.axes) for event in events.products]
        packing = [replace(event, amount=target.packing_operations) for event in events.packing]
        traffic = (*events.loads, *events.stores)
        groups = ((*events.vector_work, *packing), events.statements, events.products, traffic, events.flops)
        self._parts = [slice(0, 0)] * len(groups)
        rows: list[list[float]] = []
        amounts: list[float] = []
        for number, group in enumerate(groups):
            self._parts[number] = slice(len(rows), len(rows) + len(group))
            for event in group:
                rows.append(self._exponents(event.loops, event.axes))
                amounts.append(event.amount * prod(extents[axis] or 1 for axis in event.axes))
        self._exponent_matrix = np.array(rows, dtype=np.float64).reshape(len(rows), len(names))
        self._amounts = np.array(amounts, dtype=np.float64)[:, None]
        lists = [self._exponents(block.list_indices, ()) for block in events.local_blocks]
        spans = [self._exponents(block.type.axes, ()) for block in events.local_blocks]
        self._list_matrix = np.array(lists, dtype=np.float64).reshape(len(lists), len(names))
        self._span_matrix = np.array(spans, dtype=np.float64).reshape(len(spans), len(names))
        sizes = [(block.type.element or Element.F32).size_bytes for block in events.local_blocks]
        self._local_sizes = np.array(sizes, dtype=np.float64)[:, None]

    def _exponents(self, loops: tuple[str, ...], axes: tuple[str, ...]) -> list[float]:
        return [1.0 if name in loops and name not in axes else 0.0 for name in self._column]

    def cheapest(self, blocks: NDArray[np.float64]) -> tuple[int, Cost]:
        """The best column of `blocks`, which holds one block size for each index (rows), and its cost.

        Of equals the first is taken.
        """
        spans = np.minimum(blocks, self._extents[:, None])
        trips = np.ceil(self._extents[:, None] / blocks)
        totals = self._amounts * np.exp(self._exponent_matrix @ np.log(trips))
        vector, statements, products, traffic, flops = (totals[part] for part in self._parts)
        target = self._target
        work = vector.sum(axis=0) / (target.vector_operations_per_second * target.vector_lanes)
        work += STATEMENT_SECONDS * statements.sum(axis=0)
        for axes, total in zip(self._products, products, strict=True):
            work += total / (target.matrix_flops_per_second * self._matrix_efficiency(spans[list(axes)]))
        cells = np.prod(trips[self._grid], axis=0)
        # The last round leaves processors idle where blocks do not divide evenly among them.
        rounds = np.ceil(cells / np.minimum(cells, self._threads))
        largest_cell = np.prod(spans[self._grid] / self._extents[self._grid, None], axis=0)
        work *= np.minimum(1.0, rounds * largest_cell)
        moved = traffic.sum(axis=0)
        seconds = target.launch_seconds + work + moved / target.global_bytes_per_second
        local = self._local_bytes(spans, trips)
        seconds = np.where(local > target.local_capacity_bytes, np.inf, seconds)
        best = int(np.lexsort((moved, local, seconds))[0])
        scale = 0 if self._empty else 1
        # Logarithms cost the last bits; bytes and operations are whole numbers.
        return best, Cost(
            float(seconds[best]),
            round(float(moved[best])) * scale,
            round(float(flops[:, best].sum())) * scale,
            round(float(local[best])),
        )

    def _matrix_efficiency(self, spans: NDArray[np.float64]) -> NDArray[np.float64]:
        """The share of the matrix unit's rate that products of such blocks reach.

        Rows and columns are padded to the register tile, and every call loads and stores its result once.
        """
        rows, columns, contracted = spans
        padded_rows = np.ceil(rows / self._target.matrix_rows) * self._target.matrix_rows
        padded_columns = np.ceil(columns / self._target.vector_lanes) * self._target.vector_lanes
        return rows * columns / (padded_rows * padded_columns) / (1 + 8 / contracted)

    def _local_bytes(self, spans: NDArray[np.float64], trips: NDArray[np.float64]) -> NDArray[np.float64]:
        blocks = np.exp(self._span_matrix @ np.log(spans) + self._list_matrix @ np.log(trips))
        total = np.sum(self._local_sizes * blocks, axis=0)
        # Packing buffers are used one after another, so the largest counts.
        packed = [spans[columns] * spans[contracted] for _, columns, contracted in self._products]
        return total + (Element.F32.size_bytes * np.max(packed, axis=0) if packed else 0)
