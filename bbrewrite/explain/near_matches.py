"""Partial matches: how far a rule's patterns go before something in the program is not what they say.

A partial match goes on beyond what does not fit (a `Gap`), so that the nearest one is the one in which the most
operators fit, and its gaps are all that is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bbrewrite.core.terms import Local, Term, walk
from bbrewrite.explain.matching import Binding, Graph, head_bindings, index_attributes, matches, same_head

# Operands looked at before the nearest match so far is taken. There may be a partial match for every choice of nodes,
# so their number grows with the power of a pattern's size; that of a small rule is far below this.
_MOST_LOOKS = 30_000


@dataclass(frozen=True)
class MissingOperator:
    """Where the pattern has an operator the class has none of it."""

    pattern: Term
    number: int


@dataclass(frozen=True)
class TwoValues:
    """One variable would stand for two classes."""

    variable: str
    first: int
    second: int


@dataclass(frozen=True)
class TwoIndices:
    """One index variable would stand for two indices."""

    variable: str
    first: str
    second: str


type Gap = MissingOperator | TwoValues | TwoIndices


@dataclass(frozen=True)
class NearMatch:
    """`root` is the class of the first pattern, `fitting` the number of operators that fit."""

    root: int
    binding: Binding
    fitting: int
    gaps: tuple[Gap, ...]

    @property
    def nearness(self) -> float:
        return self.fitting - 0.5 * len(self.gaps)


def nearest_match(patterns: Sequence[tuple[str, Term]], graph: Graph) -> NearMatch | None:
    """The partial match in which most fits; None where the first operator of a pattern occurs nowhere."""
    best: NearMatch | None = None
    search = _Search(graph)
    for found in search.rule(patterns, 0, Binding()):
        if best is None or found.nearness > best.nearness:
            best = found
        if search.looks > _MOST_LOOKS:
            break
    return best


def largest_part(patterns: Sequence[tuple[str, Term]], graph: Graph) -> tuple[Term, int] | None:
    """The largest proper part of the patterns that occurs somewhere, with a class where it does."""
    parts = {part for _, pattern in patterns for part in walk(pattern) if part != pattern and not _is_leaf(part)}
    for part in sorted(parts, key=lambda part: (-sum(not _is_leaf(node) for node in walk(part)), part.digest)):
        for number in graph.classes():
            if next(matches(part, number, graph, Binding()), None) is not None:
                return part, number
    return None


class _Search:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.looks = 0

    def rule(self, patterns: Sequence[tuple[str, Term]], position: int, binding: Binding) -> Iterator[NearMatch]:
        name, pattern = patterns[position]
        known = binding.values.get(name)
        for number in [known] if known is not None else list(self._graph.classes()):
            for found in self._headed(pattern, number, binding.with_value(name, number)):
                if position + 1 == len(patterns):
                    yield NearMatch(number, found.binding, found.fitting, found.gaps)
                    continue
                for rest in self.rule(patterns, position + 1, found.binding):
                    gaps = (*found.gaps, *rest.gaps)
                    yield NearMatch(number, rest.binding, found.fitting + rest.fitting, gaps)

    def _headed(self, pattern: Term, number: int, binding: Binding) -> Iterator[NearMatch]:
        """Partial matches whose first operator fits; none where it does not."""
        for node in self._graph.nodes(number):
            if not same_head(pattern, node, self._graph):
                continue
            headed = head_bindings(pattern, node, self._graph, binding)
            gaps = () if headed else _unlike_indices(pattern, node.head, binding)
            for start in headed or [binding]:
                yield from self._children(pattern.children, node.children, NearMatch(number, start, 1, gaps))

    def _children(self, patterns: tuple[Term, ...], numbers: tuple[int, ...], so_far: NearMatch) -> Iterator[NearMatch]:
        if not patterns:
            yield so_far
            return
        for found in self._operand(patterns[0], numbers[0], so_far.binding):
            fitting, gaps = so_far.fitting + found.fitting, (*so_far.gaps, *found.gaps)
            yield from self._children(patterns[1:], numbers[1:], NearMatch(so_far.root, found.binding, fitting, gaps))

    def _operand(self, pattern: Term, number: int, binding: Binding) -> Iterator[NearMatch]:
        self.looks += 1
        if isinstance(pattern, Local):
            known = binding.values.get(pattern.name)
            bound = binding.with_value(pattern.name, number) if known is None else binding
            fits = known is None or self._graph.find(known) == self._graph.find(number)
            gaps = () if fits or known is None else (TwoValues(pattern.name, known, number),)
            yield NearMatch(number, bound, 0, gaps)
            return
        found = False
        for match in self._headed(pattern, number, binding):
            found = True
            yield match
        if not found:
            yield NearMatch(number, binding, 0, (MissingOperator(pattern, number),))


def _unlike_indices(pattern: Term, head: Term, binding: Binding) -> tuple[Gap, ...]:
    pairs = zip(index_attributes(pattern), index_attributes(head), strict=False)
    known = [(variable, binding.indices.get(variable), index) for variable, index in pairs]
    return tuple(TwoIndices(name, old, new) for name, old, new in known if old is not None and old != new)


def _is_leaf(term: Term) -> bool:
    return isinstance(term, Local) or not term.children
