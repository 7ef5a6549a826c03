"""What a term costs before it has a place: the estimate by which extraction orders candidates.

Each distinct subterm is counted once for every pass over the loops that it needs, as if whatever does not
depend on a loop were always hoisted out of it. Scheduling later finds what is really possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil, prod

from bbrewrite.core.elements import Element
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Apply, Cast, Read, Reduce, Term, is_transpose, untransposed
from bbrewrite.core.types import Typing
from bbrewrite.core.widening import unwidened
from bbrewrite.plan.costs.totals import Cost
from bbrewrite.plan.machine import Machine
from bbrewrite.plan.target import Target

# Copying a block, in vector instructions for one vector.
COPY_WORK = 2.0
# Writing a block to local memory and reading it back, likewise.
PASS_WORK = 3.0
# Products of no more rows than this read their right operand as it lies.
FEW_ROWS = 16
# Blocks of products are no larger than this.
LARGEST_BLOCK = 768
# A layout change moves every element once through local memory.
LAYOUT_WORK = 1.0
# Folding the lanes of a row into one number takes a processor about this long, however short the row.
ROW_SECONDS = 5.0e-9
# Rounding costs nothing, but a value that need not be rounded must not be: it may serve where more is wanted.
ROUNDING_SECONDS = 1e-9


class TermCosts:
    """Seconds, on some processors of a target, for evaluating single operators over all their indices.

    `tensors` are all that terms read, lists in global memory among them.
    """

    def __init__(
        self,
        table: OperatorTable,
        indices: IndexTable,
        tensors: Mapping[str, Tensor],
        machine: Machine,
    ) -> None:
        self._table = table
        self.indices = indices
        self._tensors = tensors
        self._machine = machine
        self._target = machine.target
        self._threads = machine.threads
        self._typing = Typing(table, indices, tensors)
        self._points_of: dict[frozenset[str], float] = {}

    def extent(self, index: str) -> int:
        """The extent of an index, which must be known by now."""
        extent = self.indices.extent(index)
        assert extent is not None, index
        return extent

    def evaluation(self, term: Term) -> float:
        """One operator over every combination of the indices on which its value depends."""
        match term:
            case Apply():
                return self._points(term) * self.work_seconds(term)
            case Reduce():
                return self._points(term) * self._vector_seconds(1.0)
            case Read(tensor):
                return self._traffic(self._tensors[tensor], term.free)
            case Cast():
                return ROUNDING_SECONDS
            case _:
                return 0.0

    def kept(self, term: Term) -> float:
        """Keeping every value of a term in local memory for a later pass, and reading it back there."""
        return 0.0 if isinstance(term, Read) else self._points(term) * self._vector_seconds(PASS_WORK)

    def least(self, term: Term) -> float:
        """What no schedule undercuts for one operator: it runs once on each of its blocks, however large they are."""
        match term:
            case Apply(operator) if operator == "dot":
                return self._least_product(term)
            case Apply():
                axes = self._axes(term)
                work = self._least_points(term, axes) * self._least_work(term) * self._least_padding(axes)
                return work + self._least_folding(term, axes)
            case Reduce():
                return self._least_accumulation(term)
            case Read():
                return self.evaluation(term)
            case _:
                return 0.0

    def _least_product(self, term: Apply) -> float:
        """Multiply-adds at full rate, and bringing the second operand into order. One that lies row by row is fetched
        in passing: of both times the longer one counts.
        """
        _, columns, contracted = axes = self._axes(term)
        target = self._target
        multiplying = self._multiplying(term, axes)
        right = unwidened(term.operands[1])
        source = untransposed(right)
        is_read = isinstance(source, Read)
        as_it_lies = is_transpose(right) and not (is_read and self._is_widened(source))
        if as_it_lies and target.gpu is None:
            return multiplying - (min(multiplying, self.evaluation(source)) if is_read else 0.0)
        packing = COPY_WORK if is_transpose(right) else target.packing_operations
        return multiplying + self._least_points(term, (columns, contracted)) * self._vector_seconds(packing)

    def _is_widened(self, read: Read) -> bool:
        element = self._tensors[read.tensor].element
        return element is not element.compute_type

    def _least_accumulation(self, term: Reduce) -> float:
        """Each block of a sum of products is read and written once for each block of the contracted index."""
        operand = self._summed_product(term)
        if operand is None:
            return 0.0
        rows, columns, contracted = self._axes(operand)
        is_single = self.extent(rows) == 1  # blocks of such products may be of any length
        trips = 1 if is_single else ceil(self.extent(contracted) / self._largest_block(contracted))
        return trips * self._least_points(term, (rows, columns)) * self._vector_seconds(PASS_WORK)

    def _summed_product(self, term: Term) -> Apply | None:
        """The product of which a term is the sum over the contracted index, with nothing besides."""
        if not isinstance(term, Reduce):
            return None
        operand, *others = term.operands
        if others or not (isinstance(operand, Apply) and operand.operator == "dot"):
            return None
        return operand if self._axes(operand)[-1] == term.index else None

    def least_wait(self, term: Term) -> tuple[Read, float] | None:
        """The right operand that a sum of products fetches in passing, and what no schedule undercuts of the time that
        it is waited for: once for each block of rows; or it is kept local, which takes copying it once, and loading it
        ahead of the product. What several sums fetch may be kept for all.
        """
        product = self._summed_product(term)
        right = None if product is None else unwidened(product.operands[1])
        source = None if right is None or not is_transpose(right) else untransposed(right)
        if product is None or not isinstance(source, Read) or not self._lies_as_multiplied(source):
            return None
        rows, columns, contracted = axes = self._axes(product)
        work = fetching_work(self._target, *map(self.extent, axes))
        points = self._least_points(product, (columns, contracted))
        times = ceil(self.extent(rows) / self._largest_block(rows))
        hidden = min(self._multiplying(product, axes), self.evaluation(source))
        kept = points * self._vector_seconds(PASS_WORK) + hidden
        return source, min(times * points * self._vector_seconds(work), kept)

    def _lies_as_multiplied(self, read: Read) -> bool:
        """Whether a tensor has the type in which products of it are made."""
        element = self._tensors[read.tensor].element
        return element.is_float and element is element.compute_type

    def _multiplying(self, product: Apply, axes: tuple[str, ...]) -> float:
        """Multiply-adds at full rate."""
        rate = self._target.matrix_flops_per_second * self._threads
        if all(self._typing.block(operand).element is Element.BF16 for operand in product.operands):
            rate *= self._target.narrow_product_rate
        return self._least_points(product, axes) * 2.0 / rate

    def _largest_block(self, index: str) -> int:
        known = self.indices[index]
        return known.block if known.block is not None and known.block_is_fixed else LARGEST_BLOCK

    def _axes(self, term: Apply) -> tuple[str, ...]:
        """The axes along which an operator works; of a product rows, columns and contracted."""
        operands = [self._typing.block(operand).axes for operand in term.operands]
        operator = self._table.operators[term.operator]
        if operator.name == "dot":
            rows, contracted = operands[0]
            return (rows, operands[1][0], contracted)
        return max(operands, key=len, default=()) if operator.fold else self._typing.block(term).axes

    def _least_work(self, term: Apply) -> float:
        operator = self._table.operators[term.operator]
        work = 1.0 if operator.fold else 0.0
        if operator.function in self._table.functions:
            work += self.function_work(operator.function)
        return self._vector_seconds(work or LAYOUT_WORK / 2)

    def _least_folding(self, term: Apply, axes: tuple[str, ...]) -> float:
        """Folding each row to a number."""
        folds_rows = self._table.operators[term.operator].fold and self._typing.block(term).axes == axes[:-1]
        is_paid = folds_rows and self._target.gpu is None
        return self._least_points(term, axes[:-1]) * ROW_SECONDS / self._threads if is_paid else 0.0

    def _least_padding(self, axes: tuple[str, ...]) -> float:
        """By how much longer it takes at least, since rows of matrices are worked on in whole vectors."""
        if len(axes) < 2 or self._target.gpu is not None:
            return 1.0
        return max(1.0, self._target.vector_lanes / max(1, self.extent(axes[1])))

    def _least_points(self, term: Term, axes: tuple[str, ...]) -> float:
        points = [index for index in term.free if not self.indices.is_blocked(index)]
        return prod(self.extent(index) for index in {*axes, *points})

    def store(self, tensor: Tensor) -> float:
        """The store of one list."""
        return self._traffic(tensor, tensor.indices)

    def operations(self, term: Apply) -> float:
        """The arithmetic operations of an operator that runs once on each of its blocks."""
        operator = self._table.operators[term.operator]
        each = 2 if operator.name == "dot" else int(bool(operator.fold) or operator.function in self._table.functions)
        return each * self._least_points(term, self._axes(term))

    def bytes_read(self, read: Read) -> int:
        """The bytes of every element that is read."""
        return self._bytes(self._tensors[read.tensor], read.free)

    def moving(self, costs: Iterable[Cost]) -> float:
        """What kernels move, at the rates of the memory from which it comes, as far as they move it side by side."""
        return sum(
            moved / self._threads * self._target.tier_seconds_per_byte(tier, self._threads)
            for cost in costs
            for tier, moved in zip(self._target.shared_tiers, cost.tier_bytes, strict=True)
        )

    def _traffic(self, tensor: Tensor, indices: Iterable[str]) -> float:
        """One load or store of every element of a tensor, or of those over some indices."""
        size = self._bytes(tensor, indices)
        return size / self._threads * self._machine.seconds_per_byte(tensor, self.indices)

    def _bytes(self, tensor: Tensor, indices: Iterable[str]) -> int:
        return prod(self.extent(index) for index in indices) * tensor.element.size_bytes

    @property
    def launch(self) -> float:
        return self._target.launch_seconds

    def work_seconds(self, term: Apply) -> float:
        """The work of an operator on one element (for `dot`, one multiply-add)."""
        operator = self._table.operators[term.operator]
        if operator.name == "dot":
            return 2.0 / (self._target.matrix_flops_per_second * self._threads)
        function = self._table.functions.get(operator.function)
        return self._vector_seconds(self.function_work(function.name) if function else LAYOUT_WORK)

    def function_work(self, name: str) -> float:
        """Vector instructions for one vector of a scalar function; a user's function costs its body."""
        function = self._table.functions[name]
        return body_work(self._table, function.body) if function.body else function.work

    def _points(self, term: Term) -> float:
        if term.free not in self._points_of:
            self._points_of[term.free] = prod(self.extent(index) for index in term.free)
        return self._points_of[term.free]

    def _vector_seconds(self, work: float) -> float:
        rate = self._target.vector_operations_per_second * self._target.vector_lanes
        return work / (rate * self._threads)


def fetching_work(target: Target, rows: int, columns: int, contracted: int) -> float:
    """The vector instructions, for each vector of its right operand, that a product of these extents waits for while it
    fetches that operand in passing. One that fits whole in local memory is soon there.
    """
    size = columns * contracted * Element.F32.size_bytes
    is_near = rows <= FEW_ROWS or size <= target.local_capacity_bytes
    return 0.0 if is_near or target.gpu is not None else target.fetching_operations


def body_work(table: OperatorTable, body: Term) -> float:
    """The work of a user's function: that of all operators in its body."""
    own = 0.0
    if isinstance(body, Apply):
        function = table.functions[table.operators[body.operator].function]
        own = body_work(table, function.body) if function.body else function.work
    return own + sum(body_work(table, child) for child in body.children)
