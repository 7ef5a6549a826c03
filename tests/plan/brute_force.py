"""Every plan of a small e-graph, enumerated in the plainest way: what the planner's search must agree with.

For each list, and each pair of lists, all terms that one node for each class gives, acyclic and closed; for a plan,
all ways to give every list that is needed one of them. Kernels are priced by the planner's own scheduler, so that only
the choice is tested.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import inf

from bbrewrite.core.addresses import Address
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import BlockProgram, Role, Tensor
from bbrewrite.core.terms import At, Component, Map, Pair, Read, Term, walk
from bbrewrite.egraph.view import ENode, FrozenGraph
from bbrewrite.plan.machine import Machine
from bbrewrite.plan.partition import KernelOutput, KernelTerm
from bbrewrite.plan.scheduling.schedule import schedule

# The indices of a list and its block at them; the term that each class of a term has.
type Body = tuple[tuple[str, ...], Term]
type Choices = Mapping[int, Term]


@dataclass(frozen=True)
class Priced:
    """The cheapest kernel of those that store the same lists and read the same."""

    stores: frozenset[str]
    reads: frozenset[str]
    seconds: float


class BruteForce:
    """All plans of a graph whose lists are its definitions, all over plain indices, and pairs of them."""

    def __init__(
        self, graph: FrozenGraph, program: BlockProgram, indices: IndexTable, table: OperatorTable, machine: Machine
    ) -> None:
        self._graph = graph
        self._program = program
        self._indices = indices
        self._table = table
        self._machine = machine
        self._lists = {identifier: name for name, identifier in graph.roots.items()}
        self._tensors = {
            name: Tensor(name, t.indices, t.element, Role.BUFFER if t.role is not Role.OUTPUT else t.role)
            for name, t in program.tensors.items()
        }
        self.kernels = [kernel for identifier in graph.classes for kernel in self._cheapest_by_reads(identifier)]

    def least_seconds(self) -> float:
        """The cost of the cheapest plan."""
        return min(self.least_by_kernels().values())

    def least_by_kernels(self) -> dict[int, float]:
        """The cost of the cheapest plan of each number of kernels."""
        return self._least({tensor.name for tensor in self._program.outputs}, ())

    def _least(self, wanted: set[str], chosen: tuple[Priced, ...]) -> dict[int, float]:
        pending = wanted - {name for kernel in chosen for name in kernel.stores}
        if not pending:
            return {0: 0.0}
        name = min(pending)
        best: dict[int, float] = {}
        for kernel in self.kernels:
            disjoint = not any(kernel.stores & other.stores for other in chosen)
            if name in kernel.stores and disjoint and not _has_cycle((*chosen, kernel)):
                for count, seconds in self._least(wanted | kernel.reads, (*chosen, kernel)).items():
                    best[count + 1] = min(kernel.seconds + seconds, best.get(count + 1, inf))
        return best

    def _cheapest_by_reads(self, identifier: int) -> list[Priced]:
        found: dict[frozenset[str], float] = {}
        stores = self._stored(identifier)
        for bodies, _ in self._bodies(identifier, ()) if len(set(stores)) == len(stores) else ():
            if not all(body.free <= set(indices) for indices, body in bodies):
                continue
            terms = [term for _, body in bodies for term in walk(body)]
            reads = frozenset(t.tensor for t in terms if isinstance(t, Read) and t.tensor in self._graph.roots)
            if reads & set(stores) or not stores:
                continue
            outputs = tuple(
                KernelOutput(replace(self._tensors[name], indices=indices), body)
                for name, (indices, body) in zip(stores, bodies, strict=True)
            )
            kernel = KernelTerm("_".join(stores), outputs)
            seconds = schedule(kernel, self._indices, self._tensors, self._table, self._machine).seconds
            found[reads] = min(found.get(reads, inf), seconds)
        return [Priced(frozenset(stores), reads, seconds) for reads, seconds in found.items()]

    def _stored(self, identifier: int) -> tuple[str, ...]:
        """The definitions that a class is, or that are the sides of its pairs; none for what is no such thing."""
        if identifier in self._lists:
            return (self._lists[identifier],)
        sides = [
            {c for c, eclass in self._graph.classes.items() for n in eclass.nodes if _is_side(n, position, identifier)}
            for position in (0, 1)
        ]
        parts = [self._stored(min(side)) for side in sides if side]
        return tuple(name for part in parts for name in part) if len(parts) == 2 and all(parts) else ()

    def _bodies(self, identifier: int, indices: tuple[str, ...]) -> Iterator[tuple[tuple[Body, ...], Choices]]:
        """What kernels store, one block for each list, with the term that each class in it has."""
        nodes = self._graph.classes[identifier].nodes
        outer = [node for node in nodes if isinstance(node.head, Map | Pair)]
        for node in outer:
            if isinstance(node.head, Map):
                yield from self._bodies(node.children[0], (*indices, node.head.index))
            else:
                for one, other in product(*(list(self._bodies(child, indices)) for child in node.children)):
                    chosen = _agreed((one[1], other[1]))
                    if chosen is not None:
                        yield (*one[0], *other[0]), chosen
        if not outer:
            for term, chosen in self._terms(identifier, frozenset()):
                yield ((indices, term),), chosen

    def _terms(self, identifier: int, above: frozenset[int]) -> Iterator[tuple[Term, Choices]]:
        """The terms of a class, with the term that each has for every class in it."""
        if identifier in above:
            return
        for read in self._reads(identifier, ()):
            yield read, {identifier: read}
        for node in self._graph.classes[identifier].nodes:
            if isinstance(node.head, At | Map | Pair):
                continue
            if isinstance(node.head, Component):
                for pair in self._graph.classes[node.children[0]].nodes:
                    if isinstance(pair.head, Pair):
                        yield from self._terms(pair.children[node.head.position], above | {identifier})
                continue
            below = [list(self._terms(child, above | {identifier})) for child in node.children]
            for operands in product(*below):
                chosen = _agreed(tuple(own for _, own in operands))
                if chosen is not None:
                    term = node.build(tuple(operand for operand, _ in operands))
                    yield term, {**chosen, identifier: term}

    def _reads(self, identifier: int, addresses: tuple[Address, ...]) -> Iterator[Read]:
        if identifier in self._lists and addresses:
            name = self._lists[identifier]
            if len(addresses) == len(self._tensors[name].indices):
                yield Read(name, addresses)
        for node in self._graph.classes[identifier].nodes:
            if isinstance(node.head, At):
                yield from self._reads(node.children[0], (node.head.address, *addresses))


def _is_side(node: ENode, position: int, pair: int) -> bool:
    return isinstance(node.head, Component) and node.head.position == position and node.children == (pair,)


def _agreed(operands: tuple[Choices, ...]) -> Choices | None:
    """The terms of all classes, or None where one class has two."""
    chosen: dict[int, Term] = {}
    agree = all(chosen.setdefault(identifier, t) == t for own in operands for identifier, t in own.items())
    return chosen if agree else None


def _has_cycle(kernels: tuple[Priced, ...]) -> bool:
    plan = {name: kernel.reads for kernel in kernels for name in kernel.stores}
    done: set[str] = set()
    while True:
        # A kernel runs when all that it reads is there.
        ready = [kernel for kernel in kernels if kernel.stores - done and not (kernel.reads & plan.keys()) - done]
        if not ready:
            return len(done) < len(plan)
        done.update(*(kernel.stores for kernel in ready))
