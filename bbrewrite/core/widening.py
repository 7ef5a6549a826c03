"""The mark `widened` on an operand of a block product: what the product computes with is not rounded to 16 bits.

Lowering sets it (`lower/precision.py`). Blocks are computed in f32 at least, so that nothing is to be done for it where
an operand is computed or read; it is for those who choose how a product is done.
"""

from __future__ import annotations

from bbrewrite.core.terms import Apply, Term


def is_widened(term: Term) -> bool:
    """Whether a term bears the mark."""
    return isinstance(term, Apply) and term.operator == "widened"


def unwidened(term: Term) -> Term:
    """The term without the mark."""
    while is_widened(term):
        (term,) = term.children
    return term
