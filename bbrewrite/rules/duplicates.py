"""Warns of rules that say what another says, and of rules that undo each other, whatever their names are.

Two rules are compared after their variables and indices are numbered in the order in which they occur.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bbrewrite.core.terms import Apply, At, Cast, Component, Local, Map, Number, Reduce, Size, Term
from bbrewrite.lang.diagnostics import Diagnostic, Related
from bbrewrite.rules.rules import Comparison, Condition, Fact, IsConst, IsScalar, NotFree, Rule, Siblings

type Key = tuple[object, ...]


def duplicate_warnings(rules: Sequence[Rule]) -> Iterator[Diagnostic]:
    """At most one warning for each pair of rules, at the later one."""
    forward: dict[Key, list[_Direction]] = {}
    backward: dict[Key, list[_Direction]] = {}
    for rule in rules:
        ways = list(_directions(rule))
        told: set[str] = {rule.name}
        for earlier, way in ((e, w) for w in ways for e in forward.get(w.key, ())):
            if earlier.rule.name not in told and (warning := _repeats(earlier, way)):
                told.add(earlier.rule.name)
                yield warning
        for earlier in (e for w in ways for e in backward.get(w.key, ())):
            if earlier.rule.name not in told:
                told.add(earlier.rule.name)
                yield _undoes(earlier.rule, rule)
        for way in ways:
            forward.setdefault(way.key, []).append(way)
            backward.setdefault(way.reverse, []).append(way)


@dataclass(frozen=True)
class _Direction:
    """A rule read in one direction: the keys of both readings, and its conditions under the first one's numbering."""

    rule: Rule
    key: Key
    reverse: Key
    conditions: frozenset[Key]


def _directions(rule: Rule) -> Iterator[_Direction]:
    left, right = tuple(t for _, t in rule.matches), tuple(t for _, t in rule.rewrites)
    ways = [(left, right), (right, left)] if rule.both_ways else [(left, right)]
    for before, after in ways:
        names = _Names([name for name, _ in rule.matches])
        key = names.key(before, after)
        reverse = _Names([name for name, _ in rule.rewrites]).key(after, before)
        yield _Direction(rule, key, reverse, frozenset(names.condition(condition) for condition in rule.conditions))


def _repeats(earlier: _Direction, later: _Direction) -> Diagnostic | None:
    first, second = earlier.rule, later.rule
    if earlier.conditions == later.conditions:
        is_half = first.both_ways != second.both_ways
        message = f"`{second.name}` says what `{first.name}` says" + (" in one of its directions" if is_half else "")
    elif earlier.conditions < later.conditions:
        message = f"`{second.name}` says what `{first.name}` says under fewer conditions"
    elif later.conditions < earlier.conditions:
        message = f"`{second.name}` says under fewer conditions what `{first.name}` says"
    else:
        return None
    note = Related(first.span, f"`{first.name}`")
    return Diagnostic("repeated-rule", message, second.span, "one of them is enough", (note,), "warning")


def _undoes(first: Rule, second: Rule) -> Diagnostic:
    note = Related(first.span, f"`{first.name}`")
    message = f"`{second.name}` undoes `{first.name}`"
    hint = "an equation that is meant both ways is one rule, written `<=>`; else keep the direction that fusion needs"
    return Diagnostic("inverse-rules", message, second.span, hint, (note,), "warning")


class _Names:
    """Numbers names in the order in which they are met."""

    def __init__(self, matched: Sequence[str]) -> None:
        self._numbers: dict[tuple[str, str], int] = {}
        for name in matched:
            self._number("variable", name)

    def key(self, before: tuple[Term, ...], after: tuple[Term, ...]) -> Key:
        return (tuple(self._term(term) for term in before), tuple(self._term(term) for term in after))

    def condition(self, condition: Condition) -> Key:
        kind = type(condition).__name__
        match condition:
            case NotFree(index, term):
                return (kind, self._index(index), self._term(term))
            case Fact(fact, term):
                return (kind, fact, self._term(term))
            case Siblings(first, second):
                return (kind, self._term(first), self._term(second))
            case IsConst(term) | IsScalar(term) | Comparison(term):
                return (kind, self._term(term))

    def _number(self, kind: str, name: str) -> int:
        return self._numbers.setdefault((kind, name), len(self._numbers))

    def _index(self, name: str) -> int:
        return self._number("index", name)

    def _term(self, term: Term) -> Key:
        index: Callable[[str], int] = self._index
        attributes: tuple[object, ...]
        match term:
            case Local(name):
                attributes = (self._number("variable", name),)
            case Number(value):
                attributes = (value,)
            case Size(name) | Map(name):
                attributes = (index(name),)
            case Reduce(monoid, name):
                attributes = (monoid, index(name))
            case At(_, address):
                attributes = tuple(index(name) for name in sorted(address.index_names))
            case Apply(operator, _, indices):
                attributes = (operator, *(index(name) for name in indices))
            case Component(position):
                attributes = (position,)
            case Cast(element):
                attributes = (element,)
            case _:
                attributes = ()
        return (type(term).__name__, *attributes, *(self._term(child) for child in term.children))
