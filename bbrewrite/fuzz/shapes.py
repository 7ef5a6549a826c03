"""Types of a rule's terms: which axes of its pattern variables must be equal, once each variable's kind is chosen.

An axis is a symbol. Operators unify the axes of their operands, so what is left unequal may be of unequal length.
An axis may further be *along* an index: its blocks are as long as the index's current block, the last one shorter.
Lists have the extent of an index; the indices that one list is read at have one extent.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bbrewrite.core.elements import Element
from bbrewrite.core.operators import Monoid, Operator, OperatorTable
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
from bbrewrite.core.types import BlockType, ListType, PairType, StoredType, Type
from bbrewrite.rules.kinds import Kinds

ELEMENT = Element.F64
_MOST_CHOICES = 4_000


class ShapeFault(Exception):
    """Terms without a type: the kinds do not fit, or two axes along unlike indices would have to be equal."""


@dataclass
class Symbols:
    """Axes and extents that are known to be equal: classes of symbols.

    `along` fixes an axis to an index, `barred` are (axis, index) that may not be, with lists' extents in `extents`.
    """

    parents: dict[str, str] = field(default_factory=dict[str, str])
    along: dict[str, str] = field(default_factory=dict[str, str])
    barred: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    merges: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def copy(self) -> Symbols:
        return Symbols(dict(self.parents), dict(self.along), set(self.barred), list(self.merges))

    def find(self, symbol: str) -> str:
        while symbol in self.parents:
            symbol = self.parents[symbol]
        return symbol

    def unify(self, a: str, b: str) -> None:
        a, b = self.find(a), self.find(b)
        if a == b:
            return
        if a in self.along and b in self.along and self.along[a] != self.along[b]:
            raise ShapeFault
        if b in self.along:
            a, b = b, a
        self.parents[b] = a
        self.merges.append((a, b))

    def bar(self, axis: str, index: str) -> None:
        """The axis is not along the index."""
        self.barred.add((axis, index))

    def is_barred(self, axis: str, index: str) -> bool:
        root = self.find(axis)
        return any(self.find(other) == root and i == index for other, i in self.barred)


def extent_of(index: str) -> str:
    """The symbol of an index's extent."""
    return f"#{index}"


class Shapes:
    """Finds types of terms; each term's is kept in `known`. Raises ShapeFault."""

    def __init__(self, table: OperatorTable, variables: Mapping[str, Type], symbols: Symbols) -> None:
        self.known: dict[Term, Type] = {}
        self.states: dict[Reduce, tuple[BlockType, ...]] = {}
        self._table = table
        self._variables = variables
        self._symbols = symbols

    def of(self, term: Term) -> Type:
        if term not in self.known:
            self.known[term] = self._find(term)
        return self.known[term]

    def block(self, term: Term) -> BlockType:
        found = self.of(term)
        if not isinstance(found, BlockType):
            raise ShapeFault
        return found

    def _find(self, term: Term) -> Type:
        match term:
            case Number() | Size():
                return BlockType((), ELEMENT)
            case Local(name):
                return self._variables[name]
            case Map(index, body):
                return ListType(index, self.of(body))
            case At(items, address):
                return self._read(self.of(items), address.plain_index or "")
            case Stored(value):
                return StoredType(self.of(value))
            case Loaded(stored):
                found = self.of(stored)
                if not isinstance(found, StoredType):
                    raise ShapeFault
                return found.item
            case Pair(first, second):
                return PairType(self.of(first), self.of(second))
            case Component(position, pair):
                return self._component(self.of(pair), position)
            case Cast(_, value):
                return self.of(value)
            case Reduce():
                return self._reduce(term)
            case Apply(name, operands, indices):
                return self._apply(self._table.operators[name], [self.block(o).axes for o in operands], indices)
            case _:
                raise AssertionError(term)

    def _read(self, found: Type, index: str) -> Type:
        if not isinstance(found, ListType):
            raise ShapeFault
        self._symbols.unify(extent_of(found.index), extent_of(index))
        if found.index != index:
            for axis in axes_of(found.item):
                self._symbols.bar(axis, found.index)
        return found.item

    def _component(self, found: Type, position: int) -> Type:
        match found:
            case PairType(first, second):
                return (first, second)[position]
            case ListType(index, item):
                return ListType(index, self._component(item, position))
            case _:
                raise ShapeFault

    def _apply(self, operator: Operator, operands: Sequence[tuple[str, ...]], indices: tuple[str, ...]) -> BlockType:
        if operator.is_elementwise:
            shaped = [axes for axes in operands if axes]
            for axes in shaped[1:]:
                if len(axes) != len(shaped[0]):
                    raise ShapeFault
                for a, b in zip(shaped[0], axes, strict=True):
                    self._symbols.unify(a, b)
            return BlockType(shaped[0] if shaped else (), ELEMENT)
        ranks = [len(axes) for axes in operands]
        signature = next((s for s in operator.signatures if [len(letters) for letters in s.operands] == ranks), None)
        if signature is None:
            raise ShapeFault
        letters = {str(position): self._axis_along(index) for position, index in enumerate(indices)}
        for pattern, axes in zip(signature.operands, operands, strict=True):
            for letter, axis in zip(pattern, axes, strict=True):
                self._symbols.unify(letters.setdefault(letter, axis), axis)
        return BlockType(tuple(letters[letter] for letter in signature.result), ELEMENT)

    def _axis_along(self, index: str) -> str:
        symbol = f"@{index}"
        self._symbols.along[symbol] = index
        return symbol

    def _reduce(self, term: Reduce) -> BlockType:
        monoid = self._table.monoids[term.monoid]
        operands = [self.block(operand) for operand in term.operands]
        for operand in operands:
            for axis in operand.axes:
                self._symbols.bar(axis, term.index)
        self.states[term] = monoid_state(monoid, operands, self._table, self._symbols)
        return self.inner(dict(zip(monoid.state, self.states[term], strict=True))).block(monoid.finish)

    def inner(self, variables: Mapping[str, Type]) -> Shapes:
        return Shapes(self._table, variables, self._symbols)


