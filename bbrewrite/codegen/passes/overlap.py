"""Overlaps memory with arithmetic in loops over rows: one row is computed while the next is fetched from memory and the
one before is stored.

Of the passes over a row that fold what an earlier pass has read, the one that computes most does so: the first to read
a row is bound to wait for memory itself. This is an optimisation; the steps mean the same without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bbrewrite.codegen.access import is_row_contiguous
from bbrewrite.codegen.scalars import work_of
from bbrewrite.codegen.steps import (
    Assign,
    ByFirst,
    Fold,
    Product,
    Repeat,
    RowPass,
    Rows,
    Step,
    WhereEmpty,
    leaves_read,
    names_read,
    walk_steps,
)
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Role, Tensor
from bbrewrite.core.terms import Read
from bbrewrite.core.types import Typing
from bbrewrite.plan.kernel import Kernel


def streamable(steps: tuple[Step, ...], kernel: Kernel) -> frozenset[Tensor]:
    """The results that may be stored past the caches: arithmetic, not memory, limits a kernel with products."""
    if any(isinstance(step, Product) for step in walk_steps(steps)):
        return frozenset()
    return frozenset(tensor for tensor in kernel.writes if tensor.role is Role.OUTPUT and tensor not in kernel.reads)


def overlapping(
    steps: tuple[Step, ...],
    indices: IndexTable,
    tensors: Mapping[str, Tensor],
    streamed: frozenset[Tensor],
    typing: Typing,
    table: OperatorTable,
) -> tuple[Step, ...]:
    """The steps with such passes; `streamed` are the results that may be stored past the caches."""
    return _Overlap(indices, tensors, streamed, typing, table).of(steps)


def read_by_the_row_before(steps: tuple[Step, ...]) -> frozenset[str]:
    """The names that steps read which are done for the row before."""
    rows = [step for step in walk_steps(steps) if isinstance(step, Rows)]
    behind = [one.behind for step in rows for one in step.passes if one.behind]
    return frozenset[str]().union(*map(names_read, behind))


@dataclass(frozen=True)
class _Overlap:
    indices: IndexTable
    tensors: Mapping[str, Tensor]
    streamed: frozenset[Tensor]
    typing: Typing
    table: OperatorTable

    def of(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(self._step(step) for step in steps)

    def _step(self, step: Step) -> Step:
        match step:
            case Repeat() | WhereEmpty() | ByFirst():
                return replace(step, body=self.of(step.body))
            case Rows():
                return replace(step, passes=self._passes(step.passes))
            case _:
                return step

    def _passes(self, passes: tuple[RowPass, ...]) -> tuple[RowPass, ...]:
        rows: dict[Read, int] = {}
        for place, one in enumerate(passes):
            for leaf in (leaf for step in one.steps for leaf in leaves_read(step) if isinstance(leaf, Read)):
                if len(self.typing.block(leaf).axes) == 2 and self._is_dense(leaf):
                    rows.setdefault(leaf, place)
        first = max(rows.values(), default=len(passes))
        later = [place for place in range(first + 1, len(passes)) if isinstance(passes[place].steps[-1], Fold)]
        if not later:
            return passes
        busiest = max(later, key=lambda place: self._work(passes[place]))
        (last, *others) = passes[-1].steps
        is_store = isinstance(last, Assign) and not others and last.target in self.streamed
        overlapped = replace(passes[busiest], ahead=tuple(rows), behind=last if is_store else None)
        return (*passes[:busiest], overlapped, *passes[busiest + 1 :])

    def _is_dense(self, leaf: Read) -> bool:
        return is_row_contiguous(leaf, self.tensors[leaf.tensor], self.indices)

    def _work(self, one: RowPass) -> float:
        terms = [step.expression if isinstance(step, Assign) else step.fold for step in one.steps]
        return sum(work_of(term, self.table) for term in terms)
