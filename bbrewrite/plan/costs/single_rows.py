"""Nests in which nothing is done but to one row after another: generated code goes over a row from the first step to
the last before it takes the next, and keeps no more of a block than the row at hand and the one before. Which nests
these are, and how much memory their blocks take; merging the loops over rows is for `codegen/passes/rows.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.terms import Apply, Term, walk
from bbrewrite.core.types import Typing
from bbrewrite.plan.kernel import Barrier, Let, Loop, Merge, Statement, Store, Update, walk_statements
from bbrewrite.plan.scheduling.spanning import AT_ONCE

# What is kept of a block: the row at hand, and the one before while it is stored.
_ROWS_KEPT = 2


@dataclass(frozen=True)
class SingleRows:
    """The axis of the rows, and the indices along which blocks must span the whole extent, so that no loop is left."""

    axis: str
    along: frozenset[str]


def single_rows(body: tuple[Statement, ...], table: OperatorTable, typing: Typing) -> SingleRows | None:
    """The rows that a nest goes over one by one where blocks span their whole length; None where it does anything else.
    `typing` knows the nest's local blocks.
    """
    firsts: set[str] = set()
    along: set[str] = set()
    for statement in walk_statements(body):
        match statement:
            case Loop():
                if statement.bounds is not None or statement.shared:
                    return None
                along.add(statement.index)
                continue
            case Let(target, expression) | Update(target, expression):
                axes = target.type.axes
            case Store(_, expression):
                axes = typing.block(expression).axes
            case Merge() | Barrier():
                return None
        firsts |= set(axes[:1])
        if len(firsts) > 1 or not _is_by_rows(expression, table, typing):
            return None
    return SingleRows(firsts.pop(), frozenset(along)) if firsts and firsts.isdisjoint(along) else None


def _is_by_rows(expression: Term, table: OperatorTable, typing: Typing) -> bool:
    """Whether an expression needs of every block just the row that it makes."""
    for term in walk(expression):
        if isinstance(term, Apply):
            operands = [typing.block(operand).axes for operand in term.operands]
            result = typing.block(term).axes
            if table.operators[term.operator].fold:
                if len(operands) != 1 or len(operands[0]) != 2 or result != operands[0][:1]:
                    return False
            elif any(len(own) == 2 and own != result for own in operands):
                return False
    return True


class KeptRows:
    """How much of the local blocks that have these `axes` there is memory for, as a function of block sizes."""

    def __init__(
        self,
        rows: SingleRows | None,
        axes: Iterable[tuple[str, ...]],
        column: Mapping[str, int],
        extents: Mapping[str, int],
        indices: IndexTable,
    ) -> None:
        if rows and not all(extents[name] >= AT_ONCE and not indices[name].block_is_fixed for name in rows.along):
            rows = None
        self._row = column[rows.axis] if rows else None
        self._along = [column[name] for name in rows.along] if rows else []
        self._have_rows = np.array([[len(own) > 1] for own in axes], dtype=np.bool_).reshape(-1, 1)

    def shares(self, spans: NDArray[np.float64], trips: NDArray[np.float64]) -> NDArray[np.float64] | float:
        """The share of each block for each choice of block sizes."""
        if self._row is None:
            return 1.0
        is_single = self._have_rows & np.all(trips[self._along] == 1, axis=0)
        return np.where(is_single, np.minimum(1.0, _ROWS_KEPT / spans[self._row]), 1.0)
