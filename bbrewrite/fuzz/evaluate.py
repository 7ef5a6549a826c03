"""Evaluates a rule's terms on an instance, in a domain of numbers: exact numbers or floating point.

The meaning is the operator table's, entry by entry: operands are laid out over the letters of the result and of the
fold. Loops bind their index by name, as terms do, so a variable that leaves its loop or enters another is seen with
the position that its index has there.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from bbrewrite.core.operators import Operator, OperatorTable
from bbrewrite.core.terms import (
    Apply,
    At,
    Cast,
    Component,
    Loaded,
    Local,
    Map,
    Number,
    Pair,
    Reduce,
    Size,
    Stored,
    Term,
)
from bbrewrite.core.types import BlockType
from bbrewrite.fuzz import exact
from bbrewrite.fuzz.functions import FUNCTIONS
from bbrewrite.fuzz.instances import Instance
from bbrewrite.fuzz.shapes import Shapes

type Array = npt.NDArray[Any]
type Value = Array | list[Value] | tuple[Value, Value]
type Position = Mapping[str, int]


class Domain(Protocol):
    """Numbers of one sort in arrays."""

    def number(self, value: float) -> Array:
        """A literal, as an array without dimensions."""
        ...

    def leaf(self, array: Array) -> Array:
        """An instance's exact values in this domain."""
        ...

    def apply(self, function: str, operands: Sequence[Array]) -> Array:
        """A scalar function of the language, entry by entry, with broadcasting."""
        ...


class ExactDomain:
    """Arrays of exact numbers."""

    def number(self, value: float) -> Array:
        return filled((), exact.exact_number(value))

    def leaf(self, array: Array) -> Array:
        return array

    def apply(self, function: str, operands: Sequence[Array]) -> Array:
        return as_array(np.frompyfunc(FUNCTIONS[function], len(operands), 1)(*operands))


class FloatDomain:
    """Arrays of a NumPy float type."""

    def __init__(self, table: OperatorTable, dtype: type[np.floating[Any]]) -> None:
        self._table = table
        self._dtype = dtype

    def number(self, value: float) -> Array:
        return np.asarray(value, self._dtype)

    def leaf(self, array: Array) -> Array:
        return array.astype(self._dtype)

    def apply(self, function: str, operands: Sequence[Array]) -> Array:
        apply = self._table.functions[function].numpy
        assert apply is not None
        if function == "where":
            operands = [operands[0] != 0, *operands[1:]]
        return np.asarray(apply(*operands)).astype(self._dtype)


def filled(shape: tuple[int, ...], value: object) -> Array:
    """An array of objects that are all one."""
    array = np.empty(shape, dtype=object)
    array[...] = None
    for position in np.ndindex(shape):
        array[position] = value
    return array


@dataclass(frozen=True)
class Step:
    """A value that evaluation came by: of a term, at the positions of its loops."""

    term: Term
    position: tuple[tuple[str, int], ...]
    value: Value


class Evaluator:
    """Evaluates terms whose types `shapes` has found. `steps`, where given, receives every operator's value."""

    def __init__(
        self,
        table: OperatorTable,
        domain: Domain,
        instance: Instance,
        shapes: Shapes,
        steps: list[Step] | None = None,
    ) -> None:
        self._table = table
        self._domain = domain
        self._instance = instance
        self._shapes = shapes
        self._steps = steps
        self._memory: dict[tuple[Term, tuple[tuple[str, int], ...]], Value] = {}

    def value(self, term: Term, position: Position) -> Value:
        """The value at a position of every index."""
        key = (term, tuple(sorted(position.items())))
        if key not in self._memory:
            self._memory[key] = self._find(term, position)
            if self._steps is not None:
                self._steps.append(Step(term, key[1], self._memory[key]))
        return self._memory[key]

    def block(self, term: Term, position: Position) -> Array:
        found = self.value(term, position)
        assert isinstance(found, np.ndarray)
        return found

    def _find(self, term: Term, position: Position) -> Value:
        match term:
            case Number(value):
                return self._domain.number(value)
            case Size(index):
                return self._domain.number(float(self._instance.indices[index].extent))
            case Local(name):
                return self._leaf(self._instance.value(name, position))
            case Map(index, body):
                return [self.value(body, {**position, index: k}) for k in range(self._instance.indices[index].trips)]
            case At(items, address):
                found = self.value(items, position)
                assert isinstance(found, list)
                return found[position[address.plain_index or ""]]
            case Stored(value) | Loaded(value) | Cast(_, value):
                return self.value(value, position)
            case Pair(first, second):
                return (self.value(first, position), self.value(second, position))
            case Component(side, pair):
                return _component(self.value(pair, position), side)
            case Reduce():
                return self._reduce(term, position)
            case Apply(name, operands, indices):
                values = [self.block(operand, position) for operand in operands]
                lengths = [self._instance.indices[index].length(position[index]) for index in indices]
                return self._apply(self._table.operators[name], values, lengths)
            case _:
                raise AssertionError(term)

    def _leaf(self, value: Value) -> Value:
        if isinstance(value, np.ndarray):
            return self._domain.leaf(value)
        if isinstance(value, list):
            return [self._leaf(item) for item in value]
        return (self._leaf(value[0]), self._leaf(value[1]))

    def _apply(self, operator: Operator, operands: Sequence[Array], lengths: Sequence[int]) -> Array:
        return apply_operator(self._table, self._domain, operator, operands, lengths)

    def _reduce(self, term: Reduce, position: Position) -> Array:
        monoid = self._table.monoids[term.monoid]
        types = self._shapes.states[term]
        state = [
            self._broadcast(self._domain.number(identity), kind, position)
            for identity, kind in zip(monoid.identity, types, strict=True)
        ]
        for k in range(self._instance.indices[term.index].trips):
            inner = {**position, term.index: k}
            operands = dict(
                zip(monoid.parameters, (self.block(operand, inner) for operand in term.operands), strict=True)
            )
            element = [
                self._broadcast(self.local(e, operands), t, position)
                for e, t in zip(monoid.element, types, strict=True)
            ]
            sides = dict(zip((*monoid.left, *monoid.right), (*state, *element), strict=True))
            state = [
                self._broadcast(self.local(c, sides), t, position) for c, t in zip(monoid.combine, types, strict=True)
            ]
        return self.local(monoid.finish, dict(zip(monoid.state, state, strict=True)))

    def _broadcast(self, value: Array, kind: BlockType, position: Position) -> Array:
        return np.broadcast_to(value, self._instance.shape(kind.axes, position))

    def local(self, term: Term, named: Mapping[str, Array]) -> Array:
        """A term of operators over named blocks, as monoids have them."""
        return evaluate_local(self._table, self._domain, term, named)


