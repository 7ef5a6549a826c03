"""The nests of one kernel whatever its extents are, with what happens in them: each built, narrowed and listed once.

Only what a nest costs depends on extents. Layers of a large program often have kernels that differ in nothing else;
what was built for the last few kernels is kept for them. So nothing here, nor anything that it calls, may read an
extent of the problem at hand: they are those of the first kernel of its shape. That two are equal is part of the shape.
"""

from __future__ import annotations

from dataclasses import replace

from bbrewrite.core.terms import Read, Term
from bbrewrite.core.types import Typing
from bbrewrite.plan.costs.events import NestEvents, summarise
from bbrewrite.plan.kernel import Statement
from bbrewrite.plan.masks.narrowing import Narrowing, may_narrow, with_ranges_only
from bbrewrite.plan.nests.naming import Naming, name_values
from bbrewrite.plan.nests.nest import Nest, NestBuilder
from bbrewrite.plan.scheduling.problem import ScheduleProblem
from bbrewrite.plan.scheduling.split import share_out, split_reduction

# Nests of a large kernel take megabytes.
SHAPES_KEPT = 32


class ShapedNests:
    """Builds nests of a kernel, and lists what happens in them."""

    def __init__(self, problem: ScheduleProblem) -> None:
        self._kernel = problem.kernel
        self._table = problem.table
        self._tensors = problem.tensors
        self._reduced = problem.reduced
        self._has_ranges_only = problem.machine.target.gpu is not None
        self._typing = Typing(problem.table, problem.indices, problem.tensors)
        is_narrowable = may_narrow(iter(problem.terms), self._typing)
        self._narrowing = Narrowing(problem.table, self._typing, problem.tensors) if is_narrowable else None
        self._named: dict[frozenset[Term], Naming] = {}
        # The same choices are asked for again; different ones often come to one nest.
        self._built: dict[object, Nest | None] = {}
        self._narrowed: dict[tuple[tuple[str, ...], tuple[Statement, ...]], tuple[Statement, ...]] = {}
        self._events: dict[tuple[tuple[str, ...], tuple[Statement, ...]], NestEvents] = {}

    def nest(
        self, grid: tuple[str, ...], order: tuple[str, ...], kept: frozenset[Term], split: str | None
    ) -> Nest | None:
        """The nest of these choices with its loops narrowed, and one shared out; None where that cannot be."""
        choices = (grid, order, kept, split)
        if choices not in self._built:
            self._built[choices] = self._made(*choices)
        return self._built[choices]

    def events(self, grid: tuple[str, ...], body: tuple[Statement, ...]) -> NestEvents:
        """What happens in a nest's statements."""
        key = (grid, body)
        if key not in self._events:
            self._events[key] = summarise(body, grid, self._table, self._typing, self._tensors)
        return self._events[key]

    def _made(
        self, grid: tuple[str, ...], order: tuple[str, ...], kept: frozenset[Term], split: str | None
    ) -> Nest | None:
        if kept not in self._named:
            self._named[kept] = name_values(self._kernel, kept, self._table)
        nest = NestBuilder(self._kernel, self._named[kept], kept, order, grid, self._table, self._typing).build()
        body = nest.body
        if self._narrowing is not None:
            if (grid, body) not in self._narrowed:
                narrowed = self._narrowing.of(body, grid)
                self._narrowed[grid, body] = with_ranges_only(narrowed) if self._has_ranges_only else narrowed
            body = self._narrowed[grid, body]
        if split is not None:
            is_reduced = split in self._reduced
            shared = split_reduction(body, split, nest.accumulators) if is_reduced else share_out(body, split)
            if shared is None:
                return None
            body = shared
        return replace(nest, body=body)


class KnownNests:
    """The nests of the kernels that were asked for last, by all of them but extents."""

    def __init__(self) -> None:
        self._of_shape: dict[object, ShapedNests] = {}  # the last one at the end

    def __getstate__(self) -> dict[str, object]:
        # Other processes have kernels of their own.
        return {"_of_shape": {}}

    def of(self, problem: ScheduleProblem) -> ShapedNests:
        """The nests of a problem's kernel. All problems are of one target and operator table."""
        read = {term.tensor: problem.tensors[term.tensor] for term in problem.terms if isinstance(term, Read)}
        shape = (problem.kernel, tuple(read.values()), problem.indices.shape)
        nests = self._of_shape.pop(shape, None) or ShapedNests(problem)
        self._of_shape[shape] = nests
        if len(self._of_shape) > SHAPES_KEPT:
            del self._of_shape[next(iter(self._of_shape))]
        return nests
