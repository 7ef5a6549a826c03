"""Prints which blocks a loop visits, for people: `from first(m) - 255 to last(m)`."""

from __future__ import annotations

from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.printing import print_term
from bbrewrite.core.terms import IndexValue, Size, Term
from bbrewrite.plan.masks.visible import (
    ALWAYS,
    AllOf,
    AnyOf,
    Bound,
    Condition,
    Floored,
    Linear,
    LoopBounds,
    Nonnegative,
    Outermost,
    Quotient,
)


def print_bounds(bounds: LoopBounds, table: OperatorTable) -> str:
    """What follows the loop's index; empty for a loop over all blocks."""
    text = f" from {_bound(bounds.begin, table)}" if bounds.begin else ""
    text += f" up to {_bound(bounds.end, table)}" if bounds.end else ""
    return text + (f" where possibly {_condition(bounds.test, table, False)}" if bounds.test != ALWAYS else "")


def _bound(bound: Bound, table: OperatorTable) -> str:
    match bound:
        case Quotient(linear, greatest, divisor):
            text = _sum(linear, table, greatest)
            return text if divisor == 1 else f"({text}) / {divisor}"
        case Outermost(positions, greatest):
            return f"{'max' if greatest else 'min'}({', '.join(_bound(inner, table) for inner in positions)})"


def _condition(condition: Condition, table: OperatorTable, is_inner: bool = True) -> str:
    match condition:
        case Nonnegative(linear):
            left = Linear(tuple(part for part in linear.parts if part[1] > 0), max(linear.offset, 0))
            right = Linear(tuple((leaf, -c) for leaf, c in linear.parts if c < 0), max(-linear.offset, 0))
            return f"{_sum(left, table)} >= {_sum(right, table)}"
        case AllOf(conditions) | AnyOf(conditions):
            word = " and " if isinstance(condition, AllOf) else " or "
            text = word.join(_condition(inner, table) for inner in conditions)
            return f"({text})" if is_inner else text


def _sum(linear: Linear, table: OperatorTable, greatest: bool | None = None) -> str:
    """A form; with `greatest` given, leaves are named by the end of their range that is meant."""
    text = ""
    for leaf, coefficient in linear.parts:
        leaf_text = _leaf(leaf, table, None if greatest is None else greatest == (coefficient > 0))
        factor = leaf_text if abs(coefficient) == 1 else f"{abs(coefficient)} * {leaf_text}"
        text += (f" - {factor}" if text else f"-{factor}") if coefficient < 0 else (f" + {factor}" if text else factor)
    if linear.offset or not text:
        text += f" {'-' if linear.offset < 0 else '+'} {abs(linear.offset)}" if text else str(linear.offset)
    return text


def _leaf(leaf: Term, table: OperatorTable, last: bool | None) -> str:
    if isinstance(leaf, Floored):
        inner = _sum(leaf.linear, table, last)
        return f"floor({f'({inner})' if ' ' in inner else inner} / {leaf.divisor})"
    text = print_term(leaf, table)
    if last is None or isinstance(leaf, Size):
        return text
    names = ("first", "last") if isinstance(leaf, IndexValue) else ("least", "greatest")
    return f"{names[last]}({text})"
