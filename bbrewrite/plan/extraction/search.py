"""The choice of a plan: which lists are stored in global memory, and by which kernel each.

A plan gives every output, and every list that one of its kernels reads, a kernel; one kernel may store several, and
its cost is paid once. A plan's cost is the sum over kernels, each priced by the schedule found for it. The cheapest
plan by bounds of what is not scheduled yet is found, and as long as one of its kernels is not, that one is scheduled
and the plan found again. So without a limit the plan found is the cheapest there is; with one it is the best of those
whose kernels were scheduled, and the least bound left tells how far off it can be. How plans are walked through, best
first, is for `partial_plans.py` to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from math import inf

from bbrewrite.core.terms import Term
from bbrewrite.plan.extraction.extract import Extraction, KernelForm
from bbrewrite.plan.extraction.forms import in_order
from bbrewrite.plan.extraction.partial_plans import ListBits, Maker, PartialPlan, Walk

# How many of the choices whose kernels are all scheduled are looked at, cheapest first.
CHOICES_COMPARED = 200


@dataclass(frozen=True)
class Choice:
    """The kernels of a plan: together they store every output and every list that one of them reads, each once."""

    kernels: tuple[KernelForm, ...]
    seconds: float

    @property
    def lists(self) -> int:
        """How many lists it stores."""
        return sum(len(kernel.stores) for kernel in self.kernels)


@dataclass(frozen=True)
class Promise:
    """What none of some plans undercuts, and the kernels that promise as much; `is_kept` where these take just that."""

    kernels: tuple[KernelForm, ...]
    seconds: float
    is_kept: bool


@dataclass(frozen=True)
class Found:
    """What a search came to: the best choice below the ceiling, None where there is none; and the least bound of
    the choices that a limit kept it from looking at, infinite where there were none.
    """

    best: Choice | None
    bound_left: float


@dataclass(eq=False)
class _Group:
    """The kernels of a maker: those still to be priced, and the cheapest priced."""

    maker: Maker
    forms: tuple[KernelForm, ...]
    waiting: list[KernelForm] = field(init=False)
    seconds: float = inf
    best: KernelForm | None = None

    def __post_init__(self) -> None:
        self.waiting = list(self.forms)

    @property
    def bound(self) -> float:
        """What none of the kernels undercuts."""
        return min([self.seconds, *(form.bound for form in self.waiting)])

    @property
    def most_promising(self) -> KernelForm:
        """The kernel that may take as little as that."""
        if self.is_settled and self.best is not None:
            return self.best
        return in_order(self.waiting, lambda form: form.bound, _term)[0]

    @property
    def is_settled(self) -> bool:
        """Whether no kernel that is not priced yet can be cheaper than the cheapest priced."""
        return self.seconds <= min((form.bound for form in self.waiting), default=inf)


def _term(kernel: KernelForm) -> Term:
    return kernel.term


def _in_order(groups: Iterable[_Group]) -> list[_Group]:
    return in_order(groups, lambda group: group.bound, lambda group: group.forms[0].term)


class Prices:
    """What kernels cost, as far as is known; `schedule` prices one, and is asked as rarely as can be.

    Kernels that store the same lists and read the same lists serve alike, so the cheapest of them stands for all.
    """

    def __init__(self, extraction: Extraction, schedule: Callable[[KernelForm], float], forms_tried: int) -> None:
        self._schedule = schedule
        alike: dict[tuple[frozenset[str], frozenset[str]], list[KernelForm]] = {}
        for kernel in extraction.kernels:
            alike.setdefault((frozenset(kernel.stores), kernel.lists_read), []).append(kernel)
        self._lists = ListBits(extraction.lists.by_name, alike)
        groups: list[_Group] = []
        for (stores, reads), found in alike.items():
            keeping = in_order(found, lambda kernel: kernel.keeping, _term)[0]
            ordered = in_order(found, lambda kernel: kernel.estimate, _term)[:forms_tried]
            maker = Maker(self._lists.of(stores), self._lists.of(reads))
            groups.append(_Group(maker, tuple(dict.fromkeys((*ordered, keeping)))))
        self._groups = {group.maker: group for group in _in_order(groups)}

    def walk(self, outputs: Iterable[str], ceiling: float, fewest_lists: bool = False, more_than: int = 0) -> Walk:
        """Through plans by what no kernel undercuts."""
        bounds = {maker: group.bound for maker, group in self._groups.items()}
        return Walk(self._lists, bounds, self._lists.of(outputs), ceiling, fewest_lists, more_than=more_than)

    def priced_walk(
        self, outputs: Iterable[str], ceiling: float = inf, fewest_lists: bool = False, best_only: bool = True
    ) -> Walk:
        """Through plans of which every kernel has been priced."""
        priced = {maker: group.seconds for maker, group in self._groups.items() if group.best is not None}
        return Walk(self._lists, priced, self._lists.of(outputs), ceiling, fewest_lists, best_only)

    def unsettled(self, plan: PartialPlan) -> list[_Group]:
        """The groups of a plan of which a kernel that is not priced yet could be cheaper than the cheapest priced."""
        return [group for maker in plan.makers if not (group := self._groups[maker]).is_settled]

    def refine(self, groups: Iterable[_Group]) -> None:
        """Prices one more kernel of one group: the most promising of the dearest, which tells most."""
        group = _in_order(groups)[-1]
        form = group.waiting.pop(0)
        seconds = self._schedule(form)
        if seconds < group.seconds:
            group.seconds, group.best = seconds, form

    def promise_of_more(self, outputs: Iterable[str], more_than: int) -> Promise | None:
        """What is promised of plans of more kernels than so many; None where there are none."""
        plan = next(self.walk(outputs, inf, more_than=more_than).plans(), None)
        if plan is None:
            return None
        groups = [self._groups[maker] for maker in plan.makers]
        kernels = tuple(group.most_promising for group in groups)
        return Promise(kernels, plan.seconds, all(group.is_settled for group in groups))

    def choice(self, plan: PartialPlan) -> Choice:
        """The cheapest kernels priced for the makers of a plan."""
        groups = [self._groups[maker] for maker in plan.makers]
        kernels = tuple(group.best for group in groups if group.best is not None)
        return Choice(kernels, sum(group.seconds for group in groups))


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
    while True:
        walk = prices.walk(outputs, ceiling, fewest_lists)
        plan = next(walk.plans(), None)
        unsettled = [] if plan is None else prices.unsettled(plan)
        if not unsettled or not may_schedule():
            break
        prices.refine(unsettled)
    if not unsettled and (plan is not None or walk.bound_left == inf):
        return Found(None if plan is None else prices.choice(plan), inf)
    left = walk.bound_left if plan is None else min(walk.bound_left, plan.seconds)
    known = next(prices.priced_walk(outputs, ceiling, fewest_lists).plans(), None)
    return Found(None if known is None else prices.choice(known), left)


def priced_choices(prices: Prices, outputs: tuple[str, ...]) -> Iterator[Choice]:
    """The choices of which every kernel has been scheduled, cheapest first, as far as the limit of steps allows."""
    return map(prices.choice, prices.priced_walk(outputs, best_only=False).plans())
