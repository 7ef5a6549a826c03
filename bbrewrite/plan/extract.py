"""Extraction: from a frozen e-graph to the terms worth scheduling.

Bottom-up dynamic programming over e-classes. A *candidate* of a class is a term together with what it costs,
itemised by subterm, loop pass and kernel, so that shared work is paid once and a value needed in two passes
over a loop is paid twice. Each class keeps a few candidates: the cheapest for each set of indices that the
term mentions.

The scope rule is kept by that set. A class whose value does not depend on k may contain a term that mentions
k (`at(M, k)` for a list M of equal items); such a term is usable inside k's loop only. Binders remove their
index from the set, and a list stored in global memory, or an output, must mention none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from bbrewrite.core.elements import Element
from bbrewrite.core.terms import At, Component, Loaded, Map, Pair, Reduce, Term
from bbrewrite.egraph.view import EClass, ENode, FrozenGraph
from bbrewrite.plan.canonical import canonical_list
from bbrewrite.plan.term_costs import TermCosts

# More candidates a class find no better plans on the programs at hand and cost time in proportion. Those that store
# the same lists differ in algebra only, so a few of them suffice.
CANDIDATES_PER_CLASS = 6
CANDIDATES_PER_KERNELS = 2

# A loop pass: the index of a reduction and how many passes over that index must come before it.
type Pass = tuple[str, int]


@dataclass(frozen=True)
class Item:
    """One thing paid for: a term in the passes of a kernel. `kernel` is "" for the kernel under construction."""

    kernel: str
    passes: tuple[Pass, ...]
    term: Term


@dataclass(frozen=True)
class Candidate:
    """A term of a class with its itemised cost in seconds, and the lists in global memory that it needs."""

    term: Term
    items: Mapping[Item, float]
    cost: float
    stored: Mapping[int, str]  # for each class stored as a list, by which kernel

    @cached_property
    def kernels(self) -> frozenset[str]:
        """The kernels that store what the term reads."""
        return frozenset(item.kernel for item in self.items)

    @property
    def order(self) -> tuple[float, str]:
        """Cheapest first; ties are broken by structure, which no renaming or reordering of rules changes."""
        return (self.cost, self.term.digest)


@dataclass(frozen=True)
class ExtractedPlan:
    """A term for every output, and the seconds that they take by the optimistic estimate."""

    roots: Mapping[str, Term]
    estimate: float


@dataclass(frozen=True)
class Extraction:
    """The most promising plans, best estimate first.

    `list_names` gives the definition's name for a term of its class, so that buffers keep the user's names.
    """

    plans: tuple[ExtractedPlan, ...]
    list_names: Mapping[Term, str]


def extract(graph: FrozenGraph, outputs: tuple[str, ...], costs: TermCosts) -> Extraction:
    """The plans worth scheduling: the cheapest by the estimate, those that replace one output's term in it to store
    other lists, and those whose outputs are made together.
    """
    search = _Extraction(graph, costs)
    candidates = search.run()
    ranked = {name: [found for found in candidates[graph.roots[name]] if not found.term.free] for name in outputs}
    best = {name: found[0] for name, found in ranked.items() if found}
    if len(best) < len(outputs):
        return Extraction((), search.list_names)
    choices = [best, *({**best, name: other} for name, found in ranked.items() for other in found[1:])]
    choices += _together(ranked, best)
    plans: dict[frozenset[str], ExtractedPlan] = {}
    for choice in choices:
        items = _united(tuple(choice.values()))
        plan = ExtractedPlan({name: found.term for name, found in choice.items()}, sum(items.values()))
        # Plans that store the same lists differ in algebra only; the estimate is good enough to choose among them.
        kernels = frozenset(item.kernel for item in items)
        known = plans.get(kernels)
        if known is None or plan.estimate < known.estimate:
            plans[kernels] = plan
    return Extraction(tuple(sorted(plans.values(), key=lambda plan: plan.estimate)), search.list_names)


def _together(ranked: Mapping[str, list[Candidate]], best: Mapping[str, Candidate]) -> list[dict[str, Candidate]]:
    """For each kernel that can serve several outputs, the choice in which all that can use it do: what it costs is
    paid once, though for any one output alone it is dear.
    """
    serving: dict[str, dict[str, Candidate]] = {}
    for name, found in ranked.items():
        for candidate in found:
            for kernel in sorted(candidate.kernels - {""}):
                serving.setdefault(kernel, {}).setdefault(name, candidate)
    return [{**best, **served} for served in serving.values() if len(served) > 1]


class _Extraction:
    """The fixed point of candidates over all classes."""

    def __init__(self, graph: FrozenGraph, costs: TermCosts) -> None:
        self._graph = graph
        self._costs = costs
        self._depth = _list_depths(graph)
        self._found: dict[int, list[Candidate]] = {identifier: [] for identifier in graph.classes}
        self._stored: dict[Term, Candidate] = {}
        self._definitions = {identifier: name for name, identifier in sorted(graph.roots.items(), reverse=True)}
        self.list_names: dict[Term, str] = {}

    def run(self) -> dict[int, list[Candidate]]:
        users: dict[int, set[int]] = {identifier: set() for identifier in self._graph.classes}
        for identifier, eclass in self._graph.classes.items():
            for node in eclass.nodes:
                for child in node.children:
                    users[child].add(identifier)
        pending = sorted(self._graph.classes)
        # Every round that changes something makes a class cheaper or reaches one more, so this ends.
        while pending:
            changed: set[int] = set()
            for identifier in pending:
                if self._improve(identifier):
                    changed |= users[identifier]
            pending = sorted(changed)
        return self._found

    def _improve(self, identifier: int) -> bool:
        """Recomputes a class's candidates from those of its operands; true where they changed."""
        nodes = self._graph.classes[identifier].nodes
        # A value computed from its own stored list is only a copy of it.
        offers = [offer for node in nodes for offer in self._offers(node) if identifier not in offer.stored]
        kept = _pruned([*offers, *self._found[identifier]])
        if [found.term for found in kept] == [found.term for found in self._found[identifier]]:
            return False
        self._found[identifier] = kept
        if identifier in self._definitions:
            self.list_names |= {found.term: self._definitions[identifier] for found in kept}
        return True

    def _offers(self, node: ENode) -> Iterator[Candidate]:
        choices = [
            (operands, _stored_by_all(operands)) for operands in product(*(self._found[c] for c in node.children))
        ]
        # Storing one list twice, under two terms, never pays; it is taken only where nothing else is left.
        agreeing = [choice for choice in choices if choice[1] is not None]
        for operands, stored in agreeing or choices:
            everything = {k: v for operand in operands for k, v in operand.stored.items()} if stored is None else stored
            offer = self._combine(node, operands, everything)
            if offer is not None:
                yield offer

    def _combine(self, node: ENode, operands: tuple[Candidate, ...], stored: Mapping[int, str]) -> Candidate | None:
        match node.head:
            case At() | Loaded():
                return self._read(node, operands[0])
            case Component() if self._depth[node.children[0]] > 0:
                return self._component(node, operands[0])
            case Reduce():
                return self._reduce(node, operands, stored)
            case Map() | Pair():
                lists = zip(node.children, operands, strict=True)
                if any(self._depth[child] > 0 and isinstance(found.term, At | Component) for child, found in lists):
                    return None  # a kernel that only copies a list
                return self._plain(node, operands, stored)
            case _:
                return self._plain(node, operands, stored)

    def _plain(self, node: ENode, operands: tuple[Candidate, ...], stored: Mapping[int, str]) -> Candidate:
        term = node.build(tuple(operand.term for operand in operands))
        items = _united(operands)
        items.setdefault(Item("", (), term), self._costs.evaluation(term))
        return _candidate(term, items, stored)

    def _reduce(self, node: ENode, operands: tuple[Candidate, ...], stored: Mapping[int, str]) -> Candidate:
        term = node.build(tuple(operand.term for operand in operands))
        assert isinstance(term, Reduce)
        index = term.index
        items = _united(operands)
        inside: list[tuple[Item, float]] = []
        outside: dict[Item, float] = {}
        for item, cost in items.items():
            bound_within = any(index == inner for inner, _ in item.passes)
            if not item.kernel and index in item.term.free and not bound_within:
                inside.append((item, cost))
            else:
                outside[item] = cost
        # What is left outside is needed by this loop, so its passes over the same index come before.
        earlier = [
            item.passes[0][1] for item in outside if not item.kernel and item.passes and item.passes[0][0] == index
        ]
        this: Pass = (index, 1 + max(earlier, default=-1))
        for item, cost in inside:
            outside[Item("", (this, *item.passes), item.term)] = cost
        outside[Item("", (this,), term)] = self._costs.evaluation(term)
        return _candidate(term, outside, stored)

    def _read(self, node: ENode, items: Candidate) -> Candidate | None:
        """An element of a list in global memory: the whole list is stored by a kernel of its own."""
        stored = items
        if not isinstance(items.term, At | Component):
            if items.term.free:
                return None  # a list made inside a loop is no list in global memory
            stored = self._as_kernel(items, node.children[0])
        term = node.build((items.term,))
        united = dict(stored.items)
        if isinstance(node.head, Loaded) or self._depth[node.children[0]] == 1:
            united[Item("", (), term)] = self._costs.traffic(tuple(sorted(term.free)), Element.F32)
        return _candidate(term, united, stored.stored)

    def _component(self, node: ENode, pair: Candidate) -> Candidate | None:
        if pair.term.free or isinstance(pair.term, At):
            return None
        # One side of a pair that is itself one side of another is stored by the other's kernel.
        kernel = pair if isinstance(pair.term, Component) else self._as_kernel(pair, node.children[0])
        return _candidate(node.build((pair.term,)), kernel.items, kernel.stored)

    def _as_kernel(self, candidate: Candidate, identifier: int) -> Candidate:
        """The candidate's items as those of a kernel that stores its list, plus launch and stores."""
        known = self._stored.get(candidate.term)
        if known is None:
            key = canonical_list(candidate.term, self._costs.indices).digest
            items = {
                (Item(key, item.passes, item.term) if not item.kernel else item): cost
                for item, cost in candidate.items.items()
            }
            items[Item(key, (), candidate.term)] = self._costs.launch + self._store_cost(candidate.term)
            known = self._stored[candidate.term] = _candidate(
                candidate.term, items, {**candidate.stored, identifier: key}
            )
        return known

    def _store_cost(self, term: Term, indices: tuple[str, ...] = ()) -> float:
        """Stores of every element of a list, or of both lists of a pair."""
        match term:
            case Map(index, body):
                return self._store_cost(body, (*indices, index))
            case Pair(first, second):
                return self._store_cost(first, indices) + self._store_cost(second, indices)
            case _:
                return self._costs.traffic(indices, Element.F32)


