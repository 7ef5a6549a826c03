"""Conditions of rules as the rule language writes them."""

from __future__ import annotations

from itertools import repeat

from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.printing import print_term
from bbrewrite.core.terms import Apply, At, Component, Map, Reduce, Size, Term
from bbrewrite.rules.rules import Comparison, Condition, Fact, IsConst, IsScalar, NotFree, Siblings


def condition_text(condition: Condition, table: OperatorTable) -> str:
    """`i not in free(c)`, `positive(x)` and so on."""
    match condition:
        case NotFree(index, term):
            return f"{index} not in free({pattern_text(term, table)})"
        case IsConst(term):
            return f"{pattern_text(term, table)} is const"
        case IsScalar(term):
            return f"{pattern_text(term, table)} is scalar"
        case Comparison(term):
            return pattern_text(term, table)
        case Fact(fact, term):
            return f"{fact}({pattern_text(term, table)})"
        case Siblings(first, second):
            return f"siblings({pattern_text(first, table)}, {pattern_text(second, table)})"


def pattern_text(pattern: Term, table: OperatorTable) -> str:
    """A pattern as a rule writes it: loops as calls."""

    def text(term: Term) -> str:
        texts = [text(child) for child in term.children]
        operands = ", ".join(texts)
        match term:
            case Map(index, _):
                return f"map({index}, {operands})"
            case Reduce(monoid, index, _):
                return f"reduce({monoid}, {index}, {operands})"
            case At(_, address):
                return f"at({operands}, {address})"
            case Component(position, _):
                return f"{('first', 'second')[position]}({operands})"
            case Size(index):
                return f"size({index})"
            case Apply(operator, _, indices) if not _is_infix(operator, table):
                return f"{operator}({', '.join([operands, *indices])})"
            case Apply(operator, (only,), _):
                return f"{table.functions[operator].symbol}{_bracketed(only, texts[0], table)}"
            case Apply(operator, sides, _):
                shown = map(_bracketed, sides, texts, repeat(table))
                return f" {table.functions[operator].symbol} ".join(shown)
            case _ if term.children:
                return f"{type(term).__name__.lower()}({operands})"
            case _:
                return print_term(term, table)

    return text(pattern)


def _is_infix(operator: str, table: OperatorTable) -> bool:
    function = table.functions.get(operator)
    return function is not None and bool(function.symbol)


def _bracketed(term: Term, text: str, table: OperatorTable) -> str:
    return f"({text})" if isinstance(term, Apply) and _is_infix(term.operator, table) else text
