"""Infers what every value of a rule is: its kind, the kind of a list's elements, the kinds of a pair's parts.

Values that must be alike are made one; each starts as anything, and operators narrow what they take and give until
nothing changes. What no choice fits is a contradiction; putting it into words is for `kind_faults.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bbrewrite.core.operators import Monoid, OperatorTable
from bbrewrite.core.terms import (
    Apply,
    At,
    Cast,
    Component,
    Loaded,
    Local,
    Map,
    Number,
    Pair,
    Reduce,
    Stored,
    Term,
    walk,
)
from bbrewrite.rules.kinds import (
    ANY,
    BLOCKS,
    LISTS,
    PAIRS,
    SCALAR,
    SPREADS,
    Choice,
    Kinds,
    choices,
    given,
    named,
    taken,
)


class Inference:
    """The kinds of the values of some terms. `scalars` are terms that a condition says to be scalars."""

    def __init__(self, table: OperatorTable, scalars: frozenset[Term] = frozenset()) -> None:
        self._table = table
        self._scalars = scalars
        self._numbers: dict[tuple[int, Term], int] = {}
        self._same: list[int] = []
        self._scopes = 0
        self._kinds: list[Kinds] = []
        self._items: dict[int, int] = {}
        self._parts: dict[int, tuple[int, int]] = {}
        self._applied: list[tuple[tuple[Choice, ...], tuple[int, ...]]] = []

    def solve(
        self, terms: Sequence[Term], sides: Sequence[tuple[Term, Term]] = (), known: Mapping[Term, Kinds] | None = None
    ) -> Inference:
        """Infers the kinds of all terms; `sides` are pairs of equal kinds, `known` bounds the kinds of some terms."""
        for term in terms:
            self._add(term)
        for term, kinds in (known or {}).items():
            self._narrow(self._add(term), kinds)
        for left, right in sides:
            one, other = self._add(left), self._add(right)
            if not isinstance(right, Number):  # a number stands for a block of any shape
                self._unite(one, other)
        before: object = None
        while before != (before := self._state()):
            for found, numbers in self._applied:
                self._apply(found, [self._root(number) for number in numbers])
            for pair in list(self._parts):
                self._lift(self._root(pair))
        return self

    @property
    def fits(self) -> bool:
        """Whether there are kinds that fit everywhere; no list is its own element."""
        roots = [number for number in range(len(self._same)) if self._root(number) == number]
        return all(self._kinds[root] for root in roots) and not any(self._is_endless(root) for root in roots)

    def kinds(self, term: Term) -> Kinds:
        """What a term may be."""
        return self._kinds[self._root(self._add(term))]

    def shown(self, term: Term) -> str:
        """What a term is, with what it is made of: `list of pairs of matrix and vector`."""
        return self._shown(self._add(term), plural=False)

    def _state(self) -> object:
        return (tuple(self._kinds), tuple(self._same), len(self._items), len(self._parts))

    def _new(self, kinds: Kinds) -> int:
        self._same.append(len(self._same))
        self._kinds.append(kinds)
        return len(self._same) - 1

    def _root(self, number: int) -> int:
        while self._same[number] != number:
            number = self._same[number]
        return number

    def _narrow(self, number: int, kinds: Kinds) -> None:
        root = self._root(number)
        self._kinds[root] &= kinds

    def _unite(self, one: int, other: int) -> None:
        waiting = [(one, other)]
        while waiting:
            kept, gone = (self._root(number) for number in waiting.pop())
            if kept == gone:
                continue
            self._same[gone] = kept
            self._kinds[kept] &= self._kinds[gone]
            if gone in self._items:
                item = self._items.pop(gone)
                waiting.append((self._items.setdefault(kept, item), item))
            if gone in self._parts:
                parts = self._parts.pop(gone)
                waiting += zip(self._parts.setdefault(kept, parts), parts, strict=True)

    def _item(self, number: int) -> int:
        root = self._root(number)
        if root not in self._items:
            self._items[root] = self._new(ANY)
        return self._items[root]

    def _parts_of(self, number: int) -> tuple[int, int]:
        root = self._root(number)
        if root not in self._parts:
            self._parts[root] = (self._new(ANY), self._new(ANY))
        return self._parts[root]

    def _add(self, term: Term, scope: int = 0) -> int:
        """The number of a term's value. A reduction's own terms are read in a scope of their own."""
        if (scope, term) in self._numbers:
            return self._numbers[scope, term]
        number = self._new(SCALAR if term in self._scalars and not scope else given(term, self._table))
        self._numbers[scope, term] = number
        children = tuple(self._add(child, scope) for child in term.children)
        for position, child in enumerate(children):
            self._narrow(child, taken(term, position, self._table))
        match term:
            case Apply():
                self._applied.append((choices(term, self._table), (*children, number)))
            case Map() | Stored():
                self._unite(self._item(number), children[0])
            case At() | Loaded():
                self._unite(number, self._item(children[0]))
            case Cast():
                self._unite(number, children[0])
            case Pair():
                first, second = self._parts_of(number)
                self._unite(first, children[0])
                self._unite(second, children[1])
            case Component(position):
                self._unite(number, self._parts_of(children[0])[position])
            case Reduce(monoid):
                self._reduce(monoid, children, number)
            case _:
                pass
        return number

    def _reduce(self, name: str, operands: tuple[int, ...], result: int) -> None:
        """A reduction's own terms say how its operands, its state and its result are alike."""
        monoid = self._table.monoids[name]
        state = [self._new(BLOCKS) for _ in monoid.state]
        # A scope for each section: one name may stand for different components in two of them.
        element, combine, finish = (self._scopes + section for section in (1, 2, 3))
        self._scopes = finish
        for parameter, operand in zip(monoid.parameters, operands, strict=True):
            self._unite(self._add(Local(parameter), element), operand)
        for names, scope in ((monoid.left, combine), (monoid.right, combine), (monoid.state, finish)):
            for local, component in zip(names, state, strict=True):
                self._unite(self._add(Local(local), scope), component)
        self._fill(monoid.element, state, element, monoid)
        self._fill(monoid.combine, state, combine, monoid)
        if not isinstance(monoid.finish, Number):
            self._unite(self._add(monoid.finish, finish), result)

    def _fill(self, terms: Sequence[Term], state: Sequence[int], scope: int, monoid: Monoid) -> None:
        """The terms are what the components hold; a number is spread, and a scalar where another makes it wider."""
        for position, (term, component) in enumerate(zip(terms, state, strict=True)):
            if isinstance(term, Number):
                continue
            number = self._add(term, scope)
            if _is_alone(monoid, position):
                self._unite(number, component)
            else:
                self._applied.append((SPREADS, (number, component)))

    def _apply(self, found: tuple[Choice, ...], roots: Sequence[int]) -> None:
        open_choices = [choice for choice in found if self._is_open(choice, roots)]
        for position, root in enumerate(roots):
            self._kinds[root] &= {choice[position] for choice in open_choices}

    def _is_open(self, choice: Choice, roots: Sequence[int]) -> bool:
        """Whether a choice gives every value, however often it stands in the term, one kind, which it may have."""
        chosen: dict[int, str] = {}
        for root, kind in zip(roots, choice, strict=True):
            if kind not in self._kinds[root] or chosen.setdefault(root, kind) != kind:
                return False
        return True

    def _lift(self, pair: int) -> None:
        """A pair of two lists is a list of pairs, and the other way round."""
        parts = self._parts_of(pair)
        are_lists = [self._kinds[self._root(part)] for part in parts]
        if all(kinds == LISTS for kinds in are_lists):
            self._narrow(pair, LISTS)
        elif any(not kinds & LISTS for kinds in are_lists):
            self._narrow(pair, PAIRS)
        if self._kinds[self._root(pair)] == LISTS:
            inner = self._parts_of(self._item(pair))
            for part, item in zip(parts, inner, strict=True):
                self._narrow(part, LISTS)
                self._unite(self._item(part), item)
            self._narrow(self._item(pair), PAIRS | LISTS)

    def _is_endless(self, number: int) -> bool:
        seen: set[int] = set()
        waiting = self._inside(number)
        while waiting:
            inner = self._root(waiting.pop())
            if inner == number:
                return True
            if inner not in seen:
                seen.add(inner)
                waiting += self._inside(inner)
        return False

    def _inside(self, root: int) -> list[int]:
        """What a value is made of, as far as it matters: the element of a list, the parts of a pair."""
        inner = [self._items[root]] if root in self._items else []
        return inner + (list(self._parts[root]) if self._kinds[root] == PAIRS and root in self._parts else [])

    def _shown(self, number: int, plural: bool) -> str:
        root = self._root(number)
        kinds = self._kinds[root]
        ending = "s" if plural else ""
        if kinds == LISTS:
            return f"list{ending} of {self._shown(self._item(root), plural=True)}"
        if kinds == PAIRS:
            first, second = self._parts_of(root)
            return f"pair{ending} of {self._shown(first, plural=False)} and {self._shown(second, plural=False)}"
        return named(kinds, plural)


def _is_alone(monoid: Monoid, component: int) -> bool:
    """Whether a component is combined without the others, so that none of them can make it wider."""
    own = {monoid.left[component], monoid.right[component]}
    return all(node.name in own for node in walk(monoid.combine[component]) if isinstance(node, Local))
