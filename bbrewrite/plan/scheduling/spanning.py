"""Blocks that span a whole extent, however long: along which indices they may, and along which a nest's do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.terms import Apply, Term
from bbrewrite.core.types import Typing
from bbrewrite.plan.kernel import Loop, Statement, walk_statements

# The entries of a row that are worked on at once, where vectors are widest. For shorter rows compilers make better code
# where they know how long these may be, and the steps for one wait for each other: there is little to do meanwhile.
AT_ONCE = 64


def may_span(terms: Iterable[Term], indices: IndexTable, table: OperatorTable, typing: Typing) -> frozenset[str]:
    """The indices along which nothing runs but rows, entry by entry or folded: a product works on register tiles, and
    a fold of rows into one has an accumulator for each column.
    """
    tiled: set[str] = set()
    for term in terms:
        if isinstance(term, Apply) and table.operators[term.operator].fold:
            axes = [typing.block(operand).axes for operand in term.operands]
            if term.operator == "dot":
                tiled |= {axis for own in axes for axis in own}
            elif typing.block(term).axes == axes[0][1:]:
                tiled |= set(axes[0][1:])
    return frozenset(i.name for i in indices if i.block and not i.block_is_fixed and i.name not in tiled)


def of_single_rows(terms: Iterable[Term], typing: Typing, extent: Callable[[str], int]) -> frozenset[str]:
    """The columns of products of a single row, where no other product runs along them. Such a product has no register
    tiles: it reads its other operand by whole rows of a block, and memory serves long runs best.
    """
    tiled: set[str] = set()
    streamed: set[str] = set()
    for term in terms:
        if isinstance(term, Apply) and term.operator == "dot":
            (rows, contracted), (columns, _) = (typing.block(operand).axes for operand in term.operands)
            if extent(rows) == 1:
                streamed.add(columns)
            else:
                tiled |= {rows, contracted, columns}
    return frozenset(streamed - tiled)


def spanned(
    body: tuple[Statement, ...],
    grid: tuple[str, ...],
    candidates: frozenset[str],
    blocks: Mapping[str, int],
    extents: Mapping[str, int],
) -> frozenset[str]:
    """Those of the candidates whose only block is the whole extent, in loops that visit all of it; none where that is
    short.
    """
    loops = [statement for statement in walk_statements(body) if isinstance(statement, Loop)]
    partly = {loop.index for loop in loops if loop.bounds is not None or loop.shared}
    looped = {loop.index for loop in loops} - partly - set(grid)
    return frozenset(name for name in candidates & looped if blocks[name] == extents[name] >= AT_ONCE)
