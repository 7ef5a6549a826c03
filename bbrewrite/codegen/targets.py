"""What both generators ask of a statement that is taken apart: the terms of its sum, and where its target lies."""

from __future__ import annotations

from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Apply, Term
from bbrewrite.core.types import Typing
from bbrewrite.plan.kernel import LocalBlock


def addends_of(term: Term, typing: Typing) -> list[Term]:
    """The terms of a sum, from left to right; only blocks of the sum's own shape are taken apart."""
    if isinstance(term, Apply) and term.operator == "add":
        left, right = term.operands
        if typing.block(left).axes == typing.block(right).axes:
            return addends_of(left, typing) + addends_of(right, typing)
    return [term]


def list_indices(target: LocalBlock | Tensor) -> tuple[str, ...]:
    """The indices of the local list that a target is an item of; none for a block of a tensor."""
    return target.list_indices if isinstance(target, LocalBlock) else ()
