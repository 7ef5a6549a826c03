"""What forms pay for: terms in the loop passes in which they are needed, as bits, so that sets of them unite quickly.

A term is paid once for every pass; kept for a later pass it may cost less there. Costs are whole numbers of a unit far
below all that matters, so a sum does not depend on the order in which its parts were found. Which terms forms have is
for `extract.py` to say, and what a term costs for `term_costs.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from bbrewrite.core.bits import Bits, places
from bbrewrite.core.terms import Read, Reduce, Term, walk
from bbrewrite.plan.term_costs import TermCosts

# The unit of costs, in seconds.
UNIT = 1e-18

# A loop pass: the index of a reduction and how many passes over that index must come before it.
type Pass = tuple[str, int]


class Item(NamedTuple):
    """One thing paid for: a term in the loop passes in which it is needed; with None, that it is there at all."""

    term: Term
    passes: tuple[Pass, ...] | None


class Bill(NamedTuple):
    """Items as bits, and what they come to: if nothing is kept for a later pass, and if all is whose keeping pays."""

    items: Bits = 0
    estimate: int = 0
    keeping: int = 0


class Items:
    """The bits of items, given as they are met, and what they cost."""

    def __init__(self, costs: TermCosts) -> None:
        self._costs = costs
        self._items: list[Item] = []
        self._estimates: list[int] = []
        self._keepings: list[int] = []
        self._terms: Bits = 0  # the items without passes
        # Items that depend on an index and are in no pass over it; those whose first pass is this one.
        self._depending: dict[str, Bits] = {}
        self._first: dict[str, dict[int, Bits]] = {}
        self._of_term: dict[Term, Bill] = {}
        self._of_heads: dict[tuple[Term, frozenset[str]], tuple[int, int]] = {}
        self._in_passes: dict[Item, Bits] = {}
        self._moved: dict[Pass, dict[int, Bits]] = {}
        self._common: dict[Bits, tuple[int, int]] = {}
        self._parts: dict[Term, Bill] = {}
        self._least: dict[int, int] = {}
        self._waits: dict[int, tuple[Read, int]] = {}
        self._waiting: Bits = 0  # the items that have to wait for what they read

    def united(self, bills: Iterable[Bill]) -> Bill:
        """What several pay for, each item once."""
        items = estimate = keeping = 0
        for bill in bills:
            both = items & bill.items
            items |= bill.items
            estimate += bill.estimate
            keeping += bill.keeping
            if both:
                twice = self._sums(both)
                estimate -= twice[0]
                keeping -= twice[1]
        return Bill(items, estimate, keeping)

    def evaluation(self, term: Term) -> Bill:
        """A term outside of all loops."""
        known = self._of_term.get(term)
        return known or self._evaluated(term, *self._cost(term))

    def _evaluated(self, term: Term, cost: int, again: int) -> Bill:
        """A term outside of all loops that costs so much in the first pass, and in each further one."""
        # The first pass costs what it costs; which of several that is, no item knows.
        bits = self._new(Item(term, None), 0, cost - again) | self._new(Item(term, ()), cost, again)
        bill = self._of_term[term] = Bill(bits, cost, cost)
        return bill

    def with_cost(self, bill: Bill, head: Term, free: frozenset[str], make: Callable[[], Term]) -> Bill:
        """What operands cost together with a term on them, without its items. What it costs itself follows from its
        head and the indices that it mentions, so that few are made.
        """
        costs = self._of_heads.get((head, free))
        if costs is None:
            costs = self._of_heads[head, free] = self._cost(make())
        cost, again = costs
        if isinstance(head, Reduce):
            # A reduction is paid where its loop is and once outside.
            return Bill(bill.items, bill.estimate + 2 * cost, bill.keeping + cost + again)
        return Bill(bill.items, bill.estimate + cost, bill.keeping + cost)

    def with_items(self, bill: Bill, head: Term, term: Term) -> Bill:
        """What `with_cost` gave for a term of this head, with its items."""
        items = self._in_loop(term, bill.items) if isinstance(term, Reduce) else bill.items
        known = self._of_term.get(term) or self._evaluated(term, *self._of_heads[head, term.free])
        return Bill(items | known.items, bill.estimate, bill.keeping)

    def parts(self, term: Term) -> Bill:
        """All terms in one, each outside of all loops."""
        if term not in self._parts:
            self._parts[term] = self.united(map(self.evaluation, walk(term)))
        return self._parts[term]

    def with_loop(self, term: Reduce, bill: Bill) -> Bill:
        """What a reduction costs together with its operands: those that depend on its index are needed in its pass."""
        # In one pass more an item costs what it did.
        cost, again = self._cost(term)
        moved = Bill(self._in_loop(term, bill.items), bill.estimate + cost, bill.keeping + again)
        return self.united((moved, self.evaluation(term)))

    def _in_loop(self, term: Reduce, items: Bits) -> Bits:
        """The items of a reduction's operands in its pass, where they depend on its index, and its own there."""
        index = term.index
        inside = items & self._depending.get(index, 0)
        outside = items & ~inside
        # What is left outside is needed by this loop, so its passes over the same index come before.
        earlier = [number for number, items in self._first.get(index, {}).items() if items & outside]
        this: Pass = (index, 1 + max(earlier, default=-1))
        moved = self._moved.setdefault(this, {})
        found = outside | self._in(Item(term, (this,)), None)
        for place in places(inside):
            found |= moved.get(place) or self._moved_to(this, place)
        return found

    def least(self, bill: Bill) -> int:
        """What no schedule of the terms that are there undercuts."""
        least = self._least
        found = places(bill.items & self._terms)
        for place in found:
            if place not in least:
                term = self._items[place].term
                least[place] = exact(self._costs.least(term))
                wait = self._costs.least_wait(term)
                if wait is not None:
                    self._waits[place] = (wait[0], exact(wait[1]))
                    self._waiting |= 1 << place
        waits: dict[Read, int] = {}
        for place in places(bill.items & self._waiting):
            source, wait_here = self._waits[place]
            waits[source] = max(wait_here, waits.get(source, 0))
        return sum([least[place] for place in found]) + sum(waits.values())

    def _sums(self, items: Bits) -> tuple[int, int]:
        known = self._common.get(items)
        if known is None:
            found = places(items)
            estimate = sum([self._estimates[place] for place in found])
            known = self._common[items] = (estimate, sum([self._keepings[place] for place in found]))
        return known

    def _cost(self, term: Term) -> tuple[int, int]:
        """What a term costs in one pass, and in each further one if it is kept where that pays."""
        cost = exact(self._costs.evaluation(term))
        return cost, min(cost, exact(self._costs.kept(term)))

    def _moved_to(self, this: Pass, place: int) -> Bits:
        """The bit of an item in one more pass around it."""
        item = self._items[place]
        found = self._moved[this][place] = self._in(Item(item.term, (this, *(item.passes or ()))), place)
        return found

    def _in(self, item: Item, like: int | None) -> Bits:
        """The bit of a term in loop passes; it costs as much as it does `like` that, in other ones."""
        found = self._in_passes.get(item)
        if found is None:
            costs = self._cost(item.term) if like is None else (self._estimates[like], self._keepings[like])
            found = self._in_passes[item] = self._new(item, *costs)
        return found

    def _new(self, item: Item, estimate: int, keeping: int) -> Bits:
        bit = 1 << len(self._items)
        self._items.append(item)
        self._estimates.append(estimate)
        self._keepings.append(keeping)
        if item.passes is None:
            self._terms |= bit
            return bit
        around = [index for index, _ in item.passes]
        for index in item.term.free:
            if index not in around:
                self._depending[index] = self._depending.get(index, 0) | bit
        if item.passes:
            index, number = item.passes[0]
            first = self._first.setdefault(index, {})
            first[number] = first.get(number, 0) | bit
        return bit


def exact(seconds: float) -> int:
    """A cost in whole units."""
    return round(seconds / UNIT)
