"""Block statements as one line of text, for the comments of generated source."""

from __future__ import annotations

import math

from bbrewrite.codegen.steps import Assign, Fold
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.terms import Apply, Cast, IndexValue, Local, Number, Read, Size, Term, walk
from bbrewrite.plan.kernel import Let, LocalBlock, Merge, Store, Update

_ATOM = 9
_LONGEST = 200


def describe(statement: Let | Update | Store | Merge, table: OperatorTable) -> str:
    """`E = exp(S - M)`; an update is written `:=`."""
    match statement:
        case Store(tensor, expression):
            return f"{_subscripted(tensor.name, tensor.indices)} = {describe_term(expression, table)}"
        case Let(target, expression):
            return f"{_block(target)} = {describe_term(expression, table)}"
        case Update(target, expression):
            return f"{_block(target)} := {describe_term(expression, table)}"
        case Merge(target, source, monoid):
            return f"{_block(target)} = {monoid} of every thread's {_block(source)}"


def describe_step(step: Assign | Fold, table: OperatorTable) -> str:
    """A step as the statement that it is by itself."""
    expression = step.expression if isinstance(step, Assign) else step.fold
    return describe(
        Let(step.target, expression) if isinstance(step.target, LocalBlock) else Store(step.target, expression), table
    )


def describe_term(term: Term, table: OperatorTable) -> str:
    """The term in the block language; operands that would make it too long to read are left out."""
    texts: dict[Term, _Text] = {}
    for node in walk(term):
        texts[node] = _text(node, texts, table)
    return texts[term][0]


# A text and the precedence of its outermost operator.
type _Text = tuple[str, int]


def _text(term: Term, texts: dict[Term, _Text], table: OperatorTable) -> _Text:
    match term:
        case Number(value):
            if math.isinf(value):
                return ("inf", _ATOM) if value > 0 else ("-inf", 7)
            text = str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))
            return text, 7 if value < 0 else _ATOM
        case Size(index):
            return f"size({index})", _ATOM
        case IndexValue(index):
            return index, _ATOM
        case Read(name, addresses):
            return _subscripted(name, tuple(map(str, addresses))), _ATOM
        case Local(name, indices):
            return _subscripted(name, indices), _ATOM
        case Cast(_, value):
            return texts[value]
        case Apply(name, operands, indices):
            text = _apply(name, [texts[operand] for operand in operands], indices, table)
            return text if len(text[0]) <= _LONGEST else (f"{name}(...)", _ATOM)
        case _:
            raise AssertionError(term)


def _apply(name: str, operands: list[_Text], indices: tuple[str, ...], table: OperatorTable) -> _Text:
    function = table.functions.get(name)
    if function is None or not function.symbol:
        return f"{name}({', '.join([text for text, _ in operands] + list(indices))})", _ATOM
    rank = function.precedence
    if len(operands) == 1:
        ((text, inner),) = operands
        space = " " if function.symbol.isalpha() else ""
        return f"{function.symbol}{space}{text if inner >= rank else f'({text})'}", rank
    # Comparisons do not chain, and all other infix operators but the power group to the left.
    left_least = rank + 1 if rank in (4, 8) else rank
    right_least = rank if rank == 8 else rank + 1
    (left, left_rank), (right, right_rank) = operands
    left = left if left_rank >= left_least else f"({left})"
    right = right if right_rank >= right_least else f"({right})"
    return f"{left} {function.symbol} {right}", rank


def _block(block: LocalBlock) -> str:
    return _subscripted(block.name, block.list_indices)


def _subscripted(name: str, indices: tuple[str, ...]) -> str:
    return f"{name}[{', '.join(indices)}]" if indices else name
