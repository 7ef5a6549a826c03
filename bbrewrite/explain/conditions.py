"""Judges the conditions of rules on an e-graph: proved, or why not.

What a condition needs is what the engine's analyses have proved; nothing is proved here.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping

from bbrewrite.core.terms import Apply, Component, Local, Number, Size, Term
from bbrewrite.explain.matching import BLANK, Binding, Graph, find_pattern
from bbrewrite.rules.rules import Comparison, Condition, Fact, IsConst, IsScalar, NotFree, Siblings

_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
}
_ARITHMETIC: Mapping[str, Callable[[float, float], float]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": lambda a, b: a / b if b else math.nan,
}


type _Numbers = Callable[[str], float | None]


def holds(condition: Condition, binding: Binding, graph: Graph) -> bool:
    """Whether a condition is proved of a match."""
    match condition:
        case NotFree(index, term):
            number = find_pattern(term, binding, graph)
            return number is not None and binding.indices[index] not in graph.free(number)
        case IsConst(term):
            return _has(term, "constant", binding, graph)
        case IsScalar(term):
            return _has(term, "scalar", binding, graph)
        case Fact(fact, term):
            return _has(term, fact, binding, graph)
        case Siblings(first, second):
            one, other = find_pattern(first, binding, graph), find_pattern(second, binding, graph)
            return one is not None and other is not None and _are_siblings(one, other, graph)
        case Comparison(term):
            return comparison_holds(term, *known_numbers(binding, graph))


def _are_siblings(one: int, other: int, graph: Graph) -> bool:
    """Siblings in the program, or a list of pairs both sides of which are siblings of the other."""
    if graph.are_siblings(one, other):
        return True
    sides = [graph.lookup(Component(position, BLANK), (one,)) for position in (0, 1)]
    return all(side is not None and _are_siblings(side, other, graph) for side in sides)


def known_numbers(binding: Binding, graph: Graph) -> tuple[_Numbers, _Numbers]:
    """What variables and the extents of index variables are worth in a match, where that is known."""

    def of_variable(name: str) -> float | None:
        heads = (node.head for node in graph.nodes(binding.values[name]))
        return next((head.value for head in heads if isinstance(head, Number)), None)

    return of_variable, lambda index: graph.indices.extent(binding.indices[index])


def comparison_holds(term: Term, variable: _Numbers, extent: _Numbers) -> bool:
    """Whether a comparison is true of known numbers."""
    assert isinstance(term, Apply)
    left, right = (number_of(side, variable, extent) for side in term.operands)
    return left is not None and right is not None and _COMPARISONS[term.operator](left, right)


def number_of(term: Term, variable: _Numbers, extent: _Numbers) -> float | None:
    """The number that a side of a comparison is, where it is known."""
    match term:
        case Number(value):
            return value
        case Local(name):
            return variable(name)
        case Size(index):
            return extent(index)
        case Apply("negate", (operand,)):
            value = number_of(operand, variable, extent)
            return None if value is None else -value
        case Apply(name, (left, right)):
            one, other = number_of(left, variable, extent), number_of(right, variable, extent)
            return None if one is None or other is None else _ARITHMETIC[name](one, other)
        case _:
            raise AssertionError(term)


def _has(term: Term, fact: str, binding: Binding, graph: Graph) -> bool:
    number = find_pattern(term, binding, graph)
    return number is not None and fact in graph.facts(number)
