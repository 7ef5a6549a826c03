"""Matches rule patterns against e-graphs, in Python: what the engine does, where one can watch.

A graph is anything with classes of e-nodes (`Graph`): the frozen one, or one that is replayed. A match is a
`Binding`. Conditions are judged in `conditions.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Protocol

from bbrewrite.core.addresses import index_address
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.terms import (
    Apply,
    At,
    Cast,
    Component,
    IndexValue,
    Local,
    Map,
    Number,
    Reduce,
    Size,
    Term,
)
from bbrewrite.egraph.view import ENode

BLANK = Local("")


class Graph(Protocol):
    """What matching and conditions ask of an e-graph. Classes are numbers; `find` gives the one for all its equals."""

    @property
    def indices(self) -> IndexTable: ...

    def find(self, number: int) -> int: ...

    def classes(self) -> Iterable[int]: ...

    def nodes(self, number: int) -> Iterable[ENode]: ...

    def lookup(self, head: Term, children: tuple[int, ...]) -> int | None:
        """The class of a node, where the graph has it."""
        ...

    def is_rounding(self, node: ENode) -> bool:
        """Whether a cast goes from float to float."""
        ...

    def free(self, number: int) -> frozenset[str]: ...

    def facts(self, number: int) -> frozenset[str]: ...

    def are_siblings(self, first: int, second: int) -> bool:
        """Whether they are two definitions that the program makes siblings."""
        ...


@dataclass(frozen=True)
class Binding:
    """What a match makes of a rule's variables: classes for values, names for indices, element types for casts."""

    values: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    indices: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    elements: Mapping[Term, str] = field(default_factory=lambda: MappingProxyType({}))

    def with_value(self, name: str, number: int) -> Binding:
        return replace(self, values={**self.values, name: number})

    def with_index(self, name: str, index: str) -> Binding | None:
        """With an index variable bound; None where it stands for another index."""
        if name in self.indices:
            return self if self.indices[name] == index else None
        return replace(self, indices={**self.indices, name: index})


def rule_matches(patterns: Sequence[tuple[str, Term]], graph: Graph) -> Iterator[Binding]:
    """Every way in which all patterns hold together; each pattern's own name is bound to its class."""

    def extended(position: int, binding: Binding) -> Iterator[Binding]:
        if position == len(patterns):
            yield binding
            return
        name, pattern = patterns[position]
        known = binding.values.get(name)
        for number in [graph.find(known)] if known is not None else list(graph.classes()):
            for found in matches(pattern, number, graph, binding.with_value(name, number)):
                yield from extended(position + 1, found)

    return extended(0, Binding())


def matches(pattern: Term, number: int, graph: Graph, binding: Binding) -> Iterator[Binding]:
    """Every way in which a class holds an instance of the pattern."""
    if isinstance(pattern, Local):
        known = binding.values.get(pattern.name)
        if known is None:
            yield binding.with_value(pattern.name, number)
        elif graph.find(known) == graph.find(number):
            yield binding
        return
    for node in graph.nodes(number):
        for headed in head_bindings(pattern, node, graph, binding):
            yield from _children(pattern.children, node.children, graph, headed)


def _children(
    patterns: tuple[Term, ...], numbers: tuple[int, ...], graph: Graph, binding: Binding
) -> Iterator[Binding]:
    if not patterns:
        yield binding
        return
    for found in matches(patterns[0], numbers[0], graph, binding):
        yield from _children(patterns[1:], numbers[1:], graph, found)


def same_head(pattern: Term, node: ENode, graph: Graph) -> bool:
    """Whether a node has the pattern's operator, indices aside."""
    head = node.head
    match pattern:
        case Number(value):
            return isinstance(head, Number) and (head.value == value or (math.isnan(head.value) and math.isnan(value)))
        case At():
            return isinstance(head, At) and head.address.plain_index is not None
        case Apply(operator, operands, _):
            return isinstance(head, Apply) and head.operator == operator and len(head.operands) == len(operands)
        case Reduce(monoid, _, operands):
            return isinstance(head, Reduce) and head.monoid == monoid and len(head.operands) == len(operands)
        case Component(position, _):
            return isinstance(head, Component) and head.position == position
        case Cast():
            return isinstance(head, Cast) and graph.is_rounding(node)
        case _:
            return type(head) is type(pattern)


def head_bindings(pattern: Term, node: ENode, graph: Graph, binding: Binding) -> list[Binding]:
    """The bindings with what the head of a node gives; none where it is no instance of the pattern's."""
    if not same_head(pattern, node, graph):
        return []
    if isinstance(pattern, Cast) and isinstance(node.head, Cast):
        if binding.elements.get(pattern, node.head.element) != node.head.element:
            return []
        return [replace(binding, elements={**binding.elements, pattern: node.head.element})]
    if isinstance(pattern, Size) and isinstance(node.head, Size):
        # Sizes are those of roots: the variable may stand for any index of that extent.
        table, root = graph.indices, node.head.index
        known = binding.indices.get(pattern.index)
        names = [known] if known is not None else [index.name for index in table]
        alike = [name for name in names if table.root(name) == root]
        return [found for name in alike if (found := binding.with_index(pattern.index, name)) is not None]
    found: Binding | None = binding
    for variable, index in zip(index_attributes(pattern), index_attributes(node.head), strict=True):
        found = found.with_index(variable, index) if found is not None else None
    return [] if found is None else [found]


def index_attributes(term: Term) -> tuple[str, ...]:
    """The indices that a head names, sizes and reads aside."""
    match term:
        case IndexValue(index) | Map(index, _) | Reduce(_, index, _):
            return (index,)
        case At(_, address):
            return (address.plain_index,) if address.plain_index is not None else ()
        case Apply(_, _, indices):
            return indices
        case _:
            return ()


def head_key(term: Term) -> Term:
    """The term without its operands: equal for terms of one head."""
    return term.with_children((BLANK,) * len(term.children))


def instance_head(pattern: Term, binding: Binding, table: IndexTable) -> Term:
    """The pattern's head with its index variables, and the element of a cast, replaced."""
    names = binding.indices
    match pattern:
        case Size(index):
            return Size(table.root(names[index]))
        case IndexValue(index):
            return IndexValue(names[index])
        case Map(index, body):
            return Map(names[index], body)
        case Reduce(monoid, index, operands):
            return Reduce(monoid, names[index], operands)
        case At(items, address):
            assert address.plain_index is not None
            return At(items, index_address(names[address.plain_index]))
        case Apply(operator, operands, indices):
            return Apply(operator, operands, tuple(names[index] for index in indices))
        case Cast(_, value):
            return Cast(binding.elements[pattern], value)
        case _:
            return pattern


def instance(pattern: Term, binding: Binding, values: Mapping[str, Term], table: IndexTable) -> Term:
    """The pattern with all its variables replaced; `values` gives a term for each value variable."""
    if isinstance(pattern, Local):
        return values[pattern.name]
    head = instance_head(pattern, binding, table)
    return head.with_children(tuple(instance(child, binding, values, table) for child in pattern.children))


def find_pattern(pattern: Term, binding: Binding, graph: Graph) -> int | None:
    """The class of a pattern whose variables are all bound, where the graph has it."""
    if isinstance(pattern, Local):
        return graph.find(binding.values[pattern.name])
    children: list[int] = []
    for child in pattern.children:
        number = find_pattern(child, binding, graph)
        if number is None:
            return None
        children.append(number)
    return graph.lookup(head_key(instance_head(pattern, binding, graph.indices)), tuple(children))
