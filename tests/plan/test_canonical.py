"""Canonical forms of lists: the same whatever bound indices are called, and for nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bbrewrite.core.addresses import Address, index_address, make_address
from bbrewrite.core.indices import Index, IndexTable
from bbrewrite.core.terms import Apply, Map, Read, Reduce, Size, Term
from bbrewrite.plan.extraction.canonical import canonical_list

# Three names of each of two extents.
INDICES = IndexTable.of(
    [
        *(Index("c", 4), Index("d", same_as="c"), Index("e", same_as="c")),
        *(Index("m", 5), Index("n", same_as="m"), Index("k", same_as="m")),
    ]
)
NAMES = {"c": ("c", "d", "e"), "m": ("m", "n", "k")}

# A list without names: a binder is its root and its body, a leaf which of the binders around it an entry depends on.
type Shape = tuple[str, str, Shape] | tuple[str, Shape, Shape] | tuple[int, ...]


@st.composite
def shapes(draw: st.DrawFn, loops: int = 0, deep: int = 4) -> Shape:
    if loops == 0 or (deep and draw(st.booleans())):
        kind = "map" if loops == 0 else draw(st.sampled_from(["sum", "both"]))
        if kind == "both":
            return ("both", draw(shapes(loops, deep - 1)), draw(shapes(loops, deep - 1)))
        return (kind, draw(st.sampled_from(["c", "m"])), draw(shapes(loops + 1, deep - 1)))
    return tuple(draw(st.lists(st.integers(0, loops - 1), max_size=2)))


def used(shape: Shape) -> set[int]:
    match shape:
        case ("both", one, other):
            return used(one) | used(other)  # type: ignore[arg-type]
        case (("map" | "sum"), _, body):
            return used(body)  # type: ignore[arg-type]
        case _:
            return {place for place in shape if isinstance(place, int)}


def named(shape: Shape, draw: st.DataObject, around: Sequence[str] = ()) -> Term:
    """The list under names that are drawn; one may hide another that is not used inside."""
    match shape:
        case ("both", one, other):
            return Apply("add", (named(one, draw, around), named(other, draw, around)))  # type: ignore[arg-type]
        case (("map" | "sum") as kind, str(root), body):
            taken = {around[place] for place in used(body) if place < len(around)}  # type: ignore[arg-type]
            index = draw.draw(st.sampled_from([name for name in NAMES[root] if name not in taken] or [root]))
            inner = named(body, draw, (*around, index))  # type: ignore[arg-type]
            return Map(index, inner) if kind == "map" else Reduce("sum", index, (inner,))
        case _:
            return Read("X", tuple(index_address(around[place]) for place in shape if isinstance(place, int)))


def has_names_left(shape: Shape, around: Sequence[str] = ()) -> bool:
    """Whether no more loops of one extent are around each other than it has names."""
    match shape:
        case ("both", one, other):
            return has_names_left(one, around) and has_names_left(other, around)  # type: ignore[arg-type]
        case (("map" | "sum"), str(root), body):
            return around.count(root) < 3 and has_names_left(body, (*around, root))  # type: ignore[arg-type]
        case _:
            return True


@settings(max_examples=300, deadline=None, derandomize=True)
@given(shapes().filter(has_names_left), shapes().filter(has_names_left), st.data())
def test_the_form_tells_lists_apart_and_nothing_else(one: Shape, other: Shape, data: st.DataObject) -> None:
    forms = [canonical_list(named(shape, data), INDICES) for shape in (one, one, other)]
    assert forms[0] == forms[1]
    assert (forms[0] == forms[2]) is (one == other)


def read(tensor: str, *indices: str) -> Read:
    return Read(tensor, tuple(map(index_address, indices)))


def scaled(outer: str, inner: str) -> Term:
    """A list over one index, with a sum over another in it."""
    total = Reduce("sum", inner, (Apply("multiply", (read("X", inner), Size(inner))),))
    return Map(outer, Apply("multiply", (read("X", outer), total)))


@pytest.mark.parametrize(("outer", "inner"), [("c", "c"), ("c", "e"), ("e", "c"), ("e", "e"), ("e", "d")])
def test_a_sum_inside_may_have_the_name_of_the_list(outer: str, inner: str) -> None:
    assert canonical_list(scaled(outer, inner), INDICES) == canonical_list(scaled("d", "c"), INDICES)


def test_other_lists_have_other_forms() -> None:
    address = make_address([("c", 1)], [("e", 1)], -1)
    texts: list[Term] = [
        scaled("c", "e"),
        scaled("m", "c"),
        scaled("c", "m"),
        Map("c", Map("e", read("X", "c", "e"))),
        Map("c", Map("e", read("X", "e", "c"))),
        Map("c", read("X", "c")),
        Map("c", Read("X", (Address((), (), 1),))),
        Map("c", Read("X", (address,))),
    ]
    assert len({canonical_list(term, INDICES) for term in texts}) == len(texts)


def test_extents_in_addresses_are_those_of_roots() -> None:
    reversed_lists = [
        Map(index, Read("X", (make_address([(index, -1)], [(size, 1)], -1),))) for index in "ce" for size in "cde"
    ]
    assert len({canonical_list(term, INDICES) for term in reversed_lists}) == 1
