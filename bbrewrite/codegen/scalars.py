"""Block operators seen entry by entry: which entry of each operand belongs to an entry of the result, and the types.

This reads the operator table's signatures, so that no generator knows an operator by name. Positions are whatever a
generator uses to name an entry along an axis; nothing here prints.
"""

from __future__ import annotations

import math

from bbrewrite.core.elements import Element
from bbrewrite.core.operators import Operator, OperatorTable, Signature
from bbrewrite.core.terms import Apply, Cast, Number, Term, walk
from bbrewrite.core.types import Typing


def signature_of(operator: Operator, ranks: tuple[int, ...]) -> Signature:
    """The signature that admits operands of these ranks; the term has been typed, so there is one."""
    return next(s for s in operator.signatures if tuple(map(len, s.operands)) == ranks)


def folded_letter(signature: Signature) -> str:
    """The axis letter along which a folding operator combines."""
    (letter,) = {letter for pattern in signature.operands for letter in pattern} - set(signature.result)
    return letter


def operand_positions[P](
    operator: Operator, ranks: tuple[int, ...], result: tuple[P, ...], folded: P | None = None
) -> tuple[tuple[P, ...], ...]:
    """For the result's entry at `result`, the entry of each operand; `folded` is the place along the folded axis."""
    if operator.is_elementwise:
        return tuple(result if rank else () for rank in ranks)
    signature = signature_of(operator, ranks)
    letters = dict(zip(signature.result, result, strict=True))
    if folded is not None:
        letters[folded_letter(signature)] = folded
    return tuple(tuple(letters[letter] for letter in pattern) for pattern in signature.operands)


def entries(
    term: Term, positions: tuple[int, ...], typing: Typing, table: OperatorTable
) -> set[tuple[Term, tuple[int, ...]]]:
    """The subterms of a fold-free term of which an entry is needed, each with that entry."""
    needed: set[tuple[Term, tuple[int, ...]]] = set()

    def need(node: Term, places: tuple[int, ...]) -> None:
        if (node, places) in needed:
            return
        needed.add((node, places))
        if isinstance(node, Apply):
            ranks = tuple(len(typing.block(operand).axes) for operand in node.operands)
            inner = operand_positions(table.operators[node.operator], ranks, places)
            for operand, place in zip(node.operands, inner, strict=True):
                need(operand, place)
        elif isinstance(node, Cast):
            need(node.value, places)

    need(term, positions)
    return needed


def work_of(term: Term, table: OperatorTable) -> float:
    """Vector instructions for one vector of a term's entries, shared subterms counted once."""
    names = [table.operators[node.operator].function for node in walk(term) if isinstance(node, Apply)]
    return sum(table.functions[name].work for name in names if name)


def value_element(term: Term, context: Element, typing: Typing) -> Element:
    """The compute type of a term's value where a value of the compute type `context` is wanted.

    A number by itself is exact in whatever type it meets; a function of numbers and positions is computed in double.
    """
    if isinstance(term, Number):
        whole = term.value.is_integer() or math.isinf(term.value)
        return context if context.is_float or whole else Element.F64
    own = typing.block(term).element
    return context if own is None else own.compute_type


def constant_entry(term: Term) -> float | None:
    """The number that every entry of a block is, where that shows."""
    match term:
        case Number(value):
            return value
        case Apply("where", (_, chosen, other)) if constant_entry(chosen) == constant_entry(other):
            return constant_entry(chosen)
        case _:
            return None
