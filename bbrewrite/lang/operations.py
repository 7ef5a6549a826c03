"""Nests the operators that a text has in a row by their precedences, which are those of the operator table.

The grammars of both languages say where an operator may stand, and give what stands in a row as one list: a level of
grammar for every precedence would be passed through for every name and number. Lark calls this while it parses.

Operators group to the left (`^` to the right), so a flat chain would nest as deep as it has operands, and later stages
walk expressions recursively. Beyond `LONGEST` operands a chain becomes the two halves of it, and so on; shorter ones
stay as they are. The value is the same but for rounding, which summing in pairs makes smaller. A chain with `/` is left
alone, since its grouping matters in an index bracket.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, cast

from lark import Token, Transformer, Tree
from lark.parse_tree_builder import PropagatePositions

from bbrewrite.core.operators import builtin_table

LONGEST = 64
# Operators that may stand in one chain.
_FAMILY = {"and": "and", "or": "or", "*": "*", "+": "+-", "-": "+-"}
_OPPOSITE = {"+": ("MINUS", "-"), "-": ("INFIX", "+")}
_PRECEDENCE = {
    (entry.symbol, entry.arity): entry.precedence for entry in builtin_table().functions.values() if entry.symbol
}


class Operations(Transformer[Token, Tree[Token]]):
    """What lark calls for the alternatives of a grammar that are named `operation`."""

    def operation(self, row: list[Tree[Token] | Token]) -> Tree[Token]:
        """Operands, operators between them and operators before them, nested as `infix` and `prefix`.

        Without recursion, so that no row is too long.
        """
        values: list[_Chain] = []
        waiting: list[_Waiting] = []
        arity = 1
        for part in row:
            if isinstance(part, Tree):
                values.append(_Chain([part]))
                arity = 2
                continue
            operator = _Waiting(part, arity, _PRECEDENCE[part, arity])
            # What stands before an infix operator is complete where it binds tighter; `^` leaves another `^` waiting.
            while arity == 2 and waiting and waiting[-1].precedence >= operator.precedence + (part == "^"):
                _apply(waiting.pop(), values)
            waiting.append(operator)
            arity = 1
        while waiting:
            _apply(waiting.pop(), values)
        return values[0].tree()


class _Waiting(NamedTuple):
    """An operator of which the last operand is not complete."""

    symbol: Token
    arity: int
    precedence: int


@dataclass
class _Chain:
    """Operands with operators of one family between them; of one operand, any value."""

    operands: list[Tree[Token]]
    operators: list[Token] = field(default_factory=list[Token])

    def goes_on_with(self, operator: Token) -> bool:
        family = _FAMILY.get(operator)
        return not self.operators or (family is not None and family == _FAMILY.get(self.operators[0]))

    def tree(self) -> Tree[Token]:
        return _halved(self.operands, self.operators)


def _apply(operator: _Waiting, values: list[_Chain]) -> None:
    """Makes one value of an operator and the last values, its operands."""
    last = values.pop().tree()
    if operator.arity == 1:
        values.append(_Chain([_node("prefix", operator.symbol, last)]))
        return
    if not values[-1].goes_on_with(operator.symbol):
        values[-1] = _Chain([values[-1].tree()])
    values[-1].operators.append(operator.symbol)
    values[-1].operands.append(last)


def _halved(operands: list[Tree[Token]], operators: list[Token]) -> Tree[Token]:
    """The nodes of a chain: grouped to the left, or in halves where it is long."""
    if len(operands) <= LONGEST:
        left = operands[0]
        for operator, right in zip(operators, operands[1:], strict=True):
            left = _node("infix", left, operator, right)
        return left
    middle = len(operands) // 2
    operator, rest = operators[middle - 1], operators[middle:]
    if operator == "-":
        # a - b + c is a - (b - c)
        rest = [token.update(*_OPPOSITE[token]) for token in rest]
    left = _halved(operands[:middle], operators[: middle - 1])
    return _node("infix", left, operator, _halved(operands[middle:], rest))


def _node(kind: str, *parts: Tree[Token] | Token) -> Tree[Token]:
    """A node, with its place in the text where its parts have theirs."""
    return cast("Tree[Token]", PropagatePositions(partial(Tree[Token], kind))(list(parts)))