def monoid_state(
    monoid: Monoid, operands: Sequence[BlockType], table: OperatorTable, symbols: Symbols
) -> tuple[BlockType, ...]:
    """The types of a monoid's state: each component is as wide as its elements and what combining makes of them."""
    shapes = Shapes(table, dict(zip(monoid.parameters, operands, strict=True)), symbols)
    wider = [shapes.block(term) for term in monoid.element]
    state: list[BlockType] = []
    while [len(kind.axes) for kind in state] != [len(kind.axes) for kind in wider]:
        state = wider
        sides = dict(zip((*monoid.left, *monoid.right), (*state, *state), strict=True))
        combined = Shapes(table, sides, symbols)
        wider = [_joined(old, combined.block(term), symbols) for old, term in zip(state, monoid.combine, strict=True)]
    return tuple(state)


def _joined(one: BlockType, other: BlockType, symbols: Symbols) -> BlockType:
    """The type to which both can be broadcast."""
    if one.axes and other.axes:
        unify_types(one, other, symbols)
    return one if one.axes else other


def unify_types(a: Type, b: Type, symbols: Symbols) -> None:
    """Makes two types equal; pairs of lists equal lists of pairs. Raises ShapeFault."""
    match _paired(a), _paired(b):
        case BlockType(one), BlockType(other) if len(one) == len(other):
            for x, y in zip(one, other, strict=True):
                symbols.unify(x, y)
        case ListType(i, one), ListType(j, other):
            symbols.unify(extent_of(i), extent_of(j))
            if i != j:
                for axis in axes_of(one):
                    symbols.bar(axis, i)
                for axis in axes_of(other):
                    symbols.bar(axis, j)
            unify_types(one, other, symbols)
        case PairType(a1, a2), PairType(b1, b2):
            unify_types(a1, b1, symbols)
            unify_types(a2, b2, symbols)
        case StoredType(one), StoredType(other):
            unify_types(one, other, symbols)
        case _:
            raise ShapeFault


def variable_types(kinds: Mapping[str, Kinds]) -> Iterator[dict[str, Type]]:
    """Ways to choose each variable's type, small ones first; axes are fresh symbols."""
    choices = [[*_choices(name, found)] for name, found in kinds.items()]
    products = itertools.islice(itertools.product(*choices), 100_000)
    for chosen in itertools.islice(sorted(products, key=lambda types: sum(map(_weight, types))), _MOST_CHOICES):
        yield dict(zip(kinds, chosen, strict=True))


def _choices(name: str, kinds: Kinds) -> Iterator[Type]:
    ranks = {"scalar": 0, "vector": 1, "matrix": 2}
    for kind, rank in ranks.items():
        if kind in kinds:
            yield _block(name, rank)
    is_open = bool(kinds & ranks.keys())
    if "list" in kinds:
        domain = f"${name}"
        yield ListType(domain, _block(name, 2))
        if not is_open:
            yield from (ListType(domain, _block(name, rank)) for rank in (1, 0))
            yield ListType(domain, ListType(f"{domain}'", _block(name, 2)))
            yield ListType(domain, PairType(_block(name, 2), _block(f"{name}'", 1)))
            yield from (StoredType(_block(name, rank)) for rank in (2, 1, 0))
    if "pair" in kinds:
        yield PairType(_block(name, 2), _block(f"{name}'", 1))
        if not is_open:
            yield from (
                PairType(_block(name, first), _block(f"{name}'", second))
                for first, second in itertools.product(range(3), repeat=2)
                if (first, second) != (2, 1)
            )


def _block(name: str, rank: int) -> BlockType:
    return BlockType(tuple(f"{name}.{position}" for position in range(rank)), ELEMENT)


def _weight(found: Type) -> int:
    match found:
        case BlockType(axes):
            return len(axes)
        case ListType(_, item) | StoredType(item):
            return 3 + _weight(item)
        case PairType(first, second):
            return 3 + _weight(first) + _weight(second)


def axes_of(found: Type) -> tuple[str, ...]:
    """The axes of every block in a value of the type."""
    match found:
        case BlockType(axes):
            return axes
        case ListType(_, item) | StoredType(item):
            return axes_of(item)
        case PairType(first, second):
            return axes_of(first) + axes_of(second)


def _paired(found: Type) -> Type:
    match found:
        case PairType(first, second):
            one, other = _paired(first), _paired(second)
            if isinstance(one, ListType) and isinstance(other, ListType) and one.index == other.index:
                return ListType(one.index, _paired(PairType(one.item, other.item)))
            return PairType(one, other)
        case ListType(index, item):
            return ListType(index, _paired(item))
        case _:
            return found
