"""Overlaps memory with arithmetic in loops over rows: one row is computed while the next is fetched from memory and the
one before is stored.

All passes that fold a long row share this out by the time that they take, so that memory is never idle: a pass that
only reads what is in the nearest cache already would leave it so for as long as it takes. Of short rows the last such
pass does it all: what the row before is stored by has just been computed, and an earlier pass would wait for it. This
is an optimisation; the steps mean the same without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from bbrewrite.codegen.access import is_row_contiguous
from bbrewrite.codegen.passes.rows import is_long
from bbrewrite.codegen.scalars import constant_entry, work_of
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
    """The results that may be stored past the caches, row by row, where rows lie dense: arithmetic, not memory, limits
    a kernel with products.
    """
    if any(isinstance(step, Product) for step in walk_steps(steps)):
        return frozenset()
    return frozenset(
        tensor
        for tensor in kernel.writes
        if tensor.role is Role.OUTPUT
        and tensor not in kernel.reads
        and any(map(kernel.indices.is_blocked, tensor.indices[-1:]))
    )


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


def one_after_another(rows: Rows) -> Rows:
    """The loop without what goes on beside its passes."""
    return replace(rows, passes=tuple(RowPass(one.steps) for one in rows.passes), ahead=(), behind=None)


def read_by_the_row_before(steps: tuple[Step, ...]) -> frozenset[str]:
    """The names that steps read which are done for the row before."""
    rows = [step for step in walk_steps(steps) if isinstance(step, Rows)]
    return frozenset[str]().union(*(names_read(step.behind) for step in rows if step.behind))


# Vector instructions that take as long as reading, fetching and storing one vector of a row.
_READING = 3.0


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
                return self._rows(step)
            case _:
                return step

    def _rows(self, rows: Rows) -> Rows:
        reads: dict[Read, int] = {}
        for place, one in enumerate(rows.passes):
            for leaf in (leaf for step in one.steps for leaf in leaves_read(step) if isinstance(leaf, Read)):
                axes = self.typing.block(leaf).axes
                if len(axes) == 2 and axes[0] == rows.axis and self._is_dense(leaf):
                    reads.setdefault(leaf, place)
        first = max(reads.values(), default=len(rows.passes))
        folds = [place for place, one in enumerate(rows.passes) if place >= first and _folds_entries(one)]
        (last, *others) = rows.passes[-1].steps
        is_store = isinstance(last, Assign) and not others and last.target in self.streamed
        if len(folds) + is_store < 2:
            return rows
        times = [self._work(rows.passes[place]) + _READING for place in folds]
        are_long = any(is_long(self.typing.block(leaf).axes[1], self.indices) for leaf in reads)
        quarters = _shared_out(times) if are_long else [4 * (place == folds[-1]) for place in folds]
        passes = list(rows.passes)
        for place, share in zip(folds, quarters, strict=True):
            passes[place] = replace(passes[place], quarters=share)
        return replace(rows, passes=tuple(passes), ahead=tuple(reads), behind=last if is_store else None)

    def _is_dense(self, leaf: Read) -> bool:
        return is_row_contiguous(leaf, self.tensors[leaf.tensor], self.indices)

    def _work(self, one: RowPass) -> float:
        terms = [step.expression if isinstance(step, Assign) else step.fold for step in one.steps]
        return sum(work_of(term, self.table) for term in terms)


def _folds_entries(one: RowPass) -> bool:
    """Whether a pass goes over a row: how many entries there are needs none."""
    last = one.steps[-1]
    return isinstance(last, Fold) and constant_entry(last.fold.operands[0]) is None


def _shared_out(times: list[float]) -> list[int]:
    """Quarters for passes that take these times."""
    done = [round(4 * sum(times[:number]) / sum(times)) for number in range(len(times) + 1)]
    return [after - before for before, after in pairwise(done)]
