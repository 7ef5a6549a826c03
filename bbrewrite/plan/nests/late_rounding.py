"""Rounds once what is computed from sums.

A sum of f32 blocks is held as f64, and its users take it rounded to f32. Where a user is itself a vector or a number,
such as a mean that divides the sum, it is computed as f64 and rounded in the sum's stead. Comparisons stay as they are:
what is zero for the blocks at hand is zero. Matrices are not widened. Casts that a program asks for are not touched.
"""

from __future__ import annotations

from bbrewrite.core.elements import Element
from bbrewrite.core.terms import Apply, Cast, Term, rewrite_bottom_up
from bbrewrite.core.types import Typing


def rounded_late(expression: Term, roundings: frozenset[Cast], typing: Typing) -> Term:
    """The expression with these roundings moved towards its value."""
    moving: set[Term] = set(roundings)

    def change(node: Term) -> Term:
        if not isinstance(node, Apply) or moving.isdisjoint(node.operands):
            return node
        found = typing.block(node)
        wide = node.with_children(tuple(o.value if isinstance(o, Cast) and o in moving else o for o in node.operands))
        if len(found.axes) > 1 or found.element is None or typing.block(wide).element is not Element.F64:
            return node
        rounded = Cast(found.element.compute_type.value, wide)
        moving.add(rounded)
        return rounded

    return rewrite_bottom_up(expression, change)
