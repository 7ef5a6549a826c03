"""What a built nest costs on a target, as a function of block sizes.

A nest is summarised once as *events*: work and traffic with the axes of the blocks they act on and the loops
around them. An event happens once for each block of every loop, so for given block sizes its total is the
product of its axes' extents and of the trip counts of the loops that are not among its axes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from bbrewrite.core.elements import Element
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Apply, Local, Read, Term, walk
from bbrewrite.core.types import Typing
from bbrewrite.plan.kernel import (
    Barrier,
    Let,
    LocalBlock,
    Loop,
    Merge,
    Statement,
    Store,
    Update,
    compute_element,
    walk_statements,
)
from bbrewrite.plan.target import Target
from bbrewrite.plan.term_costs import (
    COPY_WORK,
    LAYOUT_WORK,
    NARROW_RATE,
    PASS_WORK,
    PRODUCT_CALL,
    body_work,
    is_transpose,
)
from bbrewrite.plan.visited_share import NarrowedLoop, visited_share

# Calling a block operator costs about this long, whatever the block's size.
STATEMENT_SECONDS = 2.0e-8


@dataclass(frozen=True)
class Event:
    """`amount` per element of a block with `axes`, in every iteration of `loops` (grid included).

    In a split kernel `shared` is the loop around it whose iterations are shared out; without one, every processor
    does it for itself.
    """

    amount: float
    axes: tuple[str, ...]
    loops: tuple[str, ...]
    shared: str | None = None
    narrowed: tuple[NarrowedLoop, ...] = ()  # those of `loops` that visit only some of their blocks
    once: bool = False  # one processor does it, where nothing is shared out
    tensor: str = ""  # whose blocks are loaded or stored


@dataclass(frozen=True)
class NestEvents:
    """Everything in a nest that costs. Products have axes (rows, columns, contracted)."""

    products: tuple[Event, ...]
    packing: tuple[Event, ...]  # elements
    vector_work: tuple[Event, ...]
    loads: tuple[Event, ...]  # bytes from global memory
    stores: tuple[Event, ...]
    merged: tuple[Event, ...]  # bytes of one processor's blocks that a split kernel combines
    statements: tuple[Event, ...]
    flops: tuple[Event, ...]  # arithmetic operations, whatever unit does them
    iterations: tuple[Event, ...]  # of loops that visit only some of their blocks
    local_blocks: tuple[LocalBlock, ...]
    tensors: Mapping[str, Tensor]  # those loaded and stored


@dataclass(frozen=True)
class Cost:
    """The totals of a nest for given block sizes and extents; `seconds` is infinite where local memory is short.

    `tier_bytes` are the global bytes by the tier of shared memory that they come from or go to, nearest first.
    """

    seconds: float
    global_bytes: int
    tier_bytes: tuple[int, ...]
    flops: int
    local_bytes: int
    blocks_visited: int = 0  # in loops that masks narrow
    blocks_in_all: int = 0  # in such loops, if every block were visited

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
        self._merged: list[Event] = []
        self._statements: list[Event] = []
        self._flops: list[Event] = []
        self._iterations: list[Event] = []
        self._blocks: dict[str, LocalBlock] = {}
        self._held: dict[str, Read] = {}
        self._touched: dict[str, Tensor] = {}

    def of(self, body: tuple[Statement, ...], grid: tuple[str, ...]) -> NestEvents:
        self._collect_blocks(body)
        self._typing = self._typing.with_locals({name: block.type for name, block in self._blocks.items()})
        self._visit(body, _Place(grid))
        return NestEvents(
            tuple(self._products),
            tuple(self._packing),
            tuple(self._vector),
            tuple(self._loads),
            tuple(self._stores),
            tuple(self._merged),
            tuple(self._statements),
            tuple(self._flops),
            tuple(self._iterations),
            tuple(self._blocks.values()),
            MappingProxyType(self._touched),
        )

    def _collect_blocks(self, body: tuple[Statement, ...]) -> None:
        for statement in walk_statements(body):
            if isinstance(statement, Let | Update | Merge):
                self._blocks[statement.target.name] = statement.target
            if isinstance(statement, Let) and isinstance(statement.expression, Read):
                self._held[statement.target.name] = statement.expression

    def _visit(self, body: tuple[Statement, ...], place: _Place) -> None:
        loaded: set[Term] = set()
        for statement in body:
            match statement:
                case Loop():
                    inner = place.inside(statement)
                    if statement.bounds is not None:
                        self._iterations.append(inner.event(1.0, ()))
                    self._visit(statement.body, inner)
                case Let(target, expression) | Update(target, expression):
                    self._vector.append(place.around(target.list_indices).event(PASS_WORK, target.type.axes))
                    self._statement(expression, place, loaded)
                case Store(tensor, expression):
                    axes = self._typing.block(expression).axes
                    stored = place.around(tensor.indices).event(float(tensor.element.size_bytes), axes)
                    self._stores.append(replace(stored, once=True, tensor=tensor.name))
                    self._touched[tensor.name] = tensor
                    self._statement(expression, place, loaded)
                case Merge(target, source, _):
                    # Each processor reads the blocks of all; how many there are is known when costs are evaluated.
                    size = float(compute_element(source.type.element).size_bytes)
                    self._merged.append(place.event(size, target.type.axes))
                case Barrier():
                    pass

    def _statement(self, expression: Term, place: _Place, loaded: set[Term]) -> None:
        self._statements.append(place.event(1.0, ()))
        for term in walk(expression):
            match term:
                case Read(tensor, _):
                    if term not in loaded:
                        loaded.add(term)
                        size = float(self._tensors[tensor].element.size_bytes)
                        loaded_block = place.event(size, self._typing.block(term).axes)
                        self._loads.append(replace(loaded_block, tensor=tensor))
                        self._touched[tensor] = self._tensors[tensor]
                case Apply():
                    self._operator(term, place)
                case _:
                    pass

    def _is_narrow(self, operand: Term) -> bool:
        """Whether an operand of a product is bf16 from memory, perhaps held for other uses too."""
        if isinstance(operand, Apply) and operand.operator == "transpose":
            (operand,) = operand.operands
        loaded = self._held.get(operand.name) if isinstance(operand, Local) else operand
        return isinstance(loaded, Read) and self._tensors[loaded.tensor].element is Element.BF16

    def _operator(self, term: Apply, place: _Place) -> None:
        operator = self._table.operators[term.operator]
        result = self._typing.block(term)
        if operator.name == "dot":
            rows, contracted = self._typing.block(term.operands[0]).axes
            columns = self._typing.block(term.operands[1]).axes[0]
            rate = NARROW_RATE if all(self._is_narrow(operand) for operand in term.operands) else 1.0
            self._products.append(place.event(2.0 / rate, (rows, columns, contracted)))
            self._flops.append(place.event(2.0, (rows, columns, contracted)))
            # The second operand is packed on load, the first written to a block where it is none in memory. Columns
            # that lie side by side are copied; others are transposed on the way.
            if is_transpose(term.operands[1]):
                self._vector.append(place.event(COPY_WORK, (columns, contracted)))
            else:
                self._packing.append(place.event(1.0, (columns, contracted)))
            if not isinstance(term.operands[0], Read | Local):
                self._vector.append(place.event(PASS_WORK, (rows, contracted)))
            return
        widest = max((self._typing.block(operand).axes for operand in term.operands), key=len, default=())
        axes = widest if operator.fold else result.axes
        function = self._table.functions.get(operator.function)
        work = 1.0 if operator.fold else 0.0
        if function is not None:
            work += body_work(self._table, function.body) if function.body else function.work
        if function is not None or operator.fold:
            self._flops.append(place.event(1.0, axes))
        self._vector.append(place.event(work or LAYOUT_WORK / 2, axes))


@dataclass(frozen=True)
class _Place:
    """Where a statement stands: the loops around it, and the one of them whose iterations are shared out."""

    loops: tuple[str, ...]
    shared: str | None = None
    narrowed: tuple[NarrowedLoop, ...] = ()

    def inside(self, loop: Loop) -> _Place:
        narrowed = self.narrowed
        if loop.bounds is not None:
            narrowed = (*narrowed, NarrowedLoop(loop.index, loop.bounds, frozenset(self.loops)))
        return _Place((*self.loops, loop.index), loop.index if loop.shared else self.shared, narrowed)

    def around(self, indices: tuple[str, ...]) -> _Place:
        """The place with loops over further indices, which the statement runs over by itself."""
        return replace(self, loops=(*self.loops, *(index for index in indices if index not in self.loops)))

    def event(self, amount: float, axes: tuple[str, ...]) -> Event:
        return Event(amount, axes, self.loops, self.shared, self.narrowed)


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
        indices: IndexTable,
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
        merged = [replace(event, amount=event.amount * threads) for event in events.merged]
        traffic = (*events.loads, *events.stores, *merged)
        groups = (
            (*events.vector_work, *packing),
            events.statements,
            events.products,
            traffic,
            events.flops,
            events.iterations,
        )
        self._parts = [slice(0, 0)] * len(groups)
        rows: list[list[float]] = []
        amounts: list[float] = []
        for number, group in enumerate(groups):
            self._parts[number] = slice(len(rows), len(rows) + len(group))
            for event in group:
                rows.append(self._exponents(event.loops, event.axes))
                amounts.append(event.amount * prod(extents[axis] or 1 for axis in event.axes))
        ordered = [event for group in groups for event in group]
        sizes = [_tensor_bytes(event, events.tensors, extents, indices) for event in traffic]
        self._seconds_per_byte = np.array([target.seconds_per_byte(size, threads) for size in sizes])[:, None]
        tiers = [target.tier_of(size) for size in sizes]
        self._tiers = [np.array([tier is mine for mine in tiers], dtype=bool) for tier in target.shared_tiers]
        self._is_split = bool(events.merged)
        self._all_extents = dict(extents)
        self._shares: dict[tuple[NarrowedLoop, tuple[int, ...]], float] = {}
        self._narrowed: dict[NarrowedLoop, NDArray[np.bool_]] = {
            loop: np.array([loop in event.narrowed for event in ordered])
            for loop in dict.fromkeys(loop for event in ordered for loop in event.narrowed)
        }
        # Of a split kernel, what is not shared out is done by every processor, unless by one alone.
        repeats = [threads if event.shared is None and not event.once else 1 for event in ordered]
        columns = [-1 if event.shared is None else self._column[event.shared] for event in ordered]
        self._repeats = np.array(repeats, dtype=np.float64)[:, None]
        self._sharing = list(zip(columns, repeats, strict=True))
        self._exponent_matrix = np.array(rows, dtype=np.float64).reshape(len(rows), len(names))
        self._amounts = np.array(amounts, dtype=np.float64)[:, None]
        lists = [self._exponents(block.list_indices, ()) for block in events.local_blocks]
        spans = [self._exponents(block.type.axes, ()) for block in events.local_blocks]
        self._list_matrix = np.array(lists, dtype=np.float64).reshape(len(lists), len(names))
        self._span_matrix = np.array(spans, dtype=np.float64).reshape(len(spans), len(names))
        self._local_sizes = np.array(
            [(block.type.element or Element.F32).size_bytes for block in events.local_blocks], dtype=np.float64
        )[:, None]

    def _exponents(self, loops: tuple[str, ...], axes: tuple[str, ...]) -> list[float]:
        return [1.0 if name in loops and name not in axes else 0.0 for name in self._column]

    def cheapest(self, blocks: NDArray[np.float64]) -> tuple[int, Cost]:
        """The best column of `blocks`, which holds one block size for each index (rows), and its cost.

        Of equals the first is taken.
        """
        spans = np.minimum(blocks, self._extents[:, None])
        trips = np.ceil(self._extents[:, None] / blocks)
        totals = self._amounts * np.exp(self._exponent_matrix @ np.log(trips))
        all_iterations = totals[self._parts[-1]].sum(axis=0)
        for loop, inside in self._narrowed.items():
            totals[inside] *= self._visited(loop, blocks)
        if self._is_split:
            totals *= self._repeats
        _, _, _, traffic, flops, iterations = (totals[part] for part in self._parts)
        # What the busiest processor does.
        own = totals * self._share_of_one(trips, spans)
        vector, statements, products, own_traffic, *_ = (own[part] for part in self._parts)
        target = self._target
        work = vector.sum(axis=0) / (target.vector_operations_per_second * target.vector_lanes)
        work += STATEMENT_SECONDS * statements.sum(axis=0)
        for axes, total in zip(self._products, products, strict=True):
            work += total / (target.matrix_flops_per_second * self._matrix_efficiency(spans[list(axes)]))
        moved = traffic.sum(axis=0)
        seconds = target.launch_seconds + work + (own_traffic * self._seconds_per_byte).sum(axis=0)
        local = self._local_bytes(spans, trips)
        seconds = np.where(self._fits(spans, trips), seconds, np.inf)
        best = int(np.lexsort((moved, local, seconds))[0])
        scale = 0 if self._empty else 1
        # Logarithms cost the last bits; bytes and operations are whole numbers.
        return best, Cost(
            float(seconds[best]),
            round(float(moved[best])) * scale,
            tuple(round(float(traffic[chosen, best].sum())) * scale for chosen in self._tiers),
            round(float(flops[:, best].sum())) * scale,
            round(float(local[best])),
            round(float(iterations[:, best].sum())),
            round(float(all_iterations[best])),
        )

    def _visited(self, loop: NarrowedLoop, blocks: NDArray[np.float64]) -> NDArray[np.float64]:
        """The share of a narrowed loop's blocks that are visited, for each choice of block sizes."""
        names = (*loop.outer, loop.index)
        own = blocks[[self._column[name] for name in names]].astype(np.int64).T
        sizes, which = np.unique(own, axis=0, return_inverse=True)
        found: list[float] = []
        for row in sizes:
            key = (loop, tuple(map(int, row)))
            if key not in self._shares:
                self._shares[key] = visited_share(loop, dict(zip(names, key[1], strict=True)), self._all_extents)
            found.append(self._shares[key])
        return np.array(found)[which.reshape(-1)]

    def _share_of_one(self, trips: NDArray[np.float64], spans: NDArray[np.float64]) -> NDArray[np.float64]:
        """The share of each event's total that falls to the busiest processor.

        The last round leaves processors idle where blocks do not divide evenly among them.
        """
        if self._is_split:
            rounds = np.minimum(1.0, np.ceil(trips / self._threads) * spans / self._extents[:, None])
            one = np.ones(trips.shape[1])
            return np.array([rounds[column] if column >= 0 else one / repeats for column, repeats in self._sharing])
        cells = np.prod(trips[self._grid], axis=0)
        rounds = np.ceil(cells / np.minimum(cells, self._threads))
        largest_cell = np.prod(spans[self._grid] / self._extents[self._grid, None], axis=0)
        return np.minimum(1.0, rounds * largest_cell)

    def _matrix_efficiency(self, spans: NDArray[np.float64]) -> NDArray[np.float64]:
        """The share of the matrix unit's rate that products of such blocks reach.

        A register tile that is short of rows or columns has too few accumulators to hide the latency of its
        multiply-adds; columns are padded to whole vectors; and every call loads and stores its result once.
        """
        rows, columns, contracted = spans
        target = self._target
        vectors = np.ceil(columns / target.vector_lanes)
        tile = np.minimum(rows, target.matrix_rows) * np.minimum(vectors, target.matrix_columns / target.vector_lanes)
        hidden = np.minimum(1.0, tile / target.accumulators_to_hide_latency)
        return hidden * columns / (vectors * target.vector_lanes) / (1 + PRODUCT_CALL / contracted)

    def _fits(self, spans: NDArray[np.float64], trips: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether local memory suffices."""
        return self._local_bytes(spans, trips) <= self._target.local_capacity_bytes

    def _local_bytes(self, spans: NDArray[np.float64], trips: NDArray[np.float64]) -> NDArray[np.float64]:
        blocks = np.exp(self._span_matrix @ np.log(spans) + self._list_matrix @ np.log(trips))
        total = np.sum(self._local_sizes * blocks, axis=0)
        # Packing buffers are used one after another, so the largest counts.
        packed = [spans[columns] * spans[contracted] for _, columns, contracted in self._products]
        return total + (Element.F32.size_bytes * np.max(packed, axis=0) if packed else 0)


def _tensor_bytes(
    event: Event, tensors: Mapping[str, Tensor], extents: Mapping[str, int], indices: IndexTable
) -> float:
    """The size of the list that is loaded or stored; 0 for accumulators that processors exchange."""
    if not event.tensor:
        return 0.0
    tensor = tensors[event.tensor]
    return prod(_extent(index, extents, indices) for index in tensor.indices) * tensor.element.size_bytes


def _extent(index: str, extents: Mapping[str, int], indices: IndexTable) -> int:
    if index in extents:
        return extents[index]
    known = indices.extent(index)
    assert known is not None, index
    return known
