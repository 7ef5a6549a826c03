"""Executes block programs exactly as written: every map, read and reduction loops over blocks.

It shows what a term means, however unusual its shape (lists inside loops, pairs of lists, users' monoids, reads
of computed lists at expressions), so rules and plans are checked against it. A term's last value is kept and used
again while the indices it depends on stand still, or all its values where extents are small; beyond that it does not
try to be fast.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bbrewrite.core.addresses import Address
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import BlockProgram, Definition, Tensor
from bbrewrite.core.terms import At, Component, Loaded, Local, Map, Pair, Reduce, Stored, Term
from bbrewrite.core.types import BlockType, ListType, PairType, StoredType, Type, Typing
from bbrewrite.interpret.block_terms import BlockTerms, storage_of, store
from bbrewrite.interpret.positions import Point, gather
from bbrewrite.interpret.scalar_functions import Array, compute_dtype, identity_of


@dataclass(frozen=True)
class BlockList:
    """A list in global memory: one item for each block (or position) of its index."""

    index: str
    items: tuple[Value, ...]


@dataclass(frozen=True)
class ValuePair:
    """Two values made together."""

    first: Value
    second: Value


type Value = Array | BlockList | ValuePair


def run_block_program(
    program: BlockProgram, arrays: Mapping[str, Array], extents: Mapping[str, int], table: OperatorTable
) -> dict[str, Array]:
    """Every definition's array by tensor name, buffers included, in their storage types.

    `arrays` gives inputs and weights in their storage types, `extents` the extents of root indices.
    """
    memory = {tensor.name: np.asarray(arrays[tensor.name]) for tensor in program.inputs}
    executor = _Executor(table, program.indices.with_extents(extents), program.tensors, memory)
    with np.errstate(all="ignore"):
        for definition in program.definitions:
            memory[definition.tensor.name] = executor.definition(definition)
    return {definition.tensor.name: memory[definition.tensor.name] for definition in program.definitions}


class TermValues:
    """Values of terms at points of the loops, of which all are kept: for small extents, and many terms alike.

    The extents of `indices` are known; `arrays` holds every tensor that the terms read.
    """

    def __init__(
        self, indices: IndexTable, tensors: Mapping[str, Tensor], arrays: Mapping[str, Array], table: OperatorTable
    ) -> None:
        self._executor = _Executor(table, indices, tensors, arrays, keeps_all=True)

    def of(self, term: Term, point: Point) -> Value:
        """One term's value at a point: block or position numbers of its free indices."""
        with np.errstate(all="ignore"):
            return self._executor.value(term, point)


