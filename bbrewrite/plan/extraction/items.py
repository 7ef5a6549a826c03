"""What forms pay for: terms in the loop passes in which they are needed, as bits, so that sets of them unite quickly.

A term is paid once for every pass; kept for a later pass it may cost less there. Costs are whole numbers of a unit far
below all that matters, so a sum does not depend on the order in which its parts were found. Which terms forms have is
for `extract.py` to say, and what a term costs for `term_costs.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from bbrewrite.core.bits import Bits, places
from bbrewrite.core.terms import Read, Reduce, Term, walk
from bbrewrite.plan.term_costs import TermCosts

# The unit of costs, in seconds.
UNIT = 1e-18

# A loop pass: the index of a reduction and how many passes over that index must come before it.
type Pass = tuple[str, int]


@dataclass(frozen=True)
class Item:
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
        self._in_passes: dict[tuple[Term, tuple[Pass, ...]], Bits] = {}
        self._moved: dict[tuple[Pass, int], Bits] = {}
        self._common: dict[Bits, tuple[int, int]] = {}
        self._parts: dict[Term, Bill] = {}
        self._least: dict[int, int] = {}
        self._waits: dict[int, tuple[Read, int]] = {}

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
        if term not in self._of_term:
            cost, again = self._cost(term)
            # The first pass costs what it costs; which of several that is, no item knows.
            bits = self._new(Item(term, None), 0, cost - again) | self._new(Item(term, ()), cost, again)
            self._of_term[term] = Bill(bits, cost, cost)
        return self._of_term[term]

    def with_cost(self, bill: Bill, head: Term, free: frozenset[str], make: Callable[[], Term]) -> Bill:
        """What operands cost together with a term on them, without its items. What it costs itself follows from its
        head and the indices that it mentions, so that few are made.
        """
        if (head, free) not in self._of_heads:
            cost, again = self._cost(make())
            # A reduction is paid where its loop is and once outside.
            self._of_heads[head, free] = (2 * cost, cost + again) if isinstance(head, Reduce) else (cost, cost)
        estimate, keeping = self._of_heads[head, free]
        return Bill(bill.items, bill.estimate + estimate, bill.keeping + keeping)

    def parts(self, term: Term) -> Bill:
        """All terms in one, each outside of all loops."""
        if term not in self._parts:
            self._parts[term] = self.united(map(self.evaluation, walk(term)))
        return self._parts[term]

    def with_loop(self, term: Reduce, bill: Bill) -> Bill:
        """What a reduction costs together with its operands: those that depend on its index are needed in its pass."""
        index = term.index
        inside = bill.items & self._depending.get(index, 0)
        outside = bill.items & ~inside
        # What is left outside is needed by this loop, so its passes over the same index come before.
        earlier = [number for number, items in self._first.get(index, {}).items() if items & outside]
        this: Pass = (index, 1 + max(earlier, default=-1))
        items = outside | self._in(term, (this,))
        for place in places(inside):
            items |= self._moved_to(this, place)
        # In one pass more an item costs what it did.
        cost, again = self._cost(term)
        moved = Bill(items, bill.estimate + cost, bill.keeping + again)
        return self.united((moved, self.evaluation(term)))

    def least(self, bill: Bill) -> int:
        """What no schedule of the terms that are there undercuts."""
        total = 0
        waits: dict[Read, int] = {}
        for place in places(bill.items & self._terms):
            if place not in self._least:
                term = self._items[place].term
                self._least[place] = exact(self._costs.least(term))
                wait = self._costs.least_wait(term)
                if wait is not None:
                    self._waits[place] = (wait[0], exact(wait[1]))
            total += self._least[place]
            if place in self._waits:
                source, wait_here = self._waits[place]
                waits[source] = max(wait_here, waits.get(source, 0))
        return total + sum(waits.values())

    def _sums(self, items: Bits) -> tuple[int, int]:
        if items not in self._common:
            found = list(places(items))
            estimate = sum([self._estimates[place] for place in found])
            self._common[items] = (estimate, sum([self._keepings[place] for place in found]))
        return self._common[items]

    def _cost(self, term: Term) -> tuple[int, int]:
        """What a term costs in one pass, and in each further one if it is kept where that pays."""
        cost = exact(self._costs.evaluation(term))
        return cost, min(cost, exact(self._costs.kept(term)))

    def _moved_to(self, this: Pass, place: int) -> Bits:
        """The bit of an item in one more pass around it."""
        if (this, place) not in self._moved:
            item = self._items[place]
            self._moved[this, place] = self._in(item.term, (this, *(item.passes or ())))
        return self._moved[this, place]

    def _in(self, term: Term, passes: tuple[Pass, ...]) -> Bits:
        """The bit of a term in loop passes."""
        if (term, passes) not in self._in_passes:
            self._in_passes[term, passes] = self._new(Item(term, passes), *self._cost(term))
        return self._in_passes[term, passes]

    def _new(self, item: Item, estimate: int, keeping: int) -> Bits:
        bit = 1 << len(self._items)
        self._items.append(item)
        self._estimates.append(estimate)
        self._keepings.append(keeping)
        if item.passes is None:
            self._terms |= bit
            return bit
        for index in item.term.free:
            if not any(index == inner for inner, _ in item.passes):
                self._depending[index] = self._depending.get(index, 0) | bit
        if item.passes:
            index, number = item.passes[0]
            first = self._first.setdefault(index, {})
            first[number] = first.get(number, 0) | bit
        return bit


def exact(seconds: float) -> int:
    """A cost in whole units."""
    return round(seconds / UNIT)
