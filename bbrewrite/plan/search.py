"""The choice of a plan: which lists are stored in global memory, and by which kernel each.

A plan gives every output, and every list that one of its kernels reads, a kernel; one kernel may store several, and
its cost is paid once. A plan's cost is the sum over kernels,
each priced by the schedule found for it. Best-first search: kernels are scheduled only when the cheapest plan left,
by bounds of what is not scheduled yet, needs them. So without a limit the plan found is the cheapest there is; with
one it is the best of those whose kernels were scheduled, and the least bound left tells how far off it can be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import islice
from math import inf

from bbrewrite.plan.extract import Extraction, KernelForm

# Partial plans looked at, at most.
STEPS = 20_000
# How many of the choices whose kernels are all scheduled are looked at, cheapest first.
CHOICES_COMPARED = 200


@dataclass(frozen=True)
class Choice:
    """The kernels of a plan: together they store every output and every list that one of them reads, each once."""

    kernels: tuple[KernelForm, ...]
    seconds: float

    @property
    def size(self) -> tuple[int, int]:
        """How many lists it stores, and by how many kernels."""
        return (sum(len(kernel.stores) for kernel in self.kernels), len(self.kernels))


@dataclass(frozen=True)
class Found:
    """What a search came to: the best choice below the ceiling, None where there is none; and the least bound of
    the choices that a limit kept it from looking at, infinite where there were none.
    """

    best: Choice | None
    bound_left: float

    @property
    def is_complete(self) -> bool:
        return self.bound_left == inf


class Prices:
    """What kernels cost, as far as is known; `schedule` prices one, and is asked as rarely as can be.

    Kernels that store the same lists and read the same lists serve alike, so the cheapest of them stands for all.
    """

    def __init__(self, extraction: Extraction, schedule: Callable[[KernelForm], float], forms_tried: int) -> None:
        self._schedule = schedule
        alike: dict[tuple[frozenset[str], frozenset[str]], list[KernelForm]] = {}
        for kernel in extraction.kernels:
            alike.setdefault((frozenset(kernel.stores), kernel.lists_read), []).append(kernel)
        self.makers: dict[str, list[_Group]] = {name: [] for name in extraction.lists.by_name}
        for found in alike.values():
            keeping = min(found, key=lambda kernel: (kernel.keeping, kernel.term.digest))
            ordered = sorted(found, key=lambda kernel: kernel.order)
            group = _Group(tuple(dict.fromkeys((*ordered[:forms_tried], keeping))))
            for name in group.stores:
                self.makers[name].append(group)
        for groups in self.makers.values():
            groups.sort(key=lambda group: (group.bound, group.forms[0].term.digest))
        self._least: dict[str, float] = {}

    def refine(self, group: _Group) -> None:
        """Prices one more kernel of a group: the most promising."""
        form = group.waiting.pop(0)
        seconds = self._schedule(form)
        if seconds < group.seconds:
            group.seconds, group.best = seconds, form
        group.set_bound()
        for name in group.stores:
            self._least.pop(name, None)

    def least(self, name: str) -> float:
        """A bound for a list's share in the cheapest kernel that stores it; shares of one kernel add up to it."""
        if name not in self._least:
            self._least[name] = min((group.bound / len(group.stores) for group in self.makers[name]), default=inf)
        return self._least[name]


@dataclass(eq=False)
class _Group:
    """The kernels that store the same lists and read the same: those still to be priced, and the cheapest priced."""

    forms: tuple[KernelForm, ...]
    stores: frozenset[str] = field(init=False)
    lists_read: frozenset[str] = field(init=False)
    waiting: list[KernelForm] = field(init=False)
    seconds: float = inf
    best: KernelForm | None = None
    bound: float = field(init=False)  # kept: a search asks for it all the time

    def __post_init__(self) -> None:
        self.stores = frozenset(self.forms[0].stores)
        self.lists_read = self.forms[0].lists_read
        self.waiting = list(self.forms)
        self.set_bound()

    def set_bound(self) -> None:
        """Finds the bound again after pricing."""
        self.bound = min([self.seconds, *(form.bound for form in self.waiting)])

    @property
    def is_settled(self) -> bool:
        """Whether no kernel that is not priced yet can be cheaper than the cheapest priced."""
        return self.seconds <= min((form.bound for form in self.waiting), default=inf)


