"""What happens in a built nest that costs: work and traffic, as *events*.

An event has the axes of the blocks on which it acts and the loops around it. It happens once for each block of every
loop, so for given block sizes its total is the product of its axes' extents and of the trip counts of the loops that
are not among its axes. What events cost on a target is for `cost.py` to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from bbrewrite.core.elements import Element
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Apply, Local, Read, Term, is_transpose, untransposed, walk
from bbrewrite.core.types import Typing
from bbrewrite.core.widening import is_widened, unwidened
from bbrewrite.plan.costs.single_rows import SingleRows, single_rows
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
from bbrewrite.plan.masks.visited_share import NarrowedLoop
from bbrewrite.plan.nests.natural_types import NaturalTypes
from bbrewrite.plan.nests.views import views
from bbrewrite.plan.term_costs import COPY_WORK, LAYOUT_WORK, PASS_WORK, body_work


class Event(NamedTuple):
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
    block: Term | None = None  # that is loaded
    is_narrow: bool = False  # a product whose operands are both bf16
    in_passing: bool = False  # a product that packs its right operand in passing, `block` if loaded; or this packing
    rows: str = ""  # of the product in passing of which this packing fetches its operand from afar
    made: str = ""  # what its statement makes: a local block, by name

    def visits(self, index: str) -> bool:
        """Whether another iteration of a loop is another block."""
        return index in self.axes or (self.block is not None and index in self.block.free)

    def is_repeated(self, index: str) -> bool:
        """Whether every iteration of a loop around it loads the same block."""
        return self.block is not None and not self.visits(index)


@dataclass(frozen=True)
class NestEvents:
    """Everything in a nest that costs. Products have axes (rows, columns, contracted)."""

    products: tuple[Event, ...]
    packing: tuple[Event, ...]  # elements that are transposed on the way
    copying: tuple[Event, ...]  # vector instructions for those that are packed as they lie, perhaps in passing
    vector_work: tuple[Event, ...]
    folded_rows: tuple[Event, ...]  # each of them to a number, which takes many lanes to one
    loads: tuple[Event, ...]  # bytes from global memory
    left_operands: tuple[Event, ...]  # bytes of blocks that products take as they lie in a tensor
    stores: tuple[Event, ...]
    merged: tuple[Event, ...]  # bytes of one processor's blocks that a split kernel combines
    kept: tuple[Event, ...]  # bytes written to and read from local lists, but for
    accumulated: tuple[Event, ...]  # those of sums of products
    statements: tuple[Event, ...]
    flops: tuple[Event, ...]  # arithmetic operations, whatever unit does them
    iterations: tuple[Event, ...]  # of loops that visit only some of their blocks
    local_blocks: tuple[LocalBlock, ...]
    tensors: Mapping[str, Tensor]  # those loaded and stored
    single_rows: SingleRows | None  # where nothing is done but to one row after another

    @property
    def is_shared_out(self) -> bool:
        """Whether all processors run the nest together and share out iterations of loops in it."""
        return any(event.shared is not None for event in self.statements)


def summarise(
    body: tuple[Statement, ...],
    grid: tuple[str, ...],
    table: OperatorTable,
    typing: Typing,
    tensors: Mapping[str, Tensor],
) -> NestEvents:
    """The events of a nest."""
    return _Summary(table, typing, tensors).of(body, grid)


def summed(events: Iterable[Event]) -> tuple[Event, ...]:
    """Events that happen in one place, on blocks of one shape, as one: kernels have many statements in few places."""
    alike: dict[object, list[Event]] = {}
    for event in events:
        place = event.loops, event.shared, event.narrowed, event.once
        key = event.axes, place, event.in_passing, event.block, event.rows
        alike.setdefault(key, []).append(event)
    return tuple(
        [
            same[0] if len(same) == 1 else same[0]._replace(amount=sum([event.amount for event in same]))
            for same in alike.values()
        ]
    )


class _Summary:
    def __init__(self, table: OperatorTable, typing: Typing, tensors: Mapping[str, Tensor]) -> None:
        self._table = table
        self._typing = typing
        self._tensors = tensors
        self._products: list[Event] = []
        self._packing: list[Event] = []
        self._copying: list[Event] = []
        self._vector: list[Event] = []
        self._folded_rows: list[Event] = []
        self._loads: list[Event] = []
        self._left_operands: list[Event] = []
        self._stores: list[Event] = []
        self._merged: list[Event] = []
        self._kept: list[Event] = []
        self._accumulated: list[Event] = []
        self._statements: list[Event] = []
        self._flops: list[Event] = []
        self._iterations: list[Event] = []
        self._blocks: dict[str, LocalBlock] = {}
        self._held: dict[str, Read] = {}
        self._body: tuple[Statement, ...] = ()
        self._views: Mapping[str, Read] = {}
        self._touched: dict[str, Tensor] = {}

    def of(self, body: tuple[Statement, ...], grid: tuple[str, ...]) -> NestEvents:
        self._body = body
        self._collect_blocks(body)
        self._views = views(body, self._tensors)
        self._typing = self._typing.with_locals({name: block.type for name, block in self._blocks.items()})
        self._visit(body, _Place(grid))
        return NestEvents(
            tuple(self._products),
            tuple(self._packing),
            tuple(self._copying),
            tuple(self._vector),
            tuple(self._folded_rows),
            tuple(self._loads),
            tuple(dict.fromkeys(self._left_operands)),
            tuple(self._stores),
            tuple(self._merged),
            tuple(self._kept),
            tuple(self._accumulated),
            tuple(self._statements),
            tuple(self._flops),
            tuple(self._iterations),
            tuple(self._blocks.values()),
            MappingProxyType(self._touched),
            None if self._products else single_rows(body, self._table, self._typing),
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
                    combines = isinstance(statement, Update) and statement.combines is not None
                    making = place._replace(made=target.name, combines=combines)
                    if target.name not in self._views:
                        self._vector.append(making.around(target.list_indices).event(PASS_WORK, target.type.axes))
                    self._lists(target, expression, making, loaded)
                    self._statement(expression, making, loaded)
                case Store(tensor, expression):
                    axes = self._typing.block(expression).axes
                    stored = place.around(tensor.indices).event(float(tensor.element.size_bytes), axes)
                    self._stores.append(stored._replace(once=True, tensor=tensor.name))
                    self._touched[tensor.name] = tensor
                    self._lists(None, expression, place, loaded)
                    self._statement(expression, place, loaded)
                case Merge(target, source, _):
                    # Each processor reads the blocks of all; how many there are is known when costs are evaluated.
                    size = float(compute_element(source.type.element).size_bytes)
                    self._merged.append(place.event(size, target.type.axes))
                case Barrier():
                    pass

    def _lists(self, target: LocalBlock | None, expression: Term, place: _Place, loaded: set[Term]) -> None:
        """What a statement reads from and writes to local lists."""
        terms = list(walk(expression))
        lists = [term for term in dict.fromkeys(terms) if isinstance(term, Local) and term.indices]
        moved = [term for term in lists if term not in loaded]
        loaded |= set(lists)
        if target is not None and target.list_indices:
            moved.append(Local(target.name, target.list_indices))
        adds_product = any(isinstance(term, Apply) and term.operator == "dot" for term in terms)
        for block in moved:
            held = self._blocks[block.name]
            size = float(compute_element(held.type.element).size_bytes)
            event = place.around(held.list_indices).event(size, held.type.axes)
            is_sum = adds_product and target is not None and target.name == block.name
            (self._accumulated if is_sum else self._kept).append(event)

    def _statement(self, expression: Term, place: _Place, loaded: set[Term]) -> None:
        self._statements.append(place.event(1.0, ()))
        for term in walk(expression):
            match term:
                case Read(tensor, _):
                    if term not in loaded:
                        loaded.add(term)
                        size = float(self._tensors[tensor].element.size_bytes)
                        loaded_block = place.event(size, self._typing.block(term).axes)
                        self._loads.append(loaded_block._replace(tensor=tensor, block=term))
                        self._touched[tensor] = self._tensors[tensor]
                case Apply():
                    self._operator(term, place)
                case _:
                    pass

    @cached_property
    def _natural(self) -> NaturalTypes:
        return NaturalTypes(self._body, self._typing, self._tensors)

    def _is_narrow(self, left: Term, right: Term) -> bool:
        """Whether the right operand of a product is bf16 from memory, and the left one too or rounded to that."""
        if not self._is_narrow_tensor(right):
            return False
        if self._is_narrow_tensor(left):
            return True
        return not (is_widened(left) or is_widened(right)) and self._natural.element(left) is Element.BF16

    def _is_packed_in_passing(self, right: Term) -> bool:
        """Whether the right operand of a product lies row by row in the type of the product."""
        inner = untransposed(unwidened(right))
        if not is_transpose(unwidened(right)) or not isinstance(inner, Read | Local):
            return False
        element = self._tensors[inner.tensor].element if isinstance(inner, Read) else Element.F32
        return element.is_float and element is element.compute_type

    def _fetched(self, right: Term) -> Read | None:
        """The block of a tensor that is the right operand of a product, if it lies there."""
        inner = untransposed(unwidened(right))
        if isinstance(inner, Local):
            return self._views.get(inner.name)
        return inner if isinstance(inner, Read) else None

    def _is_narrow_tensor(self, operand: Term) -> bool:
        """Whether an operand of a product is bf16 from memory, perhaps held for other uses too."""
        operand = untransposed(unwidened(operand))
        loaded = self._held.get(operand.name) if isinstance(operand, Local) else operand
        return isinstance(loaded, Read) and self._tensors[loaded.tensor].element is Element.BF16

    def _operator(self, term: Apply, place: _Place) -> None:
        operator = self._table.operators[term.operator]
        result = self._typing.block(term)
        if operator.name == "dot":
            rows, contracted = self._typing.block(term.operands[0]).axes
            columns = self._typing.block(term.operands[1]).axes[0]
            product = place.event(2.0, (rows, columns, contracted))
            self._flops.append(product)
            is_narrow = self._is_narrow(*term.operands)
            # Operands of narrow products are packed in pairs of rows.
            in_passing = not is_narrow and self._is_packed_in_passing(term.operands[1])
            fetched = self._fetched(term.operands[1]) if in_passing else None
            self._products.append(product._replace(is_narrow=is_narrow, in_passing=in_passing, block=fetched))
            # The second operand is packed on load, the first written to a block where it is none in memory. Columns
            # that lie side by side are copied; others are transposed on the way.
            if is_transpose(unwidened(term.operands[1])):
                copied = place.event(COPY_WORK, (columns, contracted))._replace(in_passing=in_passing)
                # What is weighed before it is added is packed for the first element and for later ones, and kept.
                is_fetched = fetched is not None and not place.combines
                self._copying.append(copied._replace(rows=rows if is_fetched else ""))
            else:
                self._packing.append(place.event(1.0, (columns, contracted)))
            left = unwidened(term.operands[0])
            if isinstance(left, Read):
                size = float(compute_element(self._typing.block(left).element).size_bytes)
                self._left_operands.append(place.event(size, (rows, contracted))._replace(block=left))
            if not isinstance(left, Read | Local):
                self._vector.append(place.event(PASS_WORK, (rows, contracted)))
            return
        widest = max((self._typing.block(operand).axes for operand in term.operands), key=len, default=())
        axes = widest if operator.fold else result.axes
        if operator.fold and result.axes == widest[:-1]:
            self._folded_rows.append(place.event(1.0, result.axes))
        function = self._table.functions.get(operator.function)
        work = 1.0 if operator.fold else 0.0
        if function is not None:
            work += body_work(self._table, function.body) if function.body else function.work
        if function is not None or operator.fold:
            self._flops.append(place.event(1.0, axes))
        self._vector.append(place.event(work or LAYOUT_WORK / 2, axes))


class _Place(NamedTuple):
    """Where a statement stands: the loops around it, and the one of them whose iterations are shared out."""

    loops: tuple[str, ...]
    shared: str | None = None
    narrowed: tuple[NarrowedLoop, ...] = ()
    made: str = ""
    combines: bool = False  # a statement that adds to one of several states

    def inside(self, loop: Loop) -> _Place:
        narrowed = self.narrowed
        if loop.bounds is not None:
            narrowed = (*narrowed, NarrowedLoop(loop.index, loop.bounds, frozenset(self.loops)))
        # What is shared out among positions of the grid happens once for all of them.
        around = tuple(index for index in self.loops if index != loop.share)
        return _Place((*around, loop.index), loop.index if loop.shared else self.shared, narrowed)

    def around(self, indices: tuple[str, ...]) -> _Place:
        """The place with loops over further indices, which the statement runs over by itself."""
        further = [index for index in indices if index not in self.loops]
        return self._replace(loops=(*self.loops, *further)) if further else self

    def event(self, amount: float, axes: tuple[str, ...]) -> Event:
        return Event(amount, axes, self.loops, self.shared, self.narrowed, made=self.made)
