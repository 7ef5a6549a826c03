"""What a term costs before it has a place: the estimate by which extraction orders candidates.

Each distinct subterm is counted once for every pass over the loops that it needs, as if whatever does not
depend on a loop were always hoisted out of it. Scheduling later finds what is really possible.
"""

from __future__ import annotations

from math import prod

from bbrewrite.core.elements import Element
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Apply, Cast, Read, Reduce, Term
from bbrewrite.plan.target import Target

# A layout change moves every element once through local memory.
LAYOUT_WORK = 1.0
# Rounding costs nothing, but a value that need not be rounded must not be: it may serve where more is wanted.
ROUNDING_SECONDS = 1e-9


class TermCosts:
    """Seconds, on all processors of a target, for evaluating single operators over all their indices."""

    def __init__(self, table: OperatorTable, indices: IndexTable, tensors: dict[str, Tensor], target: Target) -> None:
        self._table = table
        self.indices = indices
        self._tensors = tensors
        self._target = target

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
                return self.traffic(tuple(sorted(term.free)), self._tensors[tensor].element)
            case Cast():
                return ROUNDING_SECONDS
            case _:
                return 0.0

    def traffic(self, indices: tuple[str, ...], element: Element) -> float:
        """One load or store of every element over these indices, from or to global memory."""
        elements = prod(self.extent(index) for index in indices)
        return elements * element.size_bytes / self._target.global_bytes_per_second

    @property
    def launch(self) -> float:
        return self._target.launch_seconds

    def work_seconds(self, term: Apply) -> float:
        """The work of an operator on one element (for `dot`, one multiply-add)."""
        operator = self._table.operators[term.operator]
        if operator.name == "dot":
            return 2.0 / (self._target.matrix_flops_per_second * self._target.processors)
        function = self._table.functions.get(operator.function)
        return self._vector_seconds(self.function_work(function.name) if function else LAYOUT_WORK)

    def function_work(self, name: str) -> float:
        """Vector instructions for one vector of a scalar function; a user's function costs its body."""
        function = self._table.functions[name]
        return body_work(self._table, function.body) if function.body else function.work

    def _points(self, term: Term) -> float:
        return prod(self.extent(index) for index in term.free)

    def _vector_seconds(self, work: float) -> float:
        rate = self._target.vector_operations_per_second * self._target.vector_lanes
        return work / (rate * self._target.processors)


def body_work(table: OperatorTable, body: Term) -> float:
    """The work of a user's function: that of all operators in its body."""
    own = 0.0
    if isinstance(body, Apply):
        function = table.functions[table.operators[body.operator].function]
        own = body_work(table, function.body) if function.body else function.work
    return own + sum(body_work(table, child) for child in body.children)
