"""Tests a user's monoid: that combining is associative and its identity an identity, on the states that arise.

A state arises by `element` from any values, and by combining such states.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from hypothesis import given, seed
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException

from bbrewrite.core.operators import Monoid, OperatorTable
from bbrewrite.core.types import BlockType
from bbrewrite.fuzz.allowance import Allowance
from bbrewrite.fuzz.drawing import NUMBERS
from bbrewrite.fuzz.evaluate import Array, ExactDomain, evaluate_local
from bbrewrite.fuzz.exact import UNDEFINED, UNKNOWN, are_equal
from bbrewrite.fuzz.quiet import quiet_settings
from bbrewrite.fuzz.shapes import ELEMENT, ShapeFault, Symbols, monoid_state
from bbrewrite.fuzz.soundness import Budget

type State = tuple[Array, ...]
type Draw = Callable[[st.SearchStrategy[int]], int]

_EXACT = ExactDomain()
_INSTANCES = 200


@dataclass(frozen=True)
class BrokenLaw:
    """A law of monoids that fails: `states` are what it was tried on, `left` and `right` what should be equal."""

    law: str
    states: tuple[State, ...]
    left: State
    right: State


@dataclass(frozen=True)
class MonoidVerdict:
    """The result for one monoid."""

    monoid: Monoid
    instances: int
    broken: BrokenLaw | None
    seconds: float

    @property
    def is_sound(self) -> bool:
        return self.broken is None and self.instances > 0


@dataclass(frozen=True)
class _Shape:
    """Types of a monoid's parameters and of its state."""

    parameters: tuple[BlockType, ...]
    state: tuple[BlockType, ...]
    symbols: Symbols


def test_monoid(monoid: Monoid, table: OperatorTable, budget: Budget) -> MonoidVerdict:
    """Tries the laws on random states until one fails, the number of instances or the time ends it."""
    start = time.process_time()
    shapes = _shapes(monoid, table)
    allowance = Allowance(budget.seconds)
    broken: list[BrokenLaw] = []
    tried = 0

    @seed(budget.seed)
    @quiet_settings(min(_INSTANCES, budget.instances))
    @given(st.data())
    def search(data: st.DataObject) -> None:
        nonlocal tried
        if allowance.is_spent(tried):
            return
        shape = data.draw(st.sampled_from(shapes))
        laws = _Laws(monoid, table, shape, _lengths(shape, data.draw))
        states = tuple(laws.element(laws.operands(data.draw)) for _ in range(3))
        tried += not broken
        found = laws.broken(states)
        if found is not None:
            broken.append(found)
            raise _Failure

    if shapes:
        with suppress(_Failure, HypothesisException):
            search()
    return MonoidVerdict(monoid, tried, broken[-1] if broken else None, time.process_time() - start)


class _Failure(Exception):
    """A law fails."""


class _Laws:
    """The laws for states of one shape."""

    def __init__(self, monoid: Monoid, table: OperatorTable, shape: _Shape, lengths: dict[str, int]) -> None:
        self._monoid = monoid
        self._table = table
        self._shape = shape
        self._lengths = lengths

    def operands(self, draw: Draw) -> list[Array]:
        """Values for one iteration."""
        found: list[Array] = []
        for kind in self._shape.parameters:
            shape = self._shape_of(kind)
            array = np.empty(shape, dtype=object)
            for place in np.ndindex(shape):
                array[place] = NUMBERS[draw(st.integers(0, len(NUMBERS) - 1))]
            found.append(array)
        return found

    def element(self, operands: Sequence[Array]) -> State:
        named = dict(zip(self._monoid.parameters, operands, strict=True))
        return self._fitted([evaluate_local(self._table, _EXACT, term, named) for term in self._monoid.element])

    def combine(self, a: State, b: State) -> State:
        named = dict(zip((*self._monoid.left, *self._monoid.right), (*a, *b), strict=True))
        return self._fitted([evaluate_local(self._table, _EXACT, term, named) for term in self._monoid.combine])

    def broken(self, states: Sequence[State]) -> BrokenLaw | None:
        """The first law that fails on three states."""
        a, b, c = states
        identity = self._fitted([_EXACT.number(value) for value in self._monoid.identity])
        combine = self.combine
        tries = [
            ("combine(identity, a) = a", (a,), combine(identity, a), a),
            ("combine(a, identity) = a", (a,), combine(a, identity), a),
            ("combine(identity, identity) = identity", (identity,), combine(identity, identity), identity),
            (
                "combine(combine(a, b), c) = combine(a, combine(b, c))",
                (a, b, c),
                combine(combine(a, b), c),
                combine(a, combine(b, c)),
            ),
            (
                "combine(combine(a, b), identity) = combine(a, b)",
                (a, b),
                combine(combine(a, b), identity),
                combine(a, b),
            ),
        ]
        return next((BrokenLaw(*law) for law in tries if not _agree(law[2], law[3])), None)

    def _fitted(self, values: Sequence[Array]) -> State:
        shapes = (self._shape_of(kind) for kind in self._shape.state)
        return tuple(np.broadcast_to(value, shape) for value, shape in zip(values, shapes, strict=True))

    def _shape_of(self, kind: BlockType) -> tuple[int, ...]:
        return tuple(self._lengths[self._shape.symbols.find(axis)] for axis in kind.axes)


def _agree(left: State, right: State) -> bool:
    """Whether no entry is proved to differ; both sides have to be defined or neither."""
    for one, other in zip(left, right, strict=True):
        for a, b in zip(one.flat, other.flat, strict=True):
            if a is UNKNOWN or b is UNKNOWN or a is b:
                continue
            if a is UNDEFINED or b is UNDEFINED or are_equal(a, b) is False:
                return False
    return True


def _shapes(monoid: Monoid, table: OperatorTable) -> list[_Shape]:
    """Ways to choose the parameters' kinds, small ones first."""
    found: list[_Shape] = []
    for ranks in sorted(itertools.product(range(3), repeat=len(monoid.parameters)), key=sum):
        parameters = tuple(
            BlockType(tuple(f"{name}.{axis}" for axis in range(rank)), ELEMENT)
            for name, rank in zip(monoid.parameters, ranks, strict=True)
        )
        symbols = Symbols()
        with suppress(ShapeFault):
            found.append(_Shape(parameters, monoid_state(monoid, parameters, table, symbols), symbols))
    return found


def _lengths(shape: _Shape, draw: Draw) -> dict[str, int]:
    axes = {shape.symbols.find(axis) for kind in shape.parameters for axis in kind.axes}
    return {axis: draw(st.integers(1, 2)) for axis in sorted(axes)}
