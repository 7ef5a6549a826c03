"""Forms agree as if their terms for classes were compared one by one, and bits have the places that they had."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bbrewrite.core.bits import places
from bbrewrite.core.terms import Number
from bbrewrite.plan.extraction.agreement import NOTHING_CHOSEN, Chosen, ChosenTerms
from bbrewrite.plan.extraction.forms import in_order

CHOICES = st.dictionaries(st.integers(0, 5), st.integers(0, 2), max_size=5)


def _chosen(terms: ChosenTerms, choice: dict[int, int]) -> Chosen:
    found = NOTHING_CHOSEN
    for identifier, value in choice.items():
        found = found.with_bits(terms.one(identifier, Number(float(value))))
    return found


@given(st.lists(CHOICES, min_size=2, max_size=4))
def test_what_agrees_has_one_term_for_every_class(choices: list[dict[int, int]]) -> None:
    terms = ChosenTerms()
    bits = [_chosen(terms, choice) for choice in choices]
    one, other = choices[:2]
    agree = all(other.get(identifier, value) == value for identifier, value in one.items())
    assert bits[0].agrees_with(bits[1]) == bits[1].agrees_with(bits[0]) == agree
    latest: dict[int, int] = {}
    for choice in choices:
        latest |= choice
    assert terms.latest(bits) == _chosen(terms, latest)
    if agree:
        assert bits[0].with_bits(bits[1]) == terms.latest(bits[:2])


@given(st.sets(st.integers(0, 200)))
def test_places_are_those_of_the_bits(numbers: set[int]) -> None:
    assert places(sum(1 << number for number in numbers)) == sorted(numbers)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=12))
def test_only_ties_are_told_by_structure(entries: list[tuple[int, int]]) -> None:
    asked: list[int] = []

    def term(entry: tuple[int, int]) -> Number:
        asked.append(entry[0])
        return Number(float(entry[1]))

    found = in_order(entries, lambda entry: entry[0], term)
    assert found == sorted(entries, key=lambda entry: (entry[0], Number(float(entry[1])).digest))
    costs = [cost for cost, _ in entries]
    assert all(costs.count(cost) > 1 for cost in asked)
