"""Warns of rules that feed themselves: each application makes a place for the next, so that only a limit ends it."""

from __future__ import annotations

from collections.abc import Iterator

from bbrewrite.core.spans import Span
from bbrewrite.core.terms import Apply, Component, Local, Number, Reduce, Term, named_indices, walk
from bbrewrite.lang.diagnostics import Diagnostic

type Bindings = dict[tuple[str, str], Term | str]


def growth_warnings(left: Term, right: Term, place: Span) -> Iterator[Diagnostic]:
    """At most one warning about one direction of a rule."""
    if _rearranges(left, right):
        message = "the right side is the left side with its operands in another order"
        hint = "such a rule multiplies every term that it meets: write the instance that a fusion needs"
        yield Diagnostic("growth", message, place, hint, severity="warning")
    elif _size(right) > _size(left) and any(_matches(left, part, {}) for part in walk(right)):
        message = "the right side is larger than the left side and holds it again: the rule feeds itself"
        hint = "let the left side name what makes the rule end, or write the instance that a fusion needs"
        yield Diagnostic("growth", message, place, hint, severity="warning")


def _rearranges(left: Term, right: Term) -> bool:
    """Commutativity, associativity and their mixtures: one operator as often on both sides, over the same variables."""
    if _size(left) != _size(right):
        return False  # a rule that makes terms smaller comes to an end, one that makes them larger is asked about below
    operators = {node.operator for side in (left, right) for node in walk(side) if isinstance(node, Apply)}
    if len(operators) != 1 or left == right:
        return False
    return _leaves(left) is not None and _leaves(left) == _leaves(right)


def _leaves(term: Term) -> list[str] | None:
    """The names of the variables of a term of operators alone, in order of name."""
    match term:
        case Local(name):
            return [name]
        case Apply(_, operands, ()):
            inner = [_leaves(operand) for operand in operands]
            return None if None in inner else sorted(name for names in inner for name in names or [])
        case _:
            return None


def _size(term: Term) -> int:
    return 1 + sum(_size(child) for child in term.children)


def _matches(pattern: Term, term: Term, bound: Bindings) -> bool:
    """Whether a term is an instance of a pattern; `bound` grows with what the pattern's names stand for."""
    if isinstance(pattern, Local):
        return bound.setdefault(("variable", pattern.name), term) == term
    if isinstance(pattern, Number):
        return pattern == term
    if type(pattern) is not type(term) or len(pattern.children) != len(term.children):
        return False
    if not all(
        bound.setdefault(("index", one), other) == other
        for one, other in zip(named_indices(pattern), named_indices(term), strict=False)
    ):
        return False
    if _symbol(pattern) != _symbol(term):
        return False
    return all(_matches(p, t, bound) for p, t in zip(pattern.children, term.children, strict=True))


def _symbol(term: Term) -> object:
    match term:
        case Apply(operator) | Reduce(operator):
            return operator
        case Component(position):
            return position
        case _:
            return None
