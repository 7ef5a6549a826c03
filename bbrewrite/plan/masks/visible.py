"""Where a loop has something to do: bounds and a test by which blocks that a mask hides are left out.

Everything is said by integer linear forms over leaves that have a least and a greatest value in the current blocks:
positions of indices, extents, and integers read from tensors. A condition over entries is *possible* in a block where
its form can be nonnegative there: an over-estimate by interval arithmetic, so that no visible block is lost. The
values of leaves come from whoever evaluates: the executor, the cost model (for many blocks at once) or generated code.

How conditions are found in a kernel is not said here (`narrowing.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from bbrewrite.core.terms import IndexValue, Read, Term

# The least or the greatest (True) value of a leaf in the current blocks: integers, or arrays of them.
type Extreme = Callable[[Term, bool], Any]


@dataclass(frozen=True)
class Linear:
    """`offset` plus the sum of coefficient times leaf; each leaf once, no coefficient 0."""

    parts: tuple[tuple[Term, int], ...] = ()
    offset: int = 0

    def coefficient(self, leaf: Term) -> int:
        """That of a leaf, 0 where it does not occur."""
        return next((coefficient for part, coefficient in self.parts if part == leaf), 0)

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        """`self + factor * other`."""
        totals = dict(self.parts)
        for leaf, coefficient in other.parts:
            totals[leaf] = totals.get(leaf, 0) + factor * coefficient
        return Linear(tuple((leaf, c) for leaf, c in totals.items() if c), self.offset + factor * other.offset)

    def times(self, factor: int) -> Linear:
        """The form multiplied by a number."""
        return Linear().plus(self, factor)


@dataclass(frozen=True)
class Floored(Term):
    """A leaf: a form of positions and extents divided by a positive number, rounded down."""

    linear: Linear
    divisor: int

    @cached_property
    def free(self) -> frozenset[str]:
        return frozenset[str]().union(*(leaf.free for leaf, _ in self.linear.parts))


@dataclass(frozen=True)
class Nonnegative:
    """`linear >= 0`."""

    linear: Linear


@dataclass(frozen=True)
class AllOf:
    """Every one of the conditions; without any, what is always true."""

    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class AnyOf:
    """At least one of the conditions; without any, what is never true."""

    conditions: tuple[Condition, ...] = ()


type Condition = Nonnegative | AllOf | AnyOf

ALWAYS = AllOf()


@dataclass(frozen=True)
class Quotient:
    """The `greatest` or least value that `linear` takes in the current blocks, divided by a number, rounded down."""

    linear: Linear
    greatest: bool
    divisor: int = 1


@dataclass(frozen=True)
class Outermost:
    """The `greatest` or least of several positions."""

    positions: tuple[Bound, ...]
    greatest: bool


type Bound = Quotient | Outermost


@dataclass(frozen=True)
class LoopBounds:
    """Which blocks of a loop's index are visited: those that meet elements from `begin` to before `end`.

    An absent bound is that of the index. Of these blocks, the ones in which `test` is impossible are passed over.
    """

    begin: Bound | None = None
    end: Bound | None = None
    test: Condition = ALWAYS

    @property
    def leaves(self) -> tuple[Term, ...]:
        """Every leaf, in order of first use."""
        forms = [*_bound_forms(self.begin), *_bound_forms(self.end), *condition_forms(self.test)]
        return tuple(dict.fromkeys(leaf for form in forms for leaf in _leaves_of(form)))

    @property
    def reads(self) -> tuple[Read, ...]:
        """The tensors' blocks whose extremes are needed."""
        return tuple(leaf for leaf in self.leaves if isinstance(leaf, Read))


