"""The walk through plans, best first: which makers together store every list that is wanted, at the costs given.

Lists are bits of a number, so that sets of them are quickly compared. A maker stands for the kernels that store the
same lists and read the same; a partial plan has makers for some lists and others pending. Of partial plans that can
only be completed alike, the cheapest stands for all: what is left to do depends on what is pending, and on what is
stored only as far as it could be wanted or stored again. So a walk looks at few plans even where there are very many.
What a kernel costs, and when it is scheduled, is for `search.py` to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf

from bbrewrite.core.bits import Bits, places
from bbrewrite.plan.extraction.parts import reachable

# Partial plans looked at in one walk, at most.
STEPS = 20_000
# Sums of the same costs in another order differ by less than this share of them.
ROUNDING = 1e-9

type _Rank = tuple[int, int, float]


@dataclass(frozen=True)
class Maker:
    """The lists that kernels store together, and those that they read, as bits."""

    stores: Bits
    reads: Bits


class ListBits:
    """A bit for each list: a list has a higher one than those that its makers may need, except where each may need
    the other. So what is expanded from the highest on is seldom wanted again.
    """

    def __init__(self, names: Iterable[str], kernels: Iterable[tuple[frozenset[str], frozenset[str]]]) -> None:
        """`kernels` are the lists that one stores, and those that it reads."""
        needed: dict[str, set[str]] = {name: set() for name in names}
        for stores, reads in kernels:
            for name in stores:
                needed[name] |= stores | reads
        behind = {name: reachable(name, needed) for name in needed}
        ordered = sorted(behind, key=lambda name: (len(behind[name]), name))
        self._place = {name: place for place, name in enumerate(ordered)}
        self._behind = [self.of(behind[name]) for name in ordered]

    def of(self, names: Iterable[str]) -> Bits:
        """Lists as bits."""
        return sum(1 << self._place[name] for name in set(names))

    def behind(self, lists: Bits) -> Bits:
        """All lists that plans for some lists may store or read."""
        found = 0
        for place in places(lists):
            found |= self._behind[place]
        return found


@dataclass(frozen=True, slots=True)
class PartialPlan:
    """Some makers of a plan with what they cost, the lists that they store, and those that are wanted besides."""

    makers: tuple[Maker, ...]
    seconds: float
    stored: Bits
    pending: Bits

    def with_maker(self, maker: Maker, seconds: float) -> PartialPlan | None:
        """One more maker; None where it stores what another stores, or a list would be made, through others, from
        itself.
        """
        if maker.stores & self.stored or (maker.reads & self.stored and self._needs(maker.reads) & maker.stores):
            return None
        stored = self.stored | maker.stores
        return PartialPlan(
            (*self.makers, maker), self.seconds + seconds, stored, (self.pending | maker.reads) & ~stored
        )

    def _needs(self, lists: Bits) -> Bits:
        """Lists, and all from which they are made here."""
        found, waiting = lists, lists & self.stored
        while waiting:
            more = 0
            for maker in self.makers:
                if maker.stores & waiting:
                    more |= maker.reads
            waiting = more & self.stored & ~found
            found |= more
        return found

    @property
    def least_size(self) -> tuple[int, int]:
        """How many lists a plan with these makers stores at least, and by how many kernels."""
        return ((self.stored | self.pending).bit_count(), len(self.makers) + bool(self.pending))


class Walk:
    """Whole plans for the lists wanted that cost less than the ceiling, cheapest first; with `fewest_lists` those that
    store fewest lists, by fewest kernels, come first. As far as the limit of steps allows.

    With `best_only` the first plan is all that is asked for, and plans that another stands for are left out. Those of
    no more than so many kernels are left out, too.
    """

    def __init__(
        self,
        lists: ListBits,
        seconds: Mapping[Maker, float],
        wanted: Bits,
        ceiling: float,
        fewest_lists: bool = False,
        best_only: bool = True,
        more_than: int = 0,
    ) -> None:
        self._lists = lists
        self._more_than = more_than
        self._ceiling = ceiling
        self._fewest_lists = fewest_lists
        self._best_only = best_only
        self._least: dict[int, float] = {}
        for maker, cost in seconds.items():
            share = cost / maker.stores.bit_count()
            for place in places(maker.stores):
                self._least[place] = min(share, self._least.get(place, inf))
        # For every list its makers in order of what each adds to the bound of a plan, at least, with their number.
        self._makers: dict[int, list[tuple[float, int, Maker, float]]] = {place: [] for place in self._least}
        for number, (maker, cost) in enumerate(seconds.items()):
            stored = places(maker.stores)
            added = cost - sum([self._least[place] for place in stored])
            for place in stored:
                self._makers[place].append((added, number, maker, cost))
        for makers in self._makers.values():
            makers.sort(key=lambda entry: entry[0])
        self._least_of_pending: dict[Bits, float] = {}
        self._behind_pending: dict[Bits, Bits] = {}
        self._cheapest: dict[object, float] = {}
        self._queue: list[tuple[_Rank, int, PartialPlan]] = []
        self._pushed = 0
        self._push(PartialPlan((), 0.0, 0, wanted))

    def plans(self) -> Iterator[PartialPlan]:
        """The plans in order."""
        for _ in range(STEPS):
            if not self._queue:
                return
            _, _, partial = heappop(self._queue)
            if not partial.pending:
                if len(partial.makers) > self._more_than:
                    yield partial
            elif not self._best_only or self._is_first_of_its_kind(partial):
                for successor in self._successors(partial):
                    self._push(successor)

    def _successors(self, partial: PartialPlan) -> list[PartialPlan]:
        """The plans with one maker more, of the highest list that is wanted, as far as they may cost less than the
        ceiling; in the order in which makers were given, which decides between equals.
        """
        room = self._ceiling - partial.seconds - self._least_for(partial.pending) + ROUNDING * self._ceiling
        found: list[tuple[int, PartialPlan]] = []
        for added, number, maker, seconds in self._makers.get(partial.pending.bit_length() - 1, ()):
            if added > room:
                break
            successor = partial.with_maker(maker, seconds)
            if successor is not None:
                found.append((number, successor))
        found.sort(key=lambda entry: entry[0])
        return [successor for _, successor in found]

    @property
    def bound_left(self) -> float:
        """What none of the plans undercuts that were not looked at."""
        return min((rank[-1] for rank, _, _ in self._queue), default=inf)

    def _push(self, partial: PartialPlan) -> None:
        bound = partial.seconds + self._least_for(partial.pending)
        if bound < self._ceiling:
            lists, kernels = partial.least_size if self._fewest_lists else (0, 0)
            self._pushed += 1
            heappush(self._queue, ((lists, kernels, bound), self._pushed, partial))

    def _least_for(self, pending: Bits) -> float:
        """What no makers of lists undercut: shares of one maker add up to what it costs."""
        if pending not in self._least_of_pending:
            self._least_of_pending[pending] = sum(self._least.get(place, inf) for place in places(pending))
        return self._least_of_pending[pending]

    def _is_first_of_its_kind(self, partial: PartialPlan) -> bool:
        """Whether no partial plan that is no dearer can be completed in the same ways."""
        if partial.pending not in self._behind_pending:
            self._behind_pending[partial.pending] = self._lists.behind(partial.pending)
        seen_again = partial.stored & self._behind_pending[partial.pending]
        makers = frozenset(maker for maker in partial.makers if maker.stores & seen_again)
        kind = (partial.pending, seen_again, makers, min(len(partial.makers), self._more_than))
        if self._cheapest.get(kind, inf) <= partial.seconds:
            return False
        self._cheapest[kind] = partial.seconds
        return True
