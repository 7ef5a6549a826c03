"""Conditions on positions as bounds of the columns of a row: `m - n < 256` says that n begins at m - 255.

A bound is computed once a row, in 64 bits as positions are, and then cut to the 32 bits in which the columns of a block
are counted: twice as many comparisons fit into a vector, and as many as there are floats. Only the comparison of one
column with what does not change along the row becomes a bound; any other condition is evaluated entry by entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bbrewrite.codegen.scope import KernelScope, Position, signed_product
from bbrewrite.core.terms import Apply, IndexValue, Size, Term
from bbrewrite.core.types import Typing
from bbrewrite.plan.masks.linear_conditions import linear_condition
from bbrewrite.plan.masks.visible import Nonnegative


@dataclass(frozen=True)
class ColumnBound:
    """`column RELATION bound`; the bound changes with the row if it `has_row`."""

    column: str
    relation: str
    bound: str
    has_row: bool


def column_bound(
    condition: Term, places: Mapping[str, Position], typing: Typing, scope: KernelScope
) -> ColumnBound | None:
    """The condition as a bound, if it is one. `places` has the place in its block of each index of the condition."""
    # Of `and` a linear condition has only what is known, which is enough to skip blocks and not enough here.
    found = linear_condition(condition, True, typing) if _is_one_comparison(condition) else None
    if not isinstance(found, Nonnegative):
        return None
    columns = [
        (leaf.index, factor)
        for leaf, factor in found.linear.parts
        if isinstance(leaf, IndexValue) and leaf.index in places and places[leaf.index].depth == 2
    ]
    others = [(leaf, factor) for leaf, factor in found.linear.parts if (_index(leaf), factor) not in columns]
    if (
        len(columns) != 1
        or abs(columns[0][1]) != 1
        or any(not isinstance(leaf, IndexValue | Size) for leaf, _ in others)
    ):
        return None
    (name, sign), index = columns[0], scope.index(columns[0][0])
    if name in scope.whole:
        return None  # it may have any number of columns
    # sign * (start + column) + rest >= 0
    parts = [signed_product(-sign * factor, _value(leaf, places, scope)) for leaf, factor in others]
    offset = -sign * found.linear.offset
    parts += [f"{'-' if offset < 0 else '+'} {abs(offset)}"] if offset else []
    text = " ".join([*parts, f"- {index.start}"]).removeprefix("+ ")
    text = f"-{text[2:]}" if text.startswith("- ") else text
    has_row = any(isinstance(leaf, IndexValue) and leaf.index in places for leaf, _ in others)
    return ColumnBound(places[name].variable, ">=" if sign > 0 else "<=", text, has_row)


def _is_one_comparison(condition: Term) -> bool:
    while isinstance(condition, Apply) and condition.operator in {"not", "row_spread", "col_spread"}:
        (condition,) = condition.operands
    return isinstance(condition, Apply) and condition.operator not in {"and", "or"}


def _index(leaf: Term) -> str:
    return leaf.index if isinstance(leaf, IndexValue) else ""


def _value(leaf: Term, places: Mapping[str, Position], scope: KernelScope) -> str:
    if isinstance(leaf, Size):
        return scope.size(leaf.index)
    assert isinstance(leaf, IndexValue)
    index = scope.index(leaf.index)
    return index.position(places[leaf.index].variable) if leaf.index in places else index.number