def _united(operands: tuple[Candidate, ...]) -> dict[Item, float]:
    items: dict[Item, float] = {}
    for operand in operands:
        items.update(operand.items)
    return items


def _stored_by_all(operands: tuple[Candidate, ...]) -> dict[int, str] | None:
    """The lists that operands need, or None where two of them need one list stored by different kernels."""
    stored: dict[int, str] = {}
    for operand in operands:
        for identifier, kernel in operand.stored.items():
            if stored.setdefault(identifier, kernel) != kernel:
                return None
    return stored


def _candidate(term: Term, items: Mapping[Item, float], stored: Mapping[int, str]) -> Candidate:
    return Candidate(term, items, sum(items.values()), stored)


def _pruned(offers: list[Candidate]) -> list[Candidate]:
    """The best few: for each set of lists stored, none that costs more than others which mention no index that it
    does not.
    """
    kept: list[Candidate] = []
    seen: set[Term] = set()
    for offer in sorted(offers, key=lambda candidate: candidate.order):
        if offer.term in seen:
            continue
        seen.add(offer.term)
        rivals = sum(other.kernels == offer.kernels and other.term.free <= offer.term.free for other in kept)
        if rivals < CANDIDATES_PER_KERNELS:
            kept.append(offer)
        if len(kept) == CANDIDATES_PER_CLASS:
            break
    # A list made together with others is dear for one of them, and all of them share what it costs.
    together: dict[frozenset[int], Candidate] = {}
    for offer in sorted(offers, key=lambda candidate: (candidate.cost, _made_together(candidate.term).digest)):
        if isinstance(offer.term, Component):
            together.setdefault(frozenset(offer.stored), offer)
    known = {found.term for found in kept}
    return kept + [offer for offer in together.values() if offer.term not in known]


def _made_together(term: Term) -> Term:
    """The list of pairs of which a term is a side, or a side of a side: the same for all that one kernel makes."""
    while isinstance(term, Component):
        term = term.pair
    return term


def _list_depths(graph: FrozenGraph) -> dict[int, int]:
    """How many indices must be given before a class's value is a block."""
    depths: dict[int, int] = {}

    def of(node: ENode) -> int | None:
        if isinstance(node.head, Map | At):
            inner = depths.get(node.children[0])
            return None if inner is None else inner + (1 if isinstance(node.head, Map) else -1)
        if isinstance(node.head, Pair | Component):
            return depths.get(node.children[0])
        return 0

    pending: dict[int, EClass] = dict(graph.classes)
    while pending:
        found: dict[int, int] = {}
        for identifier, eclass in pending.items():
            depth = next((depth for node in eclass.nodes if (depth := of(node)) is not None), None)
            if depth is not None:
                found[identifier] = depth
        if not found:
            break  # classes that only refer to each other stand for no term
        depths |= found
        pending = {identifier: eclass for identifier, eclass in pending.items() if identifier not in found}
    return depths
