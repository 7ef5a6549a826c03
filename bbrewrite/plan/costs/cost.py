"""What a built nest costs on a target, as a function of block sizes: the prices of its events, summed up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import prod
from operator import mul

import numpy as np
from numpy.typing import NDArray

from bbrewrite.core.elements import Element
from bbrewrite.core.indices import IndexTable
from bbrewrite.plan.costs.events import Event, NestEvents, summed
from bbrewrite.plan.costs.reuse import Residence
from bbrewrite.plan.costs.single_rows import KeptRows
from bbrewrite.plan.costs.totals import Cost, Occupancy, total, weighted_total
from bbrewrite.plan.machine import Machine
from bbrewrite.plan.masks.visited_share import MOST_COUNTED, SAMPLES, NarrowedLoop, counted_together, visited_share
from bbrewrite.plan.target import MemoryTier
from bbrewrite.plan.term_costs import COPY_WORK, ROW_SECONDS, fetching_work

# Calling a block operator costs about this long, whatever the block's size.
STATEMENT_SECONDS = 2.0e-8
# Memory moves in lines of so many bytes.
LINE = 64
# Tiles of products wait for the sums that they add to: from a farther tier these come so much slower than copies. Where
# a row of a tile is no more than a line, all are asked for as it begins, and are there in time.
WAIT_FOR_SUMS = 4.0
# Local lists that do not fit beside a processor may fill so much of the next tier, in which inputs lie too.
LISTS_SHARE = 0.5
# Copying columns beyond whole panels takes so much longer: they are short pieces of rows, never packed in passing.
NARROW_COPYING = 8.0


@dataclass(frozen=True)
class _Narrowed:
    """What narrowed loops do to an event: it happens for whole blocks, or only in spans of their rows.

    It counts along the indices `elements` by the element, along others by the block.
    """

    loops: tuple[NarrowedLoop, ...]
    elements: frozenset[str]
    in_spans: bool


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
        machine: Machine,
    ) -> None:
        target, threads = machine.target, machine.threads
        self._target = target
        self._threads = threads
        self._column = {name: position for position, name in enumerate(names)}
        self._extents = np.array([max(1, extents[name]) for name in names], dtype=np.float64)
        self._empty = any(extents[name] == 0 for name in names)
        self._grid = [self._column[index] for index in grid]
        packing = [event._replace(amount=target.packing_operations) for event in events.packing]
        copying = summed(events.copying)
        merged = [event._replace(amount=event.amount * threads) for event in events.merged]
        rate = target.narrow_product_rate
        products = [
            event._replace(amount=event.amount / rate) if event.is_narrow else event for event in events.products
        ]
        traffic = (*events.loads, *events.stores, *merged)
        groups = (
            (*summed((*events.vector_work, *packing)), *copying),
            summed(events.statements),
            summed(events.folded_rows if target.gpu is None else ()),
            summed(products),
            traffic,
            summed(events.kept),
            summed(events.accumulated),
            summed(events.flops),
            summed(events.iterations),
        )
        self._products = [tuple(self._column[axis] for axis in event.axes) for event in groups[3]]
        self._in_passing = [event.in_passing and target.gpu is None for event in groups[3]]
        # In passing there are only one of its panels, what is packed of it, and the next one; for a single row none.
        self._packing_buffers = [
            (
                columns,
                contracted,
                0.0 if self._extents[rows] == 1 else 3.0 * target.matrix_columns if panels else np.inf,
            )
            for (rows, columns, contracted), panels in zip(self._products, self._in_passing, strict=True)
        ]
        self._parts = [slice(0, 0)] * len(groups)
        rows: list[tuple[float, ...]] = []
        amounts: list[float] = []
        for number, group in enumerate(groups):
            self._parts[number] = slice(len(rows), len(rows) + len(group))
            for event in group:
                rows.append(self._exponents(event.loops, event.axes))
                amounts.append(event.amount * prod(extents[axis] or 1 for axis in event.axes))
        ordered = [event for group in groups for event in group]
        distances = [machine.distance(events.tensors[e.tensor], indices) if e.tensor else 0 for e in traffic]
        self._residence = Residence(traffic, distances, self._column, extents, target)
        # The rows of matrices are worked on in whole vectors, and rows of all blocks move in whole cache lines.
        self._rows = np.array([self._column[e.axes[-1]] if len(e.axes) > 1 else -1 for e in groups[0]], dtype=np.int64)
        self._copied_columns = [(self._column[e.axes[0]], self._copying_of_panels(e, extents)) for e in copying]
        # What products fetch in passing: the product's place, and the load's.
        loaded = {e.block: place for place, e in reversed([*enumerate(traffic)]) if e.block is not None}
        self._fetched: list[tuple[int, int]] = []
        for place, product in enumerate(groups[3]):
            if self._in_passing[place] and product.block in loaded:
                self._fetched.append((place, loaded.pop(product.block)))
        moved = [(e.amount, self._column[e.axes[-1]] if e.axes and e.tensor else -1) for e in traffic]
        self._entry_bytes = np.array([size for size, _ in moved], dtype=np.float64)[:, None]
        self._lines = np.array([row for _, row in moved], dtype=np.int64)
        # Left operands that a loop inside a cell loads again: the bytes of an entry, axes, and the loops.
        self._left_operands = [] if target.gpu else [self._loaded_again(e, grid) for e in events.left_operands]
        self._is_split = events.is_shared_out
        self._points = frozenset(name for name in names if not indices.is_blocked(name))
        self._all_extents = dict(extents)
        self._shares: dict[tuple[_Narrowed, tuple[int, ...], int], float] = {}
        self._narrowed: dict[_Narrowed, list[int]] = {}
        for place, event in enumerate(ordered):
            for loops in counted_together(event.narrowed):
                narrowed = self._narrowed_by(loops, event, place >= self._parts[-1].start)
                self._narrowed.setdefault(narrowed, []).append(place)
        # Of a split kernel, what is not shared out is done by every processor, unless by one alone.
        repeats = [threads if event.shared is None and not event.once else 1 for event in ordered]
        columns = [-1 if event.shared is None else self._column[event.shared] for event in ordered]
        self._repeats = np.array(repeats, dtype=np.float64)[:, None]
        self._sharing = list(zip(columns, repeats, strict=True))
        # Many events happen equally often.
        distinct: dict[tuple[float, ...], int] = {}
        self._row_of = [distinct.setdefault(row, len(distinct)) for row in rows]
        self._exponent_matrix = np.array(list(distinct), dtype=np.float64).reshape(len(distinct), len(names))
        self._amounts = np.array(amounts, dtype=np.float64)[:, None]
        # Blocks that are alike are held as one.
        alike: Counter[tuple[tuple[str, ...], tuple[str, ...]]] = Counter()
        for block in events.local_blocks:
            alike[block.list_indices, block.type.axes] += (block.type.element or Element.F32).size_bytes
        lists = [self._exponents(indices, ()) for indices, _ in alike]
        spans = [self._exponents(axes, ()) for _, axes in alike]
        self._list_matrix = np.array(lists, dtype=np.float64).reshape(len(lists), len(names))
        self._span_matrix = np.array(spans, dtype=np.float64).reshape(len(spans), len(names))
        self._local_sizes = np.array(list(alike.values()), dtype=np.float64)[:, None]
        self._kept_rows = KeptRows(events.single_rows, [axes for _, axes in alike], self._column, extents, indices)

    def _loaded_again(self, left: Event, grid: tuple[str, ...]) -> tuple[float, list[int], list[int], list[int]]:
        """A left operand: bytes for an entry, axes, the loops of a cell that load it again, and its own."""
        loops = [index for index in left.loops if index not in grid]
        again, own = (
            [self._column[index] for index in loops if left.is_repeated(index) == is_again]
            for is_again in (True, False)
        )
        return left.amount, [self._column[axis] for axis in left.axes], again, own

    def _copying_of_panels(self, copied: Event, extents: Mapping[str, int]) -> float:
        """How many times as long as copying it takes to pack whole panels of an operand: in passing only fetching it
        from afar takes any.
        """
        if not copied.in_passing:
            return 1.0
        axes = (copied.rows, *copied.axes) if copied.rows else ()
        return fetching_work(self._target, *(extents[axis] for axis in axes)) / COPY_WORK if axes else 0.0

    def _exponents(self, loops: tuple[str, ...], axes: tuple[str, ...]) -> tuple[float, ...]:
        return tuple([1.0 if name in loops and name not in axes else 0.0 for name in self._column])

    def counted(self, blocks: tuple[int, ...]) -> Cost:
        """The cost of one choice of block sizes, the visited blocks of narrowed loops counted instead of sampled."""
        return self.cheapest(np.array(blocks, dtype=np.float64)[:, None], MOST_COUNTED)[1]

    def cheapest(self, blocks: NDArray[np.float64], most_counted: int = SAMPLES) -> tuple[int, Cost]:
        """The best column of `blocks`, which holds one block size for each index (rows), and its cost.

        Of equals the first is taken.
        """
        spans = np.minimum(blocks, self._extents[:, None])
        trips = np.ceil(self._extents[:, None] / blocks)
        log_trips = np.log(trips)
        totals = self._amounts * np.exp(self._exponent_matrix @ log_trips)[self._row_of]
        all_iterations = total(totals[self._parts[-1]])
        for narrowed, places in self._narrowed.items():
            totals[places] *= self._visited(narrowed, blocks, most_counted)
        if self._is_split:
            totals *= self._repeats
        _, _, _, _, traffic, _, _, flops, iterations = [totals[part] for part in self._parts]
        # What the busiest processor does.
        own = totals * self._share_of_one(trips, spans)
        vector, statements, rows, products, own_traffic, kept, accumulated, *_ = [own[part] for part in self._parts]
        if self._target.gpu is None:
            vector, own_traffic = vector * self._padding(spans), own_traffic * self._line_shares(spans)
        target = self._target
        work = total(vector) / (target.vector_operations_per_second * target.vector_lanes)
        work += STATEMENT_SECONDS * total(statements) + ROW_SECONDS * total(rows)
        # Several products have the same axes.
        rates = {
            axes: target.matrix_flops_per_second * self._matrix_efficiency(spans[list(axes)])
            for axes in dict.fromkeys(self._products)
        }
        multiplying = [work_done / rates[axes] for axes, work_done in zip(self._products, products, strict=True)]
        work += sum(multiplying)
        moved = total(traffic)
        seconds = target.launch_seconds + work * self._slowdown(spans, trips)
        shares = self._residence.shares(trips, log_trips)
        for tier, share in zip(target.shared_tiers, shares, strict=True):
            everyone = partial(weighted_total, traffic, share)
            seconds += self._tier_seconds(tier, weighted_total(own_traffic, share), everyone)
        # What is fetched in passing takes no time that its product does not take as well.
        for product, load in self._fetched:
            fetching = sum(
                self._tier_seconds(tier, own_traffic[load] * share[load], partial(mul, traffic[load], share[load]))
                for tier, share in zip(target.shared_tiers, shares, strict=True)
            )
            seconds -= np.minimum(fetching, multiplying[product])
        near, lists = self._held_bytes(spans, trips)
        local = near + lists
        seconds += self._far_seconds(kept, accumulated, near, lists)
        seconds = np.where(self._fits(near, lists, spans, trips), seconds, np.inf)
        fastest = np.flatnonzero(seconds == seconds.min())
        best = int(fastest[np.lexsort((moved[fastest], local[fastest]))[0]])
        scale = 0 if self._empty else 1
        # Logarithms cost the last bits; bytes and operations are whole numbers.
        return best, Cost(
            float(seconds[best]),
            round(float(moved[best])) * scale,
            tuple(round(float((traffic[:, best] * share[:, best]).sum())) * scale for share in shares),
            round(float(flops[:, best].sum())) * scale,
            round(float(local[best])),
            float(iterations[:, best].sum()),
            float(all_iterations[best]),
            self._occupancy(spans[:, [best]], trips[:, [best]]),
        )

    def _slowdown(self, spans: NDArray[np.float64], trips: NDArray[np.float64]) -> NDArray[np.float64] | float:
        """How many times as long the work takes as at a processor's full rate."""
        return 1.0

    def _tier_seconds(
        self, tier: MemoryTier, own: NDArray[np.float64], everyone: Callable[[], NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """How long bytes from or to a tier take: the busiest processor's `own`, of those that all move."""
        return own * self._target.tier_seconds_per_byte(tier, self._threads)

    def _occupancy(self, spans: NDArray[np.float64], trips: NDArray[np.float64]) -> Occupancy | None:
        """How one choice of block sizes fills the processors; None where they are not shared by blocks of threads."""
        return None

    def _cells(self, trips: NDArray[np.float64]) -> NDArray[np.float64]:
        """How many cells the grid has."""
        return np.prod(trips[self._grid], axis=0)

    def _has_spans(self, loop: NarrowedLoop) -> bool:
        """Whether generated code works on rows of blocks only from where to where they are seen."""
        return self._target.gpu is None and (loop.bounds.begin is not None or loop.bounds.end is not None)

    def _narrowed_by(self, loops: tuple[NarrowedLoop, ...], event: Event, is_iteration: bool) -> _Narrowed:
        """How loops narrow an event. What happens in spans has the rows and columns that they hide as its axes.

        Iterations count as what is worked on in them.
        """
        indices = frozenset[str]().union(*(loop.indices for loop in loops))
        has_spans = all(map(self._has_spans, loops))
        if has_spans and (is_iteration or indices <= {*event.axes, *self._points}):
            return _Narrowed(loops, indices - self._points, True)
        return _Narrowed(loops, indices.intersection(event.axes), False)

    def _visited(self, narrowed: _Narrowed, blocks: NDArray[np.float64], most_counted: int) -> NDArray[np.float64]:
        """The share of what happens in narrowed loops that is visited, for all block sizes."""
        names = tuple(sorted(frozenset[str]().union(*(loop.indices for loop in narrowed.loops))))
        own = blocks[[self._column[name] for name in names]].astype(np.int64).T
        if narrowed.in_spans:
            columns = {loop.index for loop in narrowed.loops}
            lanes, rows = self._target.vector_lanes, self._target.matrix_rows
            own = np.minimum(own, [lanes if name in columns else rows for name in names])
        sizes, which = np.unique(own, axis=0, return_inverse=True)
        found: list[float] = []
        for row in sizes:
            key = (narrowed, tuple(map(int, row)), most_counted)
            if key not in self._shares:
                sizes_of = dict(zip(names, key[1], strict=True))
                self._shares[key] = visited_share(
                    narrowed.loops, sizes_of, self._all_extents, narrowed.elements, most=most_counted
                )
            found.append(self._shares[key])
        return np.array(found)[which.reshape(-1)]

    def _padding(self, spans: NDArray[np.float64]) -> NDArray[np.float64]:
        """By how much longer vector work takes where rows of blocks are no whole vectors, or packed ones no panels."""
        lanes = self._target.vector_lanes
        # What has no rows finds a one at the end.
        padded = np.concatenate([np.ceil(spans / lanes) * lanes / spans, np.ones((1, spans.shape[1]))])
        found = padded[self._rows]
        for place, (column, whole) in enumerate(self._copied_columns, len(found) - len(self._copied_columns)):
            narrow = spans[column] % self._target.matrix_columns / spans[column]
            found[place] = found[place] * (whole * (1 - narrow) + max(whole, NARROW_COPYING) * narrow)
        return found

    def _line_shares(self, spans: NDArray[np.float64]) -> NDArray[np.float64]:
        """By how much more moves where rows of blocks are parts of cache lines; whole rows lie side by side."""
        found = np.ones((len(self._lines), spans.shape[1]))
        some = self._lines >= 0
        own = spans[self._lines[some]]
        row_bytes = own * self._entry_bytes[some]
        is_part = own < self._extents[self._lines[some], None]
        found[some] = np.where(is_part, np.ceil(row_bytes / LINE) * LINE / row_bytes, 1.0)
        return found

    def _share_of_one(self, trips: NDArray[np.float64], spans: NDArray[np.float64]) -> NDArray[np.float64]:
        """The share of each event's total that falls to the busiest processor.

        The last round leaves processors idle where blocks do not divide evenly among them.
        """
        if self._is_split:
            rounds = np.minimum(1.0, np.ceil(trips / self._threads) * spans / self._extents[:, None])
            one = np.ones(trips.shape[1])
            return np.array([rounds[column] if column >= 0 else one / repeats for column, repeats in self._sharing])
        cells = self._cells(trips)
        rounds = np.ceil(cells / np.minimum(cells, self._threads))
        largest_cell = np.prod(spans[self._grid] / self._extents[self._grid, None], axis=0)
        return np.minimum(1.0, rounds * largest_cell)

    def _matrix_efficiency(self, spans: NDArray[np.float64]) -> NDArray[np.float64]:
        """The share of the matrix unit's rate that products of such blocks reach.

        A register tile that is short of rows or columns has too few accumulators to hide the latency of its
        multiply-adds, and columns are padded to whole vectors.
        """
        rows, columns, _ = spans
        target = self._target
        vectors = np.ceil(columns / target.vector_lanes)
        tile = np.minimum(rows, target.matrix_rows) * np.minimum(vectors, target.matrix_columns / target.vector_lanes)
        hidden = np.minimum(1.0, tile / target.accumulators_to_hide_latency)
        return hidden * columns / (vectors * target.vector_lanes)

    def _fits(
        self,
        near: NDArray[np.float64],
        lists: NDArray[np.float64],
        spans: NDArray[np.float64],
        trips: NDArray[np.float64],
    ) -> NDArray[np.bool_]:
        """Whether local memory suffices for what is worked on, and for lists with a part of the tier behind it."""
        target = self._target
        behind = LISTS_SHARE * target.shared_tiers[0].capacity_bytes / self._threads if self._has_tier_behind else 0.0
        fits = near + lists <= target.local_capacity_bytes
        return fits | ((near <= target.local_capacity_bytes) & (lists <= behind))

    @property
    def _has_tier_behind(self) -> bool:
        """Whether a cache of all processors stands between them and main memory."""
        return len(self._target.shared_tiers) > 1

    def _far_seconds(
        self,
        kept: NDArray[np.float64],
        accumulated: NDArray[np.float64],
        near: NDArray[np.float64],
        lists: NDArray[np.float64],
    ) -> NDArray[np.float64] | float:
        """How long what is read from and written to lists takes where they have no room beside the processor."""
        if not self._has_tier_behind:
            return 0.0
        room = np.maximum(0.0, self._target.local_capacity_bytes - near)
        share = 1 - np.minimum(1.0, room / np.maximum(1.0, lists))
        are_asked_for = self._target.matrix_columns * Element.F32.size_bytes <= LINE
        wait = 1.0 if are_asked_for else WAIT_FOR_SUMS
        far = share * (total(kept) + wait * total(accumulated))
        return self._tier_seconds(self._target.shared_tiers[0], far, lambda: far)

    def _held_bytes(
        self, spans: NDArray[np.float64], trips: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The bytes of blocks that are no lists, or lists of one, and of what is packed; and those of lists."""
        lengths = np.rint(np.exp(self._list_matrix @ np.log(trips)))
        blocks = self._local_sizes * np.exp(self._span_matrix @ np.log(spans)) * self._kept_rows.shares(spans, trips)
        near = (blocks * (lengths <= 1)).sum(axis=0)
        # Packing buffers are used one after another, so the largest counts.
        packed = [
            np.minimum(spans[columns], most) * spans[contracted] for columns, contracted, most in self._packing_buffers
        ]
        near = near + (Element.F32.size_bytes * np.max(packed, axis=0) if packed else 0)
        # A left operand whose only block a loop loads again lies as near as if it were kept.
        for size, axes, again, own in self._left_operands:
            is_same = (np.prod(trips[again], axis=0) > 1) & (np.prod(trips[own], axis=0) == 1)
            near = near + size * np.prod(spans[axes], axis=0) * is_same
        return near, (blocks * lengths * (lengths > 1)).sum(axis=0)