def renamed_bounds(bounds: LoopBounds, rename: Callable[[Term], Term]) -> LoopBounds:
    """The bounds with every leaf renamed."""

    def leaf_of(leaf: Term) -> Term:
        return Floored(linear(leaf.linear), leaf.divisor) if isinstance(leaf, Floored) else rename(leaf)

    def linear(form: Linear) -> Linear:
        return replace(form, parts=tuple((leaf_of(leaf), coefficient) for leaf, coefficient in form.parts))

    def bound(old: Bound) -> Bound:
        match old:
            case Quotient():
                return replace(old, linear=linear(old.linear))
            case Outermost():
                return replace(old, positions=tuple(map(bound, old.positions)))

    def condition(old: Condition) -> Condition:
        match old:
            case Nonnegative():
                return Nonnegative(linear(old.linear))
            case AllOf():
                return AllOf(tuple(map(condition, old.conditions)))
            case AnyOf():
                return AnyOf(tuple(map(condition, old.conditions)))

    begin = bound(bounds.begin) if bounds.begin else None
    end = bound(bounds.end) if bounds.end else None
    return LoopBounds(begin, end, condition(bounds.test))


def visible_blocks(condition: Condition, index: str) -> LoopBounds | None:
    """The bounds of a loop over `index` outside which the condition cannot hold; None where nothing is known."""
    begin, end = _begin(condition, index), _end(condition, index)
    test = ALWAYS if _is_interval(condition, index) else condition
    bounds = LoopBounds(begin, end, test)
    return None if bounds == LoopBounds() else bounds


def possible(condition: Condition, extreme: Extreme) -> Any:
    """Whether some entry of the current blocks may meet a condition."""
    match condition:
        case Nonnegative(linear):
            return extreme_of(linear, True, extreme) >= 0
        case AllOf(conditions):
            result: Any = True
            for inner in conditions:
                result = np.logical_and(result, possible(inner, extreme))
            return result
        case AnyOf(conditions):
            result = False
            for inner in conditions:
                result = np.logical_or(result, possible(inner, extreme))
            return result


def extreme_of(linear: Linear, greatest: bool, extreme: Extreme) -> Any:
    """The greatest or least value that a form can take."""
    total: Any = linear.offset
    for leaf, coefficient in linear.parts:
        end = greatest == (coefficient > 0)
        is_floored = isinstance(leaf, Floored)
        value = extreme_of(leaf.linear, end, extreme) // leaf.divisor if is_floored else extreme(leaf, end)
        total = total + coefficient * value
    return total


def position(bound: Bound, extreme: Extreme) -> Any:
    """The element position that a bound stands for."""
    match bound:
        case Quotient(linear, greatest, divisor):
            return extreme_of(linear, greatest, extreme) // divisor
        case Outermost(positions, greatest):
            found = [position(inner, extreme) for inner in positions]
            choose = np.maximum if greatest else np.minimum
            result = found[0]
            for other in found[1:]:
                result = choose(result, other)
            return result


def slope(bound: Bound | None, leaf: Term) -> float:
    """By how much a bound grows with a leaf, on average over the positions of which it is the outermost."""
    match bound:
        case Quotient(linear, _, divisor):
            return linear.coefficient(leaf) / divisor
        case Outermost(positions):
            return sum(slope(inner, leaf) for inner in positions) / len(positions)
        case None:
            return 0.0


