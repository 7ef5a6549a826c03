"""Draws instances of a plan through hypothesis, which shrinks them: the simplest choice of everything comes first."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from bbrewrite.core.terms import Apply, Local, Number, walk
from bbrewrite.core.types import BlockType, ListType, PairType, StoredType, Type
from bbrewrite.fuzz.instances import IndexInstance, Instance, Value, Variable
from bbrewrite.fuzz.plans import Claim, Plan, compared_numbers, independent, unbound_variables
from bbrewrite.fuzz.shapes import Symbols, axes_of, extent_of
from bbrewrite.rules.rules import Fact

type Draw = Callable[[st.SearchStrategy[Any]], Any]


_SIGNS = tuple(map(Fraction, (0, 1, -1)))
_SMALL = tuple(map(Fraction, ("0", "1", "-1", "2", "1/2", "-1/2", "-2", "3", "3/2", "-3/2", "-3", "1/3", "5", "-7/4")))
NUMBERS = _SMALL
_WIDE = (
    *_SMALL,
    *map(Fraction, ("10", "-10", "7/10", "30", "-30", "100", "-100", "1000", "-1000", "1/1000", "-1/1000")),
    *(sign * Fraction(2) ** power for power in (20, -20) for sign in (1, -1)),
)
_FACTS: dict[str, Callable[[Fraction], bool]] = {
    "nonzero": lambda x: x != 0,
    "positive": lambda x: x > 0,
    "nonnegative": lambda x: x >= 0,
    "finite": lambda x: True,
}
# Hypothesis examines every strategy that it has not seen, which takes longer than to draw from it.
_EXTENTS = st.sampled_from((1, 2, 3, 4, 5))
_EXTENTS_AND_NONE = st.sampled_from((1, 2, 0, 3, 4, 5))
_BLOCKS = st.sampled_from((None, 2, 1, 3))
_LENGTHS = st.sampled_from((1, 2, 3))
_ALONG_AN_INDEX = st.sampled_from((False, False, True))
_EITHER = st.booleans()


@functools.cache
def _below(count: int) -> st.SearchStrategy[int]:
    return st.integers(0, count - 1)


@functools.cache
def _several_below(count: int, size: int) -> st.SearchStrategy[list[int]]:
    return st.lists(_below(count), min_size=size, max_size=size)


@functools.lru_cache(maxsize=16)
def pools(claim: Claim) -> tuple[tuple[Fraction, ...], ...]:
    """Sets of numbers to draw from: few, so that values tie; around the rule's own numbers; of all magnitudes."""
    literals = {
        node.value
        for pair in claim.sides
        for side in pair
        for node in walk(side)
        if isinstance(node, Number) and abs(node.value) < 1e9
    }
    around = {
        sign * Fraction(repr(value)) + offset
        for value in literals
        for sign in (1, -1)
        for offset in (0, 1, -1, Fraction(1, 1000))
    }
    ordered = sorted(around - set(_SMALL), key=lambda x: (x.denominator, abs(x), x < 0))[:40]
    return (_SIGNS, _SMALL, (*_SMALL, *ordered), (*_WIDE, *ordered))


def draw_instance(draw: Draw, plan: Plan, is_general: bool, loops_run: bool = False) -> Instance:
    """An instance, where asked for without empty loops; if `is_general`, what only the right side needs equal is drawn
    apart.
    """
    symbols = plan.left_symbols if is_general else plan.symbols
    extents = _Extents(draw, plan, symbols, loops_run)
    indices = {name: extents.of(extent_of(name)) for name in plan.claim.indices}
    outer = {name: draw(_below(max(1, found.trips))) for name, found in indices.items()}
    lengths = _draw_lengths(draw, plan, symbols, indices)
    drawer = _Drawer(draw, plan, indices, lengths, extents)
    variables = {name: drawer.variable(name) for name in plan.types}
    return Instance(indices, outer, lengths, variables)


@functools.lru_cache(maxsize=16)
def logical_variables(claim: Claim) -> frozenset[str]:
    """Variables that stand where the language takes truth values only."""
    found: set[str] = set()
    for node in (node for pair in claim.sides for side in pair for node in walk(side)):
        if isinstance(node, Apply) and node.operator in ("where", "and", "or", "not"):
            tested = node.operands[:1] if node.operator == "where" else node.operands
            found |= {operand.name for operand in tested if isinstance(operand, Local)}
    return frozenset(found)


