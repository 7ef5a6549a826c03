"""Membership in a frozen e-graph: is this term in that class?"""

from __future__ import annotations

from bbrewrite.core.terms import Term
from bbrewrite.egraph.view import FrozenGraph


def contains(graph: FrozenGraph, number: int, term: Term) -> bool:
    """Whether a class represents a term."""
    return number in _classes_of(graph, term, {})


def _classes_of(graph: FrozenGraph, term: Term, known: dict[Term, frozenset[int]]) -> frozenset[int]:
    if term not in known:
        operands = [_classes_of(graph, child, known) for child in term.children]
        known[term] = frozenset(
            number
            for number, found in graph.classes.items()
            for node in found.nodes
            if len(node.children) == len(operands)
            and node.build(term.children) == term
            and all(child in classes for child, classes in zip(node.children, operands, strict=True))
        )
    return known[term]


def buffered_edges(graph: FrozenGraph) -> int:
    """How many loads from intermediate lists the e-graph offers."""
    return sum(type(node.head).__name__ in ("At", "Loaded") for found in graph.classes.values() for node in found.nodes)