class _Executor:
    """Holds the last value of every term, or all of them, with the positions at which they were computed."""

    def __init__(
        self,
        table: OperatorTable,
        indices: IndexTable,
        tensors: Mapping[str, Tensor],
        memory: Mapping[str, Array],
        locals: Mapping[str, BlockType] | None = None,
        keeps_all: bool = False,
    ) -> None:
        self._table = table
        self._indices = indices
        self._tensors = tensors
        self._memory = memory
        self._terms = BlockTerms(table, indices, tensors, memory, locals)
        self._keeps_all = keeps_all
        self._kept: dict[Term, tuple[tuple[str, ...], dict[tuple[int, ...], Value]]] = {}  # with the free indices
        self._reductions: dict[Reduce, _Reduction] = {}

    def definition(self, definition: Definition) -> Array:
        """A definition's array, stored block by block."""
        tensor = definition.tensor
        array = storage_of(tensor, self._terms.positions)
        term, outer = definition.term, list[str]()
        # The outer maps are streamed into the array; what is below them, usually a block, is stored whole.
        while isinstance(term, Map) and len(outer) < len(tensor.indices):
            outer.append(term.index)
            term = term.body
        for numbers in itertools.product(*(range(self._terms.positions.trips(index)) for index in outer)):
            point = dict(zip(outer, numbers, strict=True))
            self._store_value(array, outer, self.value(term, point), point)
        return array

    def _store_value(self, array: Array, indices: list[str], value: Value, point: Point) -> None:
        match value:
            case BlockList(index, items):
                for number, item in enumerate(items):
                    self._store_value(array, [*indices, index], item, {**point, index: number})
            case ValuePair():
                raise AssertionError("a definition is no pair")
            case _:
                store(array, self._terms.positions.window(indices, point), value)

    def block(self, term: Term, point: Point, locals: Mapping[str, Array] | None = None) -> Array:
        """The value of a term that is a block."""
        value = self.value(term, point, locals)
        assert isinstance(value, np.ndarray)
        return value

    def value(self, term: Term, point: Point, locals: Mapping[str, Array] | None = None) -> Value:
        """The value at a point. With `locals`, the values of named leaves, nothing is kept."""
        if locals is not None:
            return self._find(term, point, locals)
        kept = self._kept.get(term)
        if kept is None:
            kept = self._kept[term] = (tuple(sorted(term.free)), {})
        names, values = kept
        here = tuple([point[name] for name in names])
        found = values.get(here)
        if found is None:
            found = self._find(term, point, None)
            if not self._keeps_all:
                values.clear()
            values[here] = found
        return found

    def _find(self, term: Term, point: Point, locals: Mapping[str, Array] | None) -> Value:
        match term:
            case Local(name):
                assert locals is not None
                return locals[name]
            case Map(index, body):
                trips = range(self._terms.positions.trips(index))
                return BlockList(index, tuple(self.value(body, {**point, index: number}, locals) for number in trips))
            case At(items, address):
                found = self.value(items, point, locals)
                kind = self._terms.typing.of(items)
                assert isinstance(found, BlockList)
                assert isinstance(kind, ListType)
                return self._read(found, kind, address, point)
            case Stored(value) | Loaded(value):
                return self.value(value, point, locals)
            case Reduce():
                return self._reduce(term, point, locals)
            case Pair(first, second):
                return ValuePair(self.value(first, point, locals), self.value(second, point, locals))
            case Component(position, pair):
                return _component(self.value(pair, point, locals), position)
            case _:
                return self._terms.value(term, point, lambda child: self.block(child, point, locals))

    def _reduce(self, term: Reduce, point: Point, locals: Mapping[str, Array] | None) -> Array:
        if term not in self._reductions:
            self._reductions[term] = _Reduction(
                term, self._terms.typing, self._table, self._indices, self._tensors, self._memory
            )
        reduction = self._reductions[term]
        state = reduction.identity(point)
        for number in range(self._terms.positions.trips(term.index)):
            inner = {**point, term.index: number}
            state = reduction.combined(state, [self.block(o, inner, locals) for o in term.operands], point)
        return reduction.finished(state, point)

    def _read(self, found: BlockList, kind: ListType, address: Address, point: Point) -> Value:
        positions = self._terms.positions
        plain = address.plain_index
        if plain is not None and positions.block(plain) == positions.block(kind.index):
            return found.items[point[plain]]
        return self._gathered(found.items, kind.item, kind.index, positions.address(address, point), point)

    def _gathered(self, items: tuple[Value, ...], kind: Type, index: str, at: Array, point: Point) -> Value:
        """From the items of a list over `index`, the element positions `at`; 0 outside the list."""
        match kind:
            case ListType(inner, item):
                lists = [value for value in items if isinstance(value, BlockList)]
                columns: list[Value] = []
                for number in range(self._terms.positions.trips(inner)):
                    column = tuple(one.items[number] for one in lists)
                    columns.append(self._gathered(column, item, index, at, {**point, inner: number}))
                return BlockList(inner, tuple(columns))
            case PairType(first, second):
                sides = ((tuple(_component(v, k) for v in items), side) for k, side in enumerate((first, second)))
                return ValuePair(*(self._gathered(values, side, index, at, point) for values, side in sides))
            case StoredType():
                raise AssertionError("a list holds no stored scalars")
            case BlockType(axes, element):
                blocks = [value for value in items if isinstance(value, np.ndarray)]
                if index in axes:
                    # The list's own axis stands behind those that reads of outer lists gave, maybe under its name.
                    axis = len(axes) - 1 - axes[::-1].index(index)
                    shape = self._terms.shape((*axes[:axis], *axes[axis + 1 :]), point)
                    empty = np.zeros((*shape[:axis], 0, *shape[axis:]), compute_dtype(element))
                    dense = np.concatenate([empty, *blocks], axis=axis)
                else:
                    assert self._terms.positions.block(index) is None, f"a block without an axis {index}"
                    axis = 0
                    empty = np.zeros((0, *self._terms.shape(axes, point)), compute_dtype(element))
                    dense = np.stack(blocks) if blocks else empty
                rank = dense.ndim - 1 + at.ndim
                spots = [
                    at.reshape([1] * axis + [*at.shape] + [1] * (rank - axis - at.ndim))
                    if k == axis
                    else _along(np.arange(length), k if k < axis else k - 1 + at.ndim, rank)
                    for k, length in enumerate(dense.shape)
                ]
                return gather(dense, spots)


