"""Replays saturation in an e-graph that remembers why its terms are equal.

Every union is an edge between two terms *as they were written*: an instance of a rule, or congruence (one head,
operands already equal). The edges form a forest, so two equal terms have one path between them, and operands
made equal by congruence have theirs, made of earlier edges. Only rules that fired in the engine are replayed, in the
same phases, and only until the wanted terms are equal.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bbrewrite.core.indices import IndexTable
from bbrewrite.core.terms import Apply, At, Number, Size, Term, rewrite_bottom_up
from bbrewrite.egraph.program import is_rounding
from bbrewrite.egraph.view import ENode
from bbrewrite.explain.conditions import holds
from bbrewrite.explain.frozen import Saturated
from bbrewrite.explain.matching import Binding, head_key, instance, rule_matches
from bbrewrite.rules.rules import PHASES, Rule

# As for the engine; what is replayed stops much earlier.
_ROUNDS = 200
_TERMS = 20_000


@dataclass(frozen=True)
class Instance:
    """A rule applied to terms: `left` and `right` are its two sides with every variable replaced.

    `binding` gives indices, and `values` a term for each variable.
    """

    rule: Rule
    left: Term
    right: Term
    binding: Binding
    values: Mapping[str, Term]


@dataclass(frozen=True)
class Link:
    """One edge on the way from a term to an equal one. Without an instance it is congruence."""

    before: Term
    after: Term
    instance: Instance | None

    @property
    def is_forward(self) -> bool:
        """Whether the rule is read from left to right."""
        return self.instance is not None and self.instance.left == self.before


class Replay:
    """An e-graph of concrete terms, for matching; see `matching.Graph`.

    `saturated` lends what its analyses proved, `siblings` are the terms of which the condition of that name holds.
    """

    def __init__(self, saturated: Saturated, siblings: Sequence[tuple[Term, Term]]) -> None:
        self.indices: IndexTable = saturated.indices
        self._saturated = saturated
        self._terms: list[Term] = []
        self._numbers: dict[Term, int] = {}
        self._nodes: list[ENode] = []
        self._leaders: list[int] = []
        self._members: dict[int, list[int]] = {}
        self._free: dict[int, frozenset[str]] = {}
        self._by_node: dict[tuple[Term, tuple[int, ...]], int] = {}
        self._edges: dict[int, tuple[int, Instance | None]] = {}
        self._siblings = [(self.add(first), self.add(second)) for first, second in siblings]

    # --- what matching asks

    def find(self, number: int) -> int:
        while self._leaders[number] != number:
            number = self._leaders[number]
        return number

    def classes(self) -> Iterable[int]:
        return self._members

    def nodes(self, number: int) -> Iterable[ENode]:
        seen: set[tuple[Term, tuple[int, ...]]] = set()
        for member in self._members[self.find(number)]:
            key = self._key(member)
            if key not in seen:
                seen.add(key)
                yield self._nodes[member]

    def lookup(self, head: Term, children: tuple[int, ...]) -> int | None:
        number = self._by_node.get((head, tuple(self.find(child) for child in children)))
        return None if number is None else self.find(number)

    def is_rounding(self, node: ENode) -> bool:
        return is_rounding(node.head, self._saturated.typing)

    def free(self, number: int) -> frozenset[str]:
        return self._free[self.find(number)]

    def facts(self, number: int) -> frozenset[str]:
        known = (self._saturated.number(self._terms[member]) for member in self._members[self.find(number)])
        return frozenset[str]().union(*(self._saturated.facts(found) for found in known if found is not None))

    def are_siblings(self, first: int, second: int) -> bool:
        pair = (self.find(first), self.find(second))
        return any((self.find(x), self.find(y)) == pair for x, y in self._siblings)

    # --- growing

    def add(self, term: Term) -> int:
        """The number of a term, which is added where it is new; congruent terms are united by `rebuild`."""
        if term not in self._numbers:
            children = tuple(self.add(child) for child in term.children)
            number = len(self._terms)
            # One object for each term: deep comparisons then end at once.
            term = term.with_children(tuple(self._terms[child] for child in children))
            self._terms.append(term)
            self._numbers[term] = number
            self._nodes.append(ENode(term, children))
            self._leaders.append(number)
            self._members[number] = [number]
            self._free[number] = term.free
        return self._numbers[term]

    def equal(self, first: Term, second: Term) -> bool:
        """Whether two terms are equal; the second is added where an equal of it is represented."""
        known = self._represented(second, {})
        if known is None or known != self.find(self.add(first)):
            return False
        self.add(second)
        self.rebuild()
        return self.find(self.add(first)) == self.find(self.add(second))

    def run(self, rules: Iterable[Rule], wanted: Sequence[tuple[Term, Term]]) -> bool:
        """Replays rules until the wanted pairs are equal; false where they do not become so."""
        rules = tuple(rules)
        self.rebuild()
        open_pairs = [pair for pair in wanted if not self.equal(*pair)]
        for phase in PHASES:
            directed = [item for rule in rules if rule.phase == phase for item in _directions(rule)]
            for _ in range(_ROUNDS):
                if not open_pairs or not self._round(directed):
                    break
                open_pairs = [pair for pair in open_pairs if not self.equal(*pair)]
        return not open_pairs

    def rebuild(self) -> None:
        """Unites congruent terms, and brings the free indices of classes up to date."""
        changed = True
        while changed:
            changed = False
            self._by_node = {}
            for number in range(len(self._terms)):
                known = self._by_node.setdefault(self._key(number), number)
                if self.find(known) != self.find(number):
                    self._unite(known, number, None)
                    changed = True
        self._settle_free()

    def _round(self, directed: list[_Directed]) -> bool:
        """One round: all matches first, then what they say. Whether anything changed."""
        found: list[Instance] = []
        for rule, patterns, rewrites in directed:
            for binding in rule_matches(patterns, self):
                if all(holds(condition, binding, self) for condition in rule.conditions):
                    found += self._instances(rule, patterns, rewrites, binding)
        united = False
        for item in found:
            left, right = self.add(item.left), self.add(item.right)
            if self.find(left) == self.find(right):
                continue
            # The left side is congruent to what was matched; it must be known so before the edge is made.
            self._join(left)
            self._join(right)
            if self.find(left) != self.find(right):
                self._unite(left, right, item)
                united = True
        self.rebuild()
        return united and len(self._terms) <= _TERMS

    def _instances(self, rule: Rule, patterns: _Named, rewrites: _Named, binding: Binding) -> Iterator[Instance]:
        values = {name: self._terms[number] for name, number in binding.values.items()}
        for name, pattern in patterns:
            # A matched value is the instance of its pattern, not just any term of its class.
            values[name] = instance(pattern, binding, values, self.indices)
        for name, replacement in rewrites:
            yield Instance(rule, values[name], instance(replacement, binding, values, self.indices), binding, values)

    def _join(self, number: int) -> None:
        """Unites a new term, operands first, with one that is congruent to it."""
        for child in self._nodes[number].children:
            self._join(child)
        known = self._by_node.setdefault(self._key(number), number)
        if self.find(known) != self.find(number):
            self._unite(known, number, None)

    def _key(self, number: int) -> tuple[Term, tuple[int, ...]]:
        node = self._nodes[number]
        return head_key(node.head), tuple(self.find(child) for child in node.children)

    def _represented(self, term: Term, known: dict[Term, int | None]) -> int | None:
        if term not in known:
            children = [self._represented(child, known) for child in term.children]
            numbers = tuple(child for child in children if child is not None)
            known[term] = self.lookup(head_key(term), numbers) if len(numbers) == len(children) else None
        return known[term]

    def _unite(self, first: int, second: int, why: Instance | None) -> None:
        old, new = self.find(first), self.find(second)
        if len(self._members[old]) > len(self._members[new]):
            first, second, old, new = second, first, new, old
        # The smaller tree is hung under the other: its edges are turned round up to its root.
        self._turn(first)
        self._edges[first] = (second, why)
        self._leaders[old] = new
        self._members[new] += self._members.pop(old)
        self._free[new] &= self._free.pop(old)

    def _turn(self, number: int) -> None:
        """Makes a term the root of its tree of edges."""
        path: list[tuple[int, int, Instance | None]] = []
        while number in self._edges:
            target, why = self._edges.pop(number)
            path.append((number, target, why))
            number = target
        for source, target, why in path:
            self._edges[target] = (source, why)

    def _settle_free(self) -> None:
        changed = True
        while changed:
            changed = False
            for number, members in self._members.items():
                free = self._free[number].intersection(*(self._free_of(self._nodes[member]) for member in members))
                if free != self._free[number]:
                    self._free[number] = free
                    changed = True

    def _free_of(self, node: ENode) -> frozenset[str]:
        """The indices on which a node depends, given what is proved of its operands."""
        head = node.head
        if not node.children:
            return head.free
        free = frozenset[str]().union(*(self.free(child) for child in node.children))
        if head.bound_index is not None:
            return free - {head.bound_index}
        if isinstance(head, At):
            return free | head.address.index_names
        return free | frozenset(head.indices) if isinstance(head, Apply) else free

    # --- explaining

    def path(self, first: Term, second: Term) -> list[Link]:
        """The edges from a term to an equal one."""
        up, down = self._ancestors(first), self._ancestors(second)
        while len(up) > 1 and len(down) > 1 and up[-2] == down[-2]:
            up.pop()
            down.pop()
        links = [self._link(a, b, self._edges[a][1]) for a, b in itertools.pairwise(up)]
        back = [self._link(b, a, self._edges[a][1]) for a, b in itertools.pairwise(down)]
        return [*links, *reversed(back)]

    def _ancestors(self, term: Term) -> list[int]:
        numbers = [self._numbers[term]]
        while numbers[-1] in self._edges:
            numbers.append(self._edges[numbers[-1]][0])
        return numbers

    def _link(self, before: int, after: int, why: Instance | None) -> Link:
        return Link(self._terms[before], self._terms[after], why)


type _Named = tuple[tuple[str, Term], ...]
type _Directed = tuple[Rule, _Named, _Named]


def _directions(rule: Rule) -> list[_Directed]:
    forward = (rule, rule.matches, rule.rewrites)
    return [forward, (rule, rule.rewrites, rule.matches)] if rule.both_ways else [forward]


def with_root_sizes(term: Term, indices: IndexTable) -> Term:
    """The term as the engine holds it: sizes of indices with one extent are one number, and so are zeros."""

    def change(node: Term) -> Term:
        if isinstance(node, Number) and node.value == 0:
            return Number(0.0)
        return Size(indices.root(node.index)) if isinstance(node, Size) else node

    return rewrite_bottom_up(term, change)