def evaluate_local(table: OperatorTable, domain: Domain, term: Term, named: Mapping[str, Array]) -> Array:
    """A term of operators over named blocks."""
    match term:
        case Local(name):
            return named[name]
        case Number(value):
            return domain.number(value)
        case Cast(_, value):
            return evaluate_local(table, domain, value, named)
        case Apply(name, operands):
            values = [evaluate_local(table, domain, operand, named) for operand in operands]
            return apply_operator(table, domain, table.operators[name], values, ())
        case _:
            raise AssertionError(term)


def apply_operator(
    table: OperatorTable, domain: Domain, operator: Operator, operands: Sequence[Array], lengths: Sequence[int]
) -> Array:
    """The operator's value; `lengths` are those of its index attributes."""
    if operator.is_elementwise:
        return _function(table, domain, operator.function, operands)
    ranks = [operand.ndim for operand in operands]
    signature = next(s for s in operator.signatures if [len(letters) for letters in s.operands] == ranks)
    folded = "".join(dict.fromkeys(c for letters in signature.operands for c in letters if c not in signature.result))
    layout = signature.result + folded
    placed = [_placed(a, letters, layout) for a, letters in zip(operands, signature.operands, strict=True)]
    value = _function(table, domain, operator.function, placed) if operator.function else placed[0]
    if lengths:
        shape = tuple(lengths[int(c)] if c.isdigit() else n for c, n in zip(layout, value.shape, strict=True))
        value = np.broadcast_to(value, shape)
    return fold(table, domain, operator.fold, value, len(folded)) if operator.fold else value


def fold(table: OperatorTable, domain: Domain, monoid: str, value: Array, axes: int) -> Array:
    """The last `axes` dimensions combined by a built-in monoid; none of them is empty."""
    combine = table.monoids[monoid].combine[0]
    assert isinstance(combine, Apply)
    flat = value.reshape((*value.shape[: value.ndim - axes], -1))
    total = flat[..., 0]
    for k in range(1, flat.shape[-1]):
        total = domain.apply(combine.operator, [as_array(total), as_array(flat[..., k])])
    return as_array(total)


def as_array(value: Any) -> Array:
    """A bare entry, as NumPy gives it in place of an array without dimensions, as such an array."""
    return np.asarray(value) if hasattr(value, "dtype") else filled((), value)


def _function(table: OperatorTable, domain: Domain, name: str, operands: Sequence[Array]) -> Array:
    function = table.functions[name]
    if function.body is None:
        return domain.apply(name, operands)
    return evaluate_local(table, domain, function.body, dict(zip(function.parameters, operands, strict=True)))


def _placed(operand: Array, letters: str, layout: str) -> Array:
    """The operand with its axes where the layout has their letters, and length 1 elsewhere."""
    present = [letter for letter in layout if letter in letters]
    ordered = operand.transpose([letters.index(letter) for letter in present])
    lengths = iter(ordered.shape)
    return ordered.reshape([next(lengths) if letter in letters else 1 for letter in layout])


def _component(value: Value, side: int) -> Value:
    if isinstance(value, list):
        return [_component(item, side) for item in value]
    assert isinstance(value, tuple)
    return value[side]


def positions(instance: Instance, indices: Sequence[str]) -> list[dict[str, int]]:
    """Every position of some indices, the others at their outer position."""
    ranges = [range(instance.indices[index].trips) for index in indices]
    return [{**instance.outer, **dict(zip(indices, chosen, strict=True))} for chosen in itertools.product(*ranges)]


def map_value(value: Value, change: Callable[[Array], Value]) -> Value:
    """The value with each of its blocks changed."""
    if isinstance(value, np.ndarray):
        return change(value)
    if isinstance(value, list):
        return [map_value(item, change) for item in value]
    return (map_value(value[0], change), map_value(value[1], change))
