"""Extraction: from a frozen e-graph to the kernels that could store each of its lists.

Bottom-up dynamic programming over e-classes. A *form* of a class is a term together with what it costs, itemised by
subterm and loop pass, so that shared work is paid once and a value needed in two passes over a loop is paid twice.
A block is computed, or read from a list in global memory (a `Read` of the list's name): what reads a list knows
nothing of how the list is made. So what is found are all kernels that could store a list, or several lists together
as sides of a pair, told apart by the lists that they read; choosing among those is left to `search.py`.

The scope rule is kept by the indices that a form mentions. A class whose value does not depend on k may contain a
term that mentions k (`at(M, k)` for a list M of equal items); such a term is usable inside k's loop only. Binders
remove their index from the set, and what a kernel stores must mention none but its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

from bbrewrite.core.terms import Component, Map, Pair, Read, Stored, Term
from bbrewrite.egraph.view import ENode, FrozenGraph
from bbrewrite.plan.extraction.agreement import NOTHING_CHOSEN, Chosen, ChosenTerms
from bbrewrite.plan.extraction.forms import (
    Form,
    Offer,
    Weighed,
    by_estimate,
    by_structure,
    cheapest,
    each_once,
    first,
    in_order,
    ranked,
    term_of,
)
from bbrewrite.plan.extraction.items import UNIT, Bill, Items, exact
from bbrewrite.plan.extraction.lists import Lists
from bbrewrite.plan.extraction.sets import sets_tried
from bbrewrite.plan.term_costs import TermCosts


@dataclass(frozen=True)
class Limits:
    """How many forms a class keeps: at most so many that read the same lists, and so many in all."""

    of_same_reads: int
    in_all: int


# On a small graph nothing is left out. On others, forms that read the same lists differ in algebra only, and the
# estimate is good enough to choose among them.
SMALL_GRAPH = 40
EVERY_FORM = Limits(of_same_reads=1000, in_all=1000)
FEW_FORMS = Limits(of_same_reads=2, in_all=64)


@dataclass(frozen=True)
class KernelForm:
    """A kernel that could store some lists: its whole term, which is a nest of pairs where they are several, its
    estimates in seconds, as those of a form, and a bound below which no schedule of it costs.
    """

    stores: tuple[str, ...]
    term: Term
    estimate: float
    keeping: float
    bound: float
    lists_read: frozenset[str]


@dataclass(frozen=True)
class Extraction:
    """The lists of a graph with the kernels that could store them, and whether some had to be left out."""

    lists: Lists
    kernels: tuple[KernelForm, ...]
    is_complete: bool


def extract(graph: FrozenGraph, lists: Lists, costs: TermCosts, limits: Limits | None = None) -> Extraction:
    """All kernels for every list, or the most promising ones where the graph is large; `limits` if not these."""
    search = _Extraction(graph, lists, costs, limits or _limits(graph))
    kernels = [kernel for name in sets_tried(lists) for kernel in search.kernels_of(name)]
    return Extraction(lists, tuple(kernels), search.is_complete)


def extract_alone(graph: FrozenGraph, lists: Lists, costs: TermCosts, outputs: frozenset[str]) -> Extraction:
    """Only the kernels that store these lists together and read no list. They are few, and soon found."""
    names = [name for name in sets_tried(lists) if frozenset(lists.stored_as(name)) == outputs]
    if not names:
        return Extraction(lists, (), True)
    search = _Extraction(graph, lists, costs, _limits(graph), reads_lists=False)
    return Extraction(lists, tuple(kernel for name in names for kernel in search.kernels_of(name)), search.is_complete)


def _limits(graph: FrozenGraph) -> Limits:
    nodes = sum(len(eclass.nodes) for eclass in graph.classes.values())
    return EVERY_FORM if nodes <= SMALL_GRAPH else FEW_FORMS


class _Extraction:
    """The fixed point of forms over all classes of blocks."""

    def __init__(
        self, graph: FrozenGraph, lists: Lists, costs: TermCosts, limits: Limits, reads_lists: bool = True
    ) -> None:
        self._reads_lists = reads_lists
        self._graph = graph
        self._lists = lists
        self._costs = costs
        self._limits = limits
        self._found: dict[int, list[Form]] = {identifier: [] for identifier in graph.classes}
        self._of_lists: dict[int, list[Form]] = {}
        self._unions: dict[tuple[frozenset[str], ...], frozenset[str]] = {}
        self._free: dict[tuple[Term, tuple[frozenset[str], ...]], frozenset[str]] = {}
        self._making: dict[frozenset[str], int] = {}
        self._chosen = ChosenTerms()
        self._items = Items(costs)
        self.is_complete = True
        self._run()

    def _run(self) -> None:
        users: dict[int, set[int]] = {identifier: set() for identifier in self._graph.classes}
        blocks = [identifier for identifier in self._graph.classes if self._lists.is_block(identifier)]
        for identifier in blocks:
            for node in self._graph.classes[identifier].nodes:
                for child in node.children:
                    users[child].add(identifier)
        pending = set(blocks)
        # Operands first, as far as cycles allow, so that most classes are looked at once.
        order = _operands_first(self._graph, blocks)
        # Every round that changes something makes a class cheaper or reaches one more, so this ends.
        while pending:
            for identifier in order:
                if identifier in pending:
                    pending.discard(identifier)
                    if self._improve(identifier):
                        pending |= users[identifier]

    def _improve(self, identifier: int) -> bool:
        """Recomputes a class's forms from those of its operands; true where they changed."""
        nodes = self._graph.classes[identifier].nodes
        offers: list[Weighed] = [offer for node in nodes for offer in self._offers(identifier, node)]
        if self._reads_lists:
            offers += [self._read_form(read) for read in self._lists.reads(identifier)]
        before = self._found[identifier]
        # Forms of one class's nodes are different terms, but not those found before or in a pair.
        if before or any(isinstance(node.head, Component) for node in nodes):
            offers = each_once([*offers, *before])
        kept = [self._made(offer) for offer in self._pruned(offers)]
        if [found.term for found in kept] == [found.term for found in before]:
            return False
        self._found[identifier] = [
            Form(term, bill, chosen.with_bits(self._chosen.one(identifier, term)), read, free)
            for term, bill, chosen, read, free in kept
        ]
        return True

    def _offers(self, identifier: int, node: ENode) -> Iterator[Weighed]:
        if isinstance(node.head, Component):
            yield from self._sides(node.children[0], node.head.position)
        elif all(self._lists.is_block(child) for child in node.children):
            own = self._chosen.bit_of(identifier)
            for operands, chosen in self._agreeing([self._found[child] for child in node.children]):
                if not chosen.classes & own:
                    yield self._offer(node, operands, chosen)

    def _offer(self, node: ENode, operands: tuple[Form, ...], chosen: Chosen) -> Offer:
        bill, read = self._of_operands(operands)
        free = self._mentioned(node.head, tuple([operand.free for operand in operands]))
        if not isinstance(node.head, Map | Stored | Pair):
            bill = self._items.with_cost(bill, node.head, free, lambda: term_of(node, operands))
        return Offer(node, operands, bill, chosen, read, free)

    def _made(self, form: Weighed) -> Form:
        """A form with its term and all its items."""
        if isinstance(form, Form):
            return form
        term, head, bill = form.term, form.node.head, form.bill
        if not isinstance(head, Map | Stored | Pair):
            bill = self._items.with_items(bill, head, term)
        return Form(term, bill, form.chosen, form.lists_read, form.free)

    def _agreeing(self, found: list[list[Form]]) -> list[tuple[tuple[Form, ...], Chosen]]:
        """The combinations of operands' forms in which no value is computed in two ways, while there are such; each
        with the terms that its operands have for classes. Where they do not agree, those of the last.
        """
        agreeing: list[tuple[tuple[Form, ...], Chosen]] = [((), NOTHING_CHOSEN)]
        for forms in found:
            agreeing = [
                ((*operands, form), chosen.with_bits(form.chosen))
                for operands, chosen in agreeing
                for form in forms
                if chosen.agrees_with(form.chosen)
            ]
        if agreeing:
            return agreeing
        return [(operands, self._chosen.latest([form.chosen for form in operands])) for operands in product(*found)]

    def _sides(self, pair: int, position: int) -> Iterator[Form]:
        """One side of a pair of blocks is that block."""
        for node in self._graph.classes[pair].nodes:
            if isinstance(node.head, Pair):
                yield from self._found[node.children[position]]

    def _read_form(self, term: Read) -> Form:
        """A block that is loaded from a list."""
        return Form(term, self._items.evaluation(term), NOTHING_CHOSEN, frozenset({term.tensor}), term.free)

    def _of_operands(self, operands: tuple[Form, ...]) -> tuple[Bill, frozenset[str]]:
        """What operands cost together, and the lists that they read."""
        if len(operands) == 1:
            return operands[0].bill, operands[0].lists_read
        bill = self._items.united([operand.bill for operand in operands])
        return bill, self._united(tuple([operand.lists_read for operand in operands]))

    def _united(self, names: tuple[frozenset[str], ...]) -> frozenset[str]:
        """Names of all sets. Few sets are met, very often."""
        known = self._unions.get(names)
        if known is None:
            known = self._unions[names] = frozenset[str]().union(*names)
        return known

    def _mentioned(self, head: Term, operands: tuple[frozenset[str], ...]) -> frozenset[str]:
        """The indices that a term mentions, by its head and those that its operands mention."""
        known = self._free.get((head, operands))
        if known is None:
            known = self._free[head, operands] = head.free.union(*operands) - {head.bound_index}
        return known

    def _pruned(self, offers: Iterable[Weighed]) -> list[Weighed]:
        """The forms within the limits, in order of what they cost.

        Where there are too many, the best for every set of lists come before the second best for any, so that no way to
        split a program into kernels is lost to algebra; and what it takes to make the lists that are read counts.
        """
        alike: dict[frozenset[str], list[Weighed]] = {}
        for offer in offers:
            alike.setdefault(offer.lists_read, []).append(offer)
        count = self._limits.in_all
        if len(alike) < count:
            found = [entry for rivals in alike.values() for entry in ranked(rivals, self._limits.of_same_reads)]
            if len(found) > count:
                found = cheapest(found, count, self._rank_among_many, lambda entry: entry[1].term)
            kept = [form for _, form in found]
        else:
            # The best for every set of lists are as many as may be kept.
            def best_of(entry: tuple[int, Weighed]) -> Weighed:
                return first(alike[entry[1].lists_read], by_estimate)

            best = [(0, min(rivals, key=by_estimate)) for rivals in alike.values()]
            best = cheapest(best, count, self._rank_among_many, lambda entry: best_of(entry).term)
            kept = [best_of(entry) for entry in best]
        self.is_complete = self.is_complete and len(kept) == sum(map(len, alike.values()))
        return in_order(kept, by_estimate, by_structure)

    def _rank_among_many(self, entry: tuple[int, Weighed]) -> tuple[int, bool, int, int]:
        """How soon a form is left out; the best that reads no list never, for the report compares plans with it."""
        rivals, form = entry
        estimate = form.bill.estimate
        return (rivals, bool(form.lists_read), estimate + self._to_make(form.lists_read), estimate)

    def _to_make(self, lists_read: frozenset[str]) -> int:
        """What it takes to make lists from scratch, each by a kernel of its own but with what they share made once."""
        if lists_read not in self._making:
            parts = self._items.united(self._items.parts(self._lists.from_scratch(name)) for name in lists_read)
            tensors = [self._lists.by_name[name].tensor for name in lists_read]
            stores = [exact(self._costs.launch + self._costs.store(tensor)) for tensor in tensors if tensor]
            self._making[lists_read] = sum(stores) + parts.estimate
        return self._making[lists_read]

    def kernels_of(self, name: str) -> tuple[KernelForm, ...]:
        """The kernels that could store a list, or all lists of a pair, in order of the estimate."""
        stores = self._lists.stored_as(name)
        found: dict[Term, KernelForm] = {}
        launched: dict[tuple[tuple[str, ...], ...], float] = {}  # a launch and stores, by the indices stored along
        for form in self._list_forms(self._lists.by_name[name].identifier) if stores else ():
            outputs = list(stored_blocks(form.term))
            scoped = all(body.free.issubset(indices) for indices, body in outputs)
            # A value computed from its own stored list is only a copy of it.
            if scoped and form.lists_read.isdisjoint(stores):
                along = tuple([indices for indices, _ in outputs])
                own = launched.get(along)
                if own is None:
                    stored = [self._lists.as_stored(n, indices) for n, indices in zip(stores, along, strict=True)]
                    own = launched[along] = self._costs.launch + sum(map(self._costs.store, stored))
                bill = form.bill
                estimate, keeping, bound = (
                    own + cost * UNIT for cost in (bill.estimate, bill.keeping, self._items.least(bill))
                )
                found[form.term] = KernelForm(stores, form.term, estimate, keeping, bound, form.lists_read)
        return tuple(in_order(found.values(), lambda kernel: kernel.estimate, lambda kernel: kernel.term))

    def _list_forms(self, identifier: int) -> list[Form]:
        """The forms of a list, which may be one of pairs; those of a block are its own."""
        if self._lists.is_block(identifier):
            return self._found[identifier]
        if identifier not in self._of_lists:
            offers: list[Offer] = []
            for node in self._graph.classes[identifier].nodes:
                if isinstance(node.head, Map | Stored | Pair):
                    operands = [self._list_forms(child) for child in node.children]
                    offers += [self._offer(node, forms, chosen) for forms, chosen in self._agreeing(operands)]
            self._of_lists[identifier] = [self._made(offer) for offer in self._pruned(offers)]
        return self._of_lists[identifier]


def stored_blocks(term: Term, indices: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Term]]:
    """What a list's term stores: the indices and the block at them, of each of a pair's lists."""
    match term:
        case Map(index, body):
            yield from stored_blocks(body, (*indices, index))
        case Stored(value):
            yield from stored_blocks(value, indices)
        case Pair(first, second):
            yield from stored_blocks(first, indices)
            yield from stored_blocks(second, indices)
        case _:
            yield indices, term


def _operands_first(graph: FrozenGraph, identifiers: list[int]) -> list[int]:
    """Classes after the classes of their nodes' operands, except around cycles."""
    order: dict[int, None] = {}
    entered: set[int] = set()
    for start in identifiers:
        stack = [(start, False)]
        while stack:
            identifier, done = stack.pop()
            if done:
                order.setdefault(identifier)
            elif identifier not in entered:
                entered.add(identifier)
                stack.append((identifier, True))
                stack += [(child, False) for node in graph.classes[identifier].nodes for child in node.children]
    wanted = frozenset(identifiers)
    return [identifier for identifier in order if identifier in wanted]