@dataclass(frozen=True)
class _Partial:
    """Some kernels of a choice, the lists that they store, and those that are wanted besides, by name."""

    groups: tuple[_Group, ...]
    reads: Mapping[str, frozenset[str]]  # for each list stored, what its kernel reads
    pending: tuple[str, ...]

    def with_kernel(self, group: _Group) -> _Partial | None:
        """One more kernel; None where it stores what another stores, or a list would be made, through others, from
        itself.
        """
        if any(name in self.reads for name in group.stores):
            return None
        waiting, seen = list(group.lists_read), set[str]()
        while waiting:
            name = waiting.pop()
            if name in group.stores:
                return None
            if name not in seen:
                seen.add(name)
                waiting += self.reads.get(name, ())
        reads = {**self.reads, **dict.fromkeys(group.stores, group.lists_read)}
        wanted = {*self.pending, *group.lists_read}
        return _Partial((*self.groups, group), reads, tuple(sorted(wanted.difference(reads))))

    def bound(self, prices: Prices) -> float:
        """What no choice with these kernels undercuts."""
        return sum(group.bound for group in self.groups) + sum(map(prices.least, self.pending))

    @property
    def least_size(self) -> tuple[int, int]:
        """How many lists a choice stores at least, and by how many kernels."""
        return (len(self.reads) + len(self.pending), len(self.groups) + bool(self.pending))

    @property
    def choice(self) -> Choice:
        """The choice that it is where nothing is pending, of the cheapest kernels priced."""
        kernels = tuple(group.best for group in self.groups if group.best is not None)
        return Choice(kernels, sum(group.seconds for group in self.groups))


type _Rank = tuple[int, int, float]


def search(
    prices: Prices,
    outputs: tuple[str, ...],
    ceiling: float,
    may_schedule: Callable[[], bool],
    fewest_lists: bool = False,
) -> Found:
    """The cheapest choice for the outputs that costs less than `ceiling`, as long as kernels may be scheduled.

    With `fewest_lists` the one of those below the ceiling that stores fewest lists, by fewest kernels; the cheapest
    of them.
    """
    queue: list[tuple[_Rank, int, _Partial]] = [((0, 0, 0.0), 0, _nothing_yet(outputs))]
    pushed = 0

    def rank(partial: _Partial) -> _Rank:
        lists, kernels = partial.least_size if fewest_lists else (0, 0)
        return (lists, kernels, partial.bound(prices))

    for _ in range(STEPS):
        if not queue:
            return Found(None, inf)
        known, _, partial = heappop(queue)
        if rank(partial) > known:
            successors = [partial]
        elif partial.pending:
            # The dearest list first: it tells most.
            name = max(partial.pending, key=lambda name: (prices.least(name), name))
            successors = [found for group in prices.makers[name] if (found := partial.with_kernel(group))]
        else:
            unsettled = [group for group in partial.groups if not group.is_settled]
            if not unsettled:
                return Found(partial.choice, inf)
            if not may_schedule():
                heappush(queue, (known, 0, partial))
                break
            prices.refine(max(unsettled, key=lambda group: (group.bound, group.forms[0].term.digest)))
            successors = [partial]
        for successor in successors:
            value = rank(successor)
            if value[-1] < ceiling:
                pushed += 1
                heappush(queue, (value, pushed, successor))
    left = min((entry[0][-1] for entry in queue), default=inf)
    found = list(islice(priced_choices(prices, outputs, ceiling), CHOICES_COMPARED))
    if not fewest_lists:
        return Found(found[0] if found else None, left)
    return Found(min(found, key=lambda choice: choice.size, default=None), left)


def priced_choices(prices: Prices, outputs: tuple[str, ...], ceiling: float = inf) -> Iterator[Choice]:
    """The choices of which every kernel has been scheduled, cheapest first, as far as the limit of steps allows."""
    known = {name: tuple(g for g in groups if g.best is not None) for name, groups in prices.makers.items()}
    least = {name: min((g.seconds / len(g.stores) for g in groups), default=inf) for name, groups in known.items()}
    queue: list[tuple[float, int, _Partial]] = [(0.0, 0, _nothing_yet(outputs))]
    pushed = 0
    for _ in range(STEPS):
        if not queue:
            return
        _, _, partial = heappop(queue)
        if not partial.pending:
            yield partial.choice
            continue
        name = max(partial.pending, key=lambda name: (least[name], name))
        for group in known[name]:
            successor = partial.with_kernel(group)
            if successor is None:
                continue
            value = sum(g.seconds for g in successor.groups) + sum(least[p] for p in successor.pending)
            if value < ceiling:
                pushed += 1
                heappush(queue, (value, pushed, successor))


def _nothing_yet(outputs: tuple[str, ...]) -> _Partial:
    return _Partial((), {}, tuple(sorted(set(outputs))))
