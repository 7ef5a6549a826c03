"""The cheapest of many forms are found as if all were put in order, but few are told by their structure."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bbrewrite.core.terms import Number, Term
from bbrewrite.plan.extraction.forms import cheapest


@given(st.lists(st.integers(0, 4), max_size=12), st.integers(1, 12))
def test_the_cheapest_are_the_first_in_order(costs: list[int], count: int) -> None:
    entries = [(cost, Number(float(place))) for place, cost in enumerate(costs)]
    asked: list[Term] = []

    def term(entry: tuple[int, Number]) -> Term:
        asked.append(entry[1])
        return entry[1]

    found = cheapest(entries, count, lambda entry: entry[0], term)
    assert set(found) == set(sorted(entries, key=lambda entry: (entry[0], entry[1].digest))[:count])
    assert [cost for cost, _ in found] == sorted(costs)[:count]
    told = (
        {entry[1] for entry in entries if entry[0] == sorted(costs)[count - 1]} if count < len(costs) else set[Term]()
    )
    assert set(asked) <= told