def block_range(bounds: LoopBounds, block: Any, blocks: Any, extreme: Extreme) -> tuple[Any, Any]:
    """The first block that is visited and the one after the last, of `blocks` blocks of `block` elements."""
    first = 0 if bounds.begin is None else np.maximum(0, position(bounds.begin, extreme) // block)
    past = blocks if bounds.end is None else np.minimum(blocks, -(-position(bounds.end, extreme) // block))
    return first, np.maximum(first, past)


def condition_forms(condition: Condition) -> Iterator[Linear]:
    """Every linear form of a condition."""
    match condition:
        case Nonnegative(linear):
            yield linear
        case AllOf(conditions) | AnyOf(conditions):
            for inner in conditions:
                yield from condition_forms(inner)


def condition_reads(condition: Condition) -> tuple[Read, ...]:
    """The tensors' blocks of which a condition needs extremes."""
    leaves = [leaf for form in condition_forms(condition) for leaf, _ in form.parts]
    return tuple(dict.fromkeys(leaf for leaf in leaves if isinstance(leaf, Read)))


def _leaves_of(form: Linear) -> Iterator[Term]:
    """The leaves of a form that are no forms themselves."""
    for leaf, _ in form.parts:
        if isinstance(leaf, Floored):
            yield from _leaves_of(leaf.linear)
        else:
            yield leaf


def _bound_forms(bound: Bound | None) -> Iterator[Linear]:
    match bound:
        case Quotient(linear):
            yield linear
        case Outermost(positions):
            for inner in positions:
                yield from _bound_forms(inner)
        case None:
            pass


def _unfloored(linear: Linear, index: str) -> Linear:
    """A form that is nonnegative where the given one is, in which the index does not stand inside a floor.

    floor(x / c) >= k is x >= c k, and floor(x / c) <= k is x <= c k + c - 1, for whole k.
    """
    inside = [(leaf, factor) for leaf, factor in linear.parts if index in leaf.free]
    match inside:
        case [(Floored(inner, divisor) as leaf, 1 | -1 as factor)]:
            rest = linear.plus(Linear(((leaf, 1),)), -factor).times(divisor)
            whole = rest if factor == 1 else rest.plus(Linear((), divisor - 1))
            return _unfloored(whole.plus(inner, factor), index)
        case _:
            return linear


def _solvable(linear: Linear, index: str) -> int:
    """The coefficient of the index, 0 where the form cannot be solved for it."""
    others = (leaf for leaf, _ in linear.parts if leaf != IndexValue(index))
    return 0 if any(index in leaf.free for leaf in others) else linear.coefficient(IndexValue(index))


def _begin(condition: Condition, index: str) -> Bound | None:
    """The first position of the index at which the condition may hold."""
    match condition:
        case Nonnegative(linear):
            linear = _unfloored(linear, index)
            factor = _solvable(linear, index)
            if factor <= 0:
                return None
            # factor * i + rest >= 0, so i is at least -rest / factor, rounded up.
            rest = linear.plus(Linear(((IndexValue(index), 1),)), -factor)
            return Quotient(rest.times(-1).plus(Linear((), factor - 1)), False, factor)
        case AllOf(conditions):
            return _joined([_begin(inner, index) for inner in conditions], True, all_needed=False)
        case AnyOf(conditions):
            return _joined([_begin(inner, index) for inner in conditions], False, all_needed=True)


def _end(condition: Condition, index: str) -> Bound | None:
    """The position after the last one at which the condition may hold."""
    match condition:
        case Nonnegative(linear):
            linear = _unfloored(linear, index)
            factor = -_solvable(linear, index)
            if factor <= 0:
                return None
            rest = linear.plus(Linear(((IndexValue(index), 1),)), factor)
            return Quotient(rest.plus(Linear((), factor)), True, factor)
        case AllOf(conditions):
            return _joined([_end(inner, index) for inner in conditions], False, all_needed=False)
        case AnyOf(conditions):
            return _joined([_end(inner, index) for inner in conditions], True, all_needed=True)


def _joined(found: list[Bound | None], greatest: bool, all_needed: bool) -> Bound | None:
    bounds = tuple(dict.fromkeys(bound for bound in found if bound is not None))
    if not bounds or (all_needed and None in found):
        return None
    return bounds[0] if len(bounds) == 1 else Outermost(bounds, greatest)


def _is_interval(condition: Condition, index: str) -> bool:
    """Whether the bounds alone say where the condition may hold."""
    match condition:
        case Nonnegative(linear):
            return _solvable(_unfloored(linear, index), index) != 0
        case AllOf(conditions):
            return all(_is_interval(inner, index) for inner in conditions)
        case AnyOf(conditions):
            one_sided = all(_begin(inner, index) is None for inner in conditions) or all(
                _end(inner, index) is None for inner in conditions
            )
            return one_sided and all(_is_interval(inner, index) for inner in conditions)