class _Reduction:
    """One reduction's monoid on operands of known types."""

    def __init__(
        self,
        term: Reduce,
        typing: Typing,
        table: OperatorTable,
        indices: IndexTable,
        tensors: Mapping[str, Tensor],
        memory: Mapping[str, Array],
    ) -> None:
        self._monoid = monoid = table.monoids[term.monoid]
        self._types = state = typing.state(term)
        self._dtype = compute_dtype(typing.block(term).element)
        types = [typing.block(operand) for operand in term.operands]
        parameters = dict(zip(monoid.parameters, types, strict=True))
        sides = dict(zip((*monoid.left, *monoid.right), (*state, *state), strict=True))
        final = dict(zip(monoid.state, state, strict=True))
        self._element = _Executor(table, indices, tensors, memory, parameters)
        self._combine = _Executor(table, indices, tensors, memory, sides)
        self._finish = _Executor(table, indices, tensors, memory, final)
        self._shapes = BlockTerms(table, indices, tensors, memory)

    def identity(self, point: Point) -> list[Array]:
        return [
            np.full(self._shapes.shape(kind.axes, point), identity_of(value, dtype), dtype)
            for value, kind in zip(self._monoid.identity, self._types, strict=True)
            for dtype in (compute_dtype(kind.element),)
        ]

    def combined(self, state: list[Array], operands: list[Array], point: Point) -> list[Array]:
        given = dict(zip(self._monoid.parameters, operands, strict=True))
        right = self._fitted([self._element.block(term, point, given) for term in self._monoid.element], state)
        sides = dict(zip((*self._monoid.left, *self._monoid.right), (*state, *right), strict=True))
        return self._fitted([self._combine.block(term, point, sides) for term in self._monoid.combine], state)

    def finished(self, state: list[Array], point: Point) -> Array:
        result = self._finish.block(self._monoid.finish, point, dict(zip(self._monoid.state, state, strict=True)))
        return result.astype(self._dtype, copy=False)

    @staticmethod
    def _fitted(values: list[Array], state: list[Array]) -> list[Array]:
        return [
            np.broadcast_to(value.astype(old.dtype, copy=False), old.shape)
            for value, old in zip(values, state, strict=True)
        ]


def _component(value: Value, position: int) -> Value:
    match value:
        case ValuePair(first, second):
            return (first, second)[position]
        case BlockList(index, items):
            return BlockList(index, tuple(_component(item, position) for item in items))
        case _:
            raise AssertionError("a pair is needed")


def _along(values: Array, axis: int, rank: int) -> Array:
    return values.reshape([-1 if k == axis else 1 for k in range(rank)])
