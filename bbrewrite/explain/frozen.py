"""The saturated e-graph as something to match patterns on, with a smallest term to show for each class."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import BlockProgram
from bbrewrite.core.terms import Term
from bbrewrite.core.types import Typing
from bbrewrite.egraph.program import is_rounding
from bbrewrite.egraph.siblings import sibling_pairs
from bbrewrite.egraph.view import ENode, FrozenGraph
from bbrewrite.explain.matching import head_key


class Saturated:
    """A frozen graph of a program, for matching; see `matching.Graph`. `indices` are those of its terms."""

    def __init__(self, graph: FrozenGraph, program: BlockProgram, indices: IndexTable, table: OperatorTable) -> None:
        self.graph = graph
        self.indices = indices
        self.typing = Typing(table, indices, program.tensors)
        self._siblings = {(graph.roots[x], graph.roots[y]) for x, y in sibling_pairs(program)}
        self._by_node = {
            (head_key(node.head), node.children): number for number, c in graph.classes.items() for node in c.nodes
        }
        self._numbers: dict[Term, int | None] = {}

    def find(self, number: int) -> int:
        return number

    def classes(self) -> Iterable[int]:
        return self.graph.classes

    def nodes(self, number: int) -> Iterable[ENode]:
        return self.graph.classes[number].nodes

    def lookup(self, head: Term, children: tuple[int, ...]) -> int | None:
        return self._by_node.get((head, children))

    def number(self, term: Term) -> int | None:
        """The class of a term, where the graph has it."""
        if term not in self._numbers:
            children = tuple(self.number(child) for child in term.children)
            known = tuple(child for child in children if child is not None)
            self._numbers[term] = self.lookup(head_key(term), known) if len(known) == len(children) else None
        return self._numbers[term]

    def is_rounding(self, node: ENode) -> bool:
        return is_rounding(node.build(tuple(self.smallest[child] for child in node.children)), self.typing)

    def free(self, number: int) -> frozenset[str]:
        return self.graph.classes[number].free

    def facts(self, number: int) -> frozenset[str]:
        return self.graph.classes[number].facts

    def are_siblings(self, first: int, second: int) -> bool:
        return (first, second) in self._siblings

    @cached_property
    def smallest(self) -> dict[int, Term]:
        """For each class a term of least size."""
        return self._least({})

    def readable(self, definitions: Mapping[str, Term]) -> dict[int, Term]:
        """For each class the term that is shortest where a definition of the program counts as its name.

        `definitions` gives the closed, unfused term of each.
        """
        return self._least({self.graph.roots[name]: term for name, term in reversed(list(definitions.items()))})

    def _least(self, named: Mapping[int, Term]) -> dict[int, Term]:
        best = {number: (1, "", term) for number, term in named.items()}
        waiting = True
        while waiting:
            waiting = False
            for number, found in self.graph.classes.items():
                for size, digest, term in self._offers(found.nodes, best):
                    if number not in best or (size, digest) < best[number][:2]:
                        best[number] = (size, digest, term)
                        waiting = True
        return {number: term for number, (_, _, term) in best.items()}

    def _offers(
        self, nodes: Iterable[ENode], best: Mapping[int, tuple[int, str, Term]]
    ) -> Iterator[tuple[int, str, Term]]:
        for node in nodes:
            if all(child in best for child in node.children):
                term = node.build(tuple(best[child][2] for child in node.children))
                yield 1 + sum(best[child][0] for child in node.children), term.digest, term
