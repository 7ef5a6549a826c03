"""Forms of a class as they are weighed: which cost least, and which of them serve for others.

A form that is only weighed has no term yet, since making one takes longer than everything else. Orders do not depend on
names or on how forms were found. Which forms there are, and how many are kept, is for `extract.py` to say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from bbrewrite.core.terms import Term
from bbrewrite.egraph.view import ENode
from bbrewrite.plan.extraction.agreement import Chosen
from bbrewrite.plan.extraction.items import Bill


class Form(NamedTuple):
    """A term of a class with what it costs; `chosen` is the term that it has for every class in it.

    Its estimate is what it costs if whatever does not depend on a loop were hoisted out of it and nothing were kept
    local; keeping, if all that is needed in several passes were, where that is cheaper than to compute it again.
    """

    term: Term
    bill: Bill
    chosen: Chosen
    lists_read: frozenset[str]
    free: frozenset[str]  # the indices that its term mentions


@dataclass(frozen=True, eq=False)
class Offer:
    """A form that is weighed: its term is made where others cost as much, or where it is kept. Of most it never is."""

    node: ENode
    operands: tuple[Form, ...]
    bill: Bill  # of the operands' items alone, with the term's own cost
    chosen: Chosen
    lists_read: frozenset[str]
    free: frozenset[str]

    @cached_property
    def term(self) -> Term:
        """The term that it would have."""
        return term_of(self.node, self.operands)


type Weighed = Form | Offer


def term_of(node: ENode, operands: tuple[Form, ...]) -> Term:
    return node.build(tuple([operand.term for operand in operands]))


def each_once(forms: Iterable[Weighed]) -> list[Weighed]:
    """Each term once, as it costs least."""
    distinct: dict[Term, Weighed] = {}
    for form in forms:
        known = distinct.setdefault(form.term, form)
        if form.bill.estimate < known.bill.estimate:
            distinct[form.term] = form
    return list(distinct.values())


def ranked(rivals: list[Weighed], most: int) -> list[tuple[int, Weighed]]:
    """Of forms that read the same lists as many as may serve for each other, and the one that costs least if rows fit
    in local memory; each with how many serve for it that cost less.

    One that mentions more indices than others is usable in fewer places; it does not take theirs.
    """
    if len(rivals) == 1:
        return [(0, rivals[0])]
    free = rivals[0].free
    if all(form.free == free for form in rivals):
        kept = in_order(cheapest(rivals, most, by_estimate, by_structure), by_estimate, by_structure)
        rows_kept = first(rivals, _by_keeping) if len(kept) < len(rivals) else kept[0]
        return list(enumerate(kept if _is_among(rows_kept, kept) else [*kept, rows_kept]))
    favourites: list[Weighed] = []
    for form in in_order(rivals, _by_keeping, by_structure):
        if not any(_serves_for(other, form) for other in favourites):
            favourites.append(form)
    found: list[tuple[int, Weighed]] = []
    for form in in_order(rivals, by_estimate, by_structure):
        count = sum(_serves_for(other, form) for _, other in found)
        if count < most or _is_among(form, favourites):
            found.append((count, form))
    return found


def _is_among(form: Weighed, others: Iterable[Weighed]) -> bool:
    return any(form is other for other in others)


def _serves_for(one: Weighed, other: Weighed) -> bool:
    """Whether a form can be used wherever another can that reads the same lists: it mentions no more indices."""
    return one.free <= other.free


def by_estimate(form: Weighed) -> int:
    return form.bill.estimate


def _by_keeping(form: Weighed) -> int:
    return form.bill.keeping


def by_structure(form: Weighed) -> Term:
    return form.term


def in_order[T](entries: Iterable[T], cost: Callable[[T], float], term: Callable[[T], Term]) -> list[T]:
    """Cheapest first; ties are broken by structure, which no renaming or reordering of rules changes."""
    ordered = sorted(entries, key=cost)
    costs = list(map(cost, ordered))
    if len(set(costs)) == len(costs):
        return ordered
    alike = Counter(costs)
    keys = [(own, term(entry).digest if alike[own] > 1 else "") for own, entry in zip(costs, ordered, strict=True)]
    return [ordered[place] for place in sorted(range(len(keys)), key=keys.__getitem__)]


def first(forms: list[Weighed], cost: Callable[[Weighed], int]) -> Weighed:
    """The one that costs least, told by structure where several do."""
    least = min(map(cost, forms))
    equal = [form for form in forms if cost(form) == least]
    return equal[0] if len(equal) == 1 else min(equal, key=lambda form: form.term.digest)


def cheapest[T, C: (int, tuple[int, ...])](
    entries: list[T], count: int, cost: Callable[[T], C], term: Callable[[T], Term]
) -> list[T]:
    """The first of as many as that in this order. Only those between which it has to choose are told by structure."""
    ordered = sorted(entries, key=cost)
    if len(ordered) <= count:
        return ordered
    last = cost(ordered[count - 1])
    below = [entry for entry in ordered[:count] if cost(entry) < last]
    equal = [entry for entry in ordered if cost(entry) == last]
    if len(below) + len(equal) > count:
        equal.sort(key=lambda entry: term(entry).digest)
    return [*below, *equal[: count - len(below)]]
