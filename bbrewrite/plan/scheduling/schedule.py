"""Scheduling: the cheapest loop nest, block sizes and local lists for one kernel.

The search runs over which output indices form the parallel grid, the order of the other loops, which values
needed in several loops are kept local, and block sizes. Small kernels are searched exhaustively in grid and
order; kept values and block sizes by steepest descent. All of it is deterministic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from math import inf, isinf, prod

from bbrewrite.core.indices import Index, IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Read, Reduce, Term, walk
from bbrewrite.core.types import Typing
from bbrewrite.plan.choices import ScheduleChoice
from bbrewrite.plan.costs.events import summarise
from bbrewrite.plan.costs.gpu_costs import GPU_BLOCK_SIZES, GpuNestCosts
from bbrewrite.plan.costs.totals import Cost
from bbrewrite.plan.kernel import Barrier, Kernel, Let, Loop, Merge, Statement, Store, Update
from bbrewrite.plan.machine import Machine
from bbrewrite.plan.nests.nest import Nest
from bbrewrite.plan.partition import KernelTerm
from bbrewrite.plan.scheduling.judged_nests import JudgedNests, NestChoice, SizedNest
from bbrewrite.plan.scheduling.loop_orders import LoopOrders
from bbrewrite.plan.scheduling.problem import ScheduleProblem
from bbrewrite.plan.scheduling.promises import Promises
from bbrewrite.plan.scheduling.scheduled import Scheduled
from bbrewrite.plan.scheduling.shaped_nests import KnownNests
from bbrewrite.plan.scheduling.spanning import may_span, of_single_rows, spanned
from bbrewrite.plan.scheduling.split import repeats_work_along
from bbrewrite.plan.scheduling.tried_sizes import TriedSizes, columns
from bbrewrite.plan.scheduling.two_launches import SHARED_UP_TO, SHARES, TwoLaunches, split_in_two
from bbrewrite.plan.unkept import Unkept

# How many combinations of grid and loop order are refined by keeping values local.
NESTS_REFINED = 2
# Those that start so much slower than the fastest did not win on any program at hand.
REFINED_WITHIN = 1.1
# A value is kept local where that saves at least such a share of the time: less is beyond the model.
KEPT_FOR = 0.001
# What is kept is tried where less is promised too, since other loops and block sizes may follow.
TRIED_FOR = KEPT_FOR / 4
# Splitting a reduction is tried where the grid has fewer cells than this for each processor.
SPLIT_BELOW = 2


def schedule(
    kernel: KernelTerm,
    indices: IndexTable,
    tensors: Mapping[str, Tensor],
    table: OperatorTable,
    machine: Machine,
) -> Scheduled:
    """The cheapest schedule found for a kernel."""
    return ScheduleSearch(kernel, indices, tensors, table, machine).run()


class ScheduleSearch:
    """Looks at the schedules of one kernel; see the module text."""

    def __init__(
        self,
        kernel: KernelTerm,
        indices: IndexTable,
        tensors: Mapping[str, Tensor],
        table: OperatorTable,
        machine: Machine,
        known: KnownNests | None = None,
    ) -> None:
        """`known` are nests of other kernels for the same target."""
        self._kernel = kernel
        self._indices = indices
        self._tensors = tensors
        self._table = table
        self._machine = machine
        self._typing = Typing(table, indices, tensors)
        problem = ScheduleProblem(kernel, indices, tensors, table, machine)
        terms, self._reduced, self._used = problem.terms, problem.reduced, problem.used
        self._nested = tuple(dict.fromkeys(pair for nest in problem.nests for pair in combinations(sorted(nest), 2)))
        self._loops = LoopOrders(problem)
        # Only states of one component can be merged block by block.
        dependent = {t.index for t in terms if isinstance(t, Reduce) and len(table.monoids[t.monoid].state) > 1}
        self._mergeable = frozenset(self._reduced) - dependent
        spannable = may_span(terms, indices, table, self._typing) if machine.target.gpu is None else frozenset[str]()
        self._may_span = spannable.intersection(self._used)
        single = (
            of_single_rows(terms, self._typing, self._loops.extent) if machine.target.gpu is None else frozenset[str]()
        )
        self._sizes = TriedSizes(self._used, indices, machine, self._may_span, single)
        self._nests = JudgedNests(problem, (known or KnownNests()).of(problem), self._sizes)

    def run(self) -> Scheduled:
        """The cheapest schedule found."""
        started = [choice for grid in self._loops.grids() for choice in self._started(grid)]
        # Blocks of a GPU's grid cannot wait for each other.
        may_split = self._machine.target.gpu is None
        if may_split and self._cells(min(started, key=lambda c: c.rank)) < SPLIT_BELOW * self._machine.threads:
            started += self._started_split()
        started.sort(key=lambda choice: choice.rank)
        # What to keep is found at coarse block sizes, so at finer ones less may be better.
        limit = started[0].cost.seconds * REFINED_WITHIN
        refined = [start for start in started[:NESTS_REFINED] if start.cost.seconds <= limit]
        best = min(self._refined(refined), key=lambda choice: choice.rank)
        limit = best.cost.seconds * REFINED_WITHIN
        shared = [start for start in self._shared_out(best) if start.cost.seconds <= limit]
        best = min([*self._refined(shared), best], key=lambda choice: choice.rank)
        whole = replace(self._finished(counted(best), self._notes(best)), unkept=self._unkept(best))
        # Two launches: what is split must be worth more than one.
        fills = self._cells(best) >= SPLIT_BELOW * self._machine.threads
        if may_split or fills or whole.seconds <= 2 * self._machine.target.launch_seconds:
            return whole
        return min([whole, *self._launched_twice(best)], key=lambda found: found.seconds)

    def _refined(self, starts: Iterable[NestChoice]) -> Iterator[NestChoice]:
        """Nests and those that keep more values local, each at its best block sizes."""
        return (self._with_block_sizes(choice) for start in starts for choice in self._descent(start))

    def _started(self, grid: tuple[str, ...]) -> Iterator[NestChoice]:
        """Nests of a grid in all loop orders, with nothing kept local yet."""
        yield from self._different(grid, [(order, None) for order in self._loops.orders(grid)])

    def _launched_twice(self, best: NestChoice) -> Iterator[Scheduled]:
        """Schedules of two kernels, the first of which shares out a reduction's loop."""
        for index in self._reduced:
            found = self._splittable(best, index)
            if found is None:
                continue
            nest, grid = found
            cells = prod(-(-self._loops.extent(i) // self._loops.whole(i)) for i in grid)
            most = self._loops.extent(index) // (GPU_BLOCK_SIZES[0] if self._indices.is_blocked(index) else 1)
            for count in SHARES:
                if count <= most and cells * count <= SHARED_UP_TO * self._machine.threads:
                    yield self._with_shares(nest, grid, index, count)

    def _splittable(self, choice: NestChoice, index: str) -> tuple[Nest, tuple[str, ...]] | None:
        """The nest, or one with a loop instead of the grid's blocks along an index that is no axis of all states."""
        if self._two_launches(choice.nest, choice.grid, index, "shares") is not None:
            return choice.nest, choice.grid
        for dropped in reversed([i for i in choice.grid if self._indices.is_blocked(i)]):
            grid = tuple(i for i in choice.grid if i != dropped)
            inner = self._nests.built(grid, (*choice.order, dropped), choice.kept, None)
            if inner is not None and self._two_launches(inner.nest, grid, index, "shares") is not None:
                return inner.nest, grid
        return None

    def _two_launches(self, nest: Nest, grid: tuple[str, ...], index: str, shares: str) -> TwoLaunches | None:
        name = self._kernel.name
        while any(taken.startswith(f"{name}_") for taken in (*self._tensors, *self._indices.entries)):
            name += "_"
        return split_in_two(nest.body, nest.states, index, shares, grid, name, self._indices, self._table)

    def _with_shares(self, nest: Nest, grid: tuple[str, ...], index: str, count: int) -> Scheduled:
        shares = Index(self._indices.fresh_name(f"shares_{count}"), count, is_share=True)
        two = self._two_launches(nest, grid, index, shares.name)
        assert two is not None
        tensors = {**self._tensors, **{tensor.name: tensor for tensor in two.states}}
        table = self._indices.with_index(shares)
        outputs = tuple(output.tensor for output in self._kernel.outputs)
        name = self._kernel.name
        first = self._priced(f"{name}_{index}", two.first, (*grid, shares.name), table, tensors, two.states)
        second = self._priced(name, two.second, grid, table, tensors, outputs)
        return Scheduled((first[0], second[0]), (first[1], second[1]), None, (), two.states, shares)

    def _priced(
        self,
        name: str,
        body: tuple[Statement, ...],
        grid: tuple[str, ...],
        table: IndexTable,
        tensors: Mapping[str, Tensor],
        writes: tuple[Tensor, ...],
    ) -> tuple[Kernel, Cost]:
        """A kernel of a split reduction at the best block sizes found."""
        gpu = self._machine.target.gpu
        assert gpu is not None
        typing = Typing(self._table, table, tensors)
        used = (*self._used, *table.shares)
        extents = {index.name: self._loops.extent(index.name) for index in self._indices} | table.shares
        events = summarise(body, grid, self._table, typing, tensors)
        costs = GpuNestCosts(events, body, grid, used, extents, table, tensors, self._machine, gpu)
        blocks, _ = self._sizes.descended(costs, self._sizes.coarse(costs, len(table.shares))[0])
        kernel = self._kernel_of(name, table, dict(zip(used, blocks, strict=True)), grid, body, tensors, writes)
        return kernel, costs.counted(blocks)

    def _started_split(self) -> Iterator[NestChoice]:
        """Nests without a grid whose outermost reduction is shared by all processors."""
        outermost = {order: next((i for i in order if i in self._reduced), None) for order in self._loops.orders(())}
        yield from self._different((), [(order, i) for order, i in outermost.items() if i in self._mergeable])

    def _shared_out(self, best: NestChoice) -> Iterator[NestChoice]:
        """Nests that share out a loop over one index of a grid where cells along it repeat work."""
        for index in best.grid:
            if self._is_shareable(index) and repeats_work_along(best.nest.body, index):
                around = tuple(other for other in best.grid if other != index)
                choice = self._nests.built((), (*around, index, *best.order), best.kept, index)
                if choice is not None:
                    yield choice

    def _different(
        self, grid: tuple[str, ...], orders: list[tuple[tuple[str, ...], str | None]]
    ) -> Iterator[NestChoice]:
        """The nests of loop orders, each with the reduction that is shared out if any; of equal ones the first."""
        seen: set[object] = set()
        for order, split in orders:
            place = {index: position for position, index in enumerate(order)}
            pairs = [pair for pair in self._nested if place.keys() >= set(pair)]
            # Which of two loops is the outer one matters only where one value needs both.
            nesting = (split, *(place[one] < place[other] for one, other in pairs))
            if nesting not in seen:
                seen.add(nesting)
                choice = self._nests.built(grid, order, frozenset(), split)
                if choice is not None:
                    yield choice

    def _is_shareable(self, index: str) -> bool:
        """Whether processors may share out a loop over an index instead of cells of a grid."""
        may_share = self._machine.target.gpu is None and self._machine.threads > 1
        return may_share and self._indices.is_blocked(index) and any(index in grid for grid in self._loops.grids())

    def _cells(self, choice: NestChoice) -> int:
        """How many cells a choice's grid has."""
        blocks = dict(zip(self._used, choice.blocks, strict=True))
        return prod(-(-self._loops.extent(index) // blocks[index]) for index in choice.grid)

    def _descent(self, best: NestChoice) -> Iterator[NestChoice]:
        """A nest, and others that keep values local, one after another while that helps."""
        gains: dict[Term, float] = {}
        better: NestChoice | None = best
        while better is not None:
            best = better
            yield best
            better = self._keeping_one_more(best, gains)

    def _keeping_one_more(self, best: NestChoice, gains: dict[Term, float]) -> NestChoice | None:
        """The nest with one more value kept local that is fastest; None where that does not help.

        `gains` are what values gained when they were last tried. Hardly any gains more beside others, so once one has
        gained more than the next did, or can by what the nest would do without, the rest need not be tried. Before none
        is found to help all are of which that matters.
        """
        promised = self._promised(best)
        expected = {term: min(most, gains.get(term, inf)) for term, most in promised.items()}
        found: NestChoice | None = None
        for term in sorted(promised, key=lambda term: (-expected[term], term.digest)):
            if found is not None and expected[term] <= best.cost.seconds - found.cost.seconds:
                break
            trial = self._nests.built(best.grid, best.order, best.kept | {term}, best.split)
            if trial is None:
                continue
            if not isinf(best.cost.seconds):
                gains[term] = best.cost.seconds - trial.cost.seconds
            helps = trial.rank < best.rank and trial.cost.seconds <= best.cost.seconds * (1 - KEPT_FOR)
            if helps and (found is None or trial.rank < found.rank):
                found = trial
        return found

    def _promised(self, choice: NestChoice) -> dict[Term, float]:
        """The values that could be kept, with what that may gain; without those of which it cannot matter.

        What does not fit in local memory may by keeping any; of a GPU, which does much at one time, nothing is told.
        """
        options = self._keepable(choice)
        seconds = choice.cost.seconds
        if not options or isinf(seconds) or self._machine.target.gpu is not None:
            return dict.fromkeys(options, inf)
        blocks = dict(zip(self._used, choice.blocks, strict=True))
        extents = {index: self._loops.extent(index) for index in self._used}
        promises = Promises(choice.nest, choice.events, seconds, blocks, extents, self._machine.target)
        promised = {term: promises.of(term) for term in options}
        return {term: most for term, most in promised.items() if most >= seconds * TRIED_FOR}

    def _keepable(self, choice: NestChoice) -> set[Term]:
        """Values computed more than once, and loads repeated within one cell of the grid.

        Where a loop is shared out instead of a grid's cells, only what does not depend on it: the rest is as it was.
        """
        found = (set(choice.nest.recomputed) | self._repeated_loads(choice)) - choice.kept
        is_whole = choice.split is None or choice.split in self._reduced
        return found if is_whole else {term for term in found if choice.split not in term.free}

    def _repeated_loads(self, choice: NestChoice) -> set[Term]:
        places: dict[Term, set[tuple[Loop, ...]]] = {}
        for loops, statement in _with_loops(choice.nest.body, ()):
            for term in {t for t in walk(statement.expression) if isinstance(t, Read) and t.addresses}:
                places.setdefault(term, set()).add(loops)
        return {
            term
            for term, found in places.items()
            if len(found) > 1 or any(self._trips_outside(term, loops, choice) for loops in found)
        }

    def _trips_outside(self, term: Term, loops: tuple[Loop, ...], choice: NestChoice) -> bool:
        blocks = dict(zip(self._used, choice.blocks, strict=True))
        around = [loop.index for loop in loops]
        return any(index not in term.free and self._loops.extent(index) > blocks[index] for index in around)

    def _with_block_sizes(self, choice: NestChoice) -> NestChoice:
        """The choice with the block sizes that descent along one index after another finds."""
        if self._sizes.all_are_tried:
            return choice
        blocks, cost = self._sizes.descended(choice.costs, choice.blocks)
        return replace(choice, blocks=blocks, cost=cost)

    def _notes(self, choice: NestChoice) -> tuple[str, ...]:
        """That a schedule does not fit at all."""
        if not isinf(choice.cost.seconds):
            return ()
        capacity = self._machine.target.local_capacity_bytes
        return (
            f"kernel {self._kernel.name} needs {_kibibytes(choice.cost.local_bytes)} of local memory and the"
            f" target has {_kibibytes(capacity)}: no schedule fits, so blocks spill to global memory",
        )

    def _unkept(self, choice: NestChoice) -> tuple[Unkept, ...]:
        """What would be loaded once if local memory were larger."""
        capacity = self._machine.target.local_capacity_bytes
        needed: dict[str, int] = {}
        for term in self._repeated_loads(choice) - choice.kept if not isinf(choice.cost.seconds) else ():
            kept = self._nests.built(choice.grid, choice.order, choice.kept | {term}, choice.split)
            if kept is not None and isinstance(term, Read):
                _, cost = kept.costs.cheapest(columns([choice.blocks]))
                needed[term.tensor] = max(cost.local_bytes, needed.get(term.tensor, 0))
        return tuple(
            Unkept(self._kernel.name, tensor, size, capacity)
            for tensor, size in sorted(needed.items())
            if size > capacity
        )

    def _finished(self, choice: SizedNest, notes: tuple[str, ...]) -> Scheduled:
        blocks = dict(zip(self._used, choice.blocks, strict=True))
        outputs = tuple(output.tensor for output in self._kernel.outputs)
        body, name = choice.nest.body, self._kernel.name
        kernel = self._kernel_of(name, self._indices, blocks, choice.grid, body, self._tensors, outputs)
        kept = tuple(sorted(term.digest for term in choice.kept))
        made = ScheduleChoice(choice.grid, choice.order, choice.split, kept, tuple(blocks.items()))
        return Scheduled((kernel,), (choice.cost,), made, notes)

    def _kernel_of(
        self,
        name: str,
        table: IndexTable,
        blocks: Mapping[str, int],
        grid: tuple[str, ...],
        body: tuple[Statement, ...],
        tensors: Mapping[str, Tensor],
        writes: tuple[Tensor, ...],
    ) -> Kernel:
        indices = IndexTable.of(
            [
                replace(index, block=blocks[index.name]) if index.block is not None and index.name in blocks else index
                for index in table
            ]
        )
        reads: dict[str, Tensor] = {}
        for _, statement in _with_loops(body, ()):
            for term in walk(statement.expression):
                if isinstance(term, Read):
                    reads.setdefault(term.tensor, tensors[term.tensor])
        extents = {index: self._loops.extent(index) for index in self._may_span}
        whole = spanned(body, grid, self._may_span, blocks, extents)
        return Kernel(name, indices, grid, body, tuple(reads.values()), writes, whole)


def counted(choice: NestChoice) -> NestChoice:
    """The choice with what its narrowed loops visit counted, not sampled."""
    return replace(choice, cost=choice.costs.counted(choice.blocks))


def _kibibytes(count: float) -> str:
    return f"{count / 1024:.0f} KiB"


def _with_loops(
    body: tuple[Statement, ...], loops: tuple[Loop, ...]
) -> Iterator[tuple[tuple[Loop, ...], Let | Update | Store]]:
    """Every statement with an expression, with the loops around it."""
    for statement in body:
        if isinstance(statement, Loop):
            yield from _with_loops(statement.body, (*loops, statement))
        elif not isinstance(statement, Merge | Barrier):
            yield loops, statement