class _Extents:
    """The extents of indices and lists, one for each class of symbols, drawn when first asked for."""

    def __init__(self, draw: Draw, plan: Plan, symbols: Symbols, loops_run: bool) -> None:
        self._draw = draw
        self._symbols = symbols
        self._loops_run = loops_run
        free = set[str]().union(*(left.free for left in plan.claim.lefts))
        self._occupied = {symbols.find(extent_of(index)) for index in free}
        self._known: dict[str, IndexInstance] = {}

    def of(self, symbol: str) -> IndexInstance:
        root = self._symbols.find(symbol)
        if root not in self._known:
            # An index at which the left side is read has a position; a loop may have none.
            may_be_empty = not self._loops_run and root not in self._occupied
            extent = self._draw(_EXTENTS_AND_NONE if may_be_empty else _EXTENTS)
            block = self._draw(_BLOCKS)
            if block is None or block == 1:
                extent = min(extent, 3)
            self._known[root] = IndexInstance(extent, block)
        return self._known[root]


def _draw_lengths(
    draw: Draw, plan: Plan, symbols: Symbols, indices: Mapping[str, IndexInstance]
) -> dict[str, int | str]:
    """Every axis's length, or the index along which it lies."""
    fixed, numbers = independent(plan.claim), compared_numbers(plan.claim)
    by_root: dict[str, list[str]] = {}
    owners: dict[str, set[str]] = {}
    for name, found in plan.types.items():
        for axis in axes_of(found):
            by_root.setdefault(symbols.find(axis), []).append(axis)
            owners.setdefault(symbols.find(axis), set()).add(name)
    for symbol in [*symbols.along]:
        by_root.setdefault(symbols.find(symbol), []).append(symbol)
    lengths: dict[str, int | str] = {}
    for root, axes in by_root.items():
        possible = [
            index
            for index, instance in indices.items()
            if instance.block is not None
            and not plan.symbols.is_barred(root, index)
            and not any((owner, index) in fixed for owner in owners.get(root, ()))
            and not (owners.get(root, set()) & numbers)
        ]
        length: int | str = draw(_LENGTHS)
        if root in symbols.along:
            length = symbols.along[root]
        elif possible and draw(_ALONG_AN_INDEX):
            length = draw(st.sampled_from(possible))
        for axis in axes:
            lengths[axis] = length
    # Symbols of the right side alone, or inside monoids, are members of the same classes.
    for symbol in [*symbols.parents, *symbols.along]:
        lengths.setdefault(symbol, lengths.get(symbols.find(symbol), 1))
    return lengths


class _Drawer:
    """Draws the values of variables."""

    def __init__(
        self,
        draw: Draw,
        plan: Plan,
        indices: Mapping[str, IndexInstance],
        lengths: Mapping[str, int | str],
        extents: _Extents,
    ) -> None:
        self._draw = draw
        self._plan = plan
        self._indices = indices
        self._lengths = lengths
        self._extents = extents
        self._fixed = independent(plan.claim)
        self._numbers = compared_numbers(plan.claim)
        self._logical = logical_variables(plan.claim)
        self._pool = draw(st.sampled_from(pools(plan.claim)))

    def variable(self, name: str) -> Variable:
        found = self._plan.types[name]
        depends = tuple(index for index in self._indices if self._depends(name, found, index))
        ranges = [range(max(1, self._indices[index].trips)) for index in depends]
        pool = self._values(name)
        values = {
            key: self._value(found, dict(zip(depends, key, strict=True)), pool) for key in itertools.product(*ranges)
        }
        return Variable(found, depends, values)

    def _depends(self, name: str, found: Type, index: str) -> bool:
        if any(self._lengths[axis] == index for axis in axes_of(found)):
            return True
        if (name, index) in self._fixed or name in self._numbers:
            return False
        if self._indices[index].trips == 0 and any(
            name in unbound_variables(left, index) for left in self._plan.claim.lefts
        ):
            return False  # it would be read at a position of an empty loop
        return bool(self._draw(_EITHER))

    def _values(self, name: str) -> tuple[Fraction, ...]:
        if name in self._logical:
            return (Fraction(0), Fraction(1))
        facts = [
            condition.fact
            for condition in self._plan.claim.conditions
            if isinstance(condition, Fact) and condition.term == Local(name)
        ]
        return tuple(x for x in self._pool if all(_FACTS[fact](x) for fact in facts))

    def _value(self, found: Type, position: Mapping[str, int], pool: Sequence[Fraction]) -> Value:
        match found:
            case BlockType(axes):
                shape = tuple(self._length(axis, position) for axis in axes)
                size = int(np.prod(shape, dtype=int))
                chosen = self._draw(_several_below(len(pool), size))
                array = np.empty(size, dtype=object)
                array[:] = [pool[number] for number in chosen]
                return array.reshape(shape)
            case ListType(index, item):
                trips = self._extents.of(extent_of(index)).trips
                return [self._value(item, position, pool) for _ in range(trips)]
            case StoredType(item):
                return self._value(item, position, pool)
            case PairType(first, second):
                return (self._value(first, position, pool), self._value(second, position, pool))

    def _length(self, axis: str, position: Mapping[str, int]) -> int:
        found = self._lengths[axis]
        return self._indices[found].length(position[found]) if isinstance(found, str) else found
