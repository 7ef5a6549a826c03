"""Types of block terms, and how they follow from the operator table.

A block's type names its axes by index, so that `dot` of blocks over different contracted indices, or
a scale along the wrong axis, is an error here rather than a wrong number later. Pattern variables of
rules are not typed here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

from bbrewrite.core.elements import Element, as_float, wider
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import Operator, OperatorTable, ScalarFunction
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import (
    Apply,
    At,
    Cast,
    Component,
    IndexValue,
    Loaded,
    Local,
    Map,
    Number,
    Pair,
    Read,
    Reduce,
    Size,
    Stored,
    Term,
)


class BlockTypeError(Exception):
    """A term without a type; the message names the operator and the types that disagree."""

    def __init__(self, message: str, term: Term) -> None:
        super().__init__(message)
        self.term = term


class BlockType(NamedTuple):
    """A matrix (two axes: rows, columns), vector (one) or scalar (none) in local memory.

    `element` is None for a bare whole number, which takes the type of what it meets.
    """

    axes: tuple[str, ...]
    element: Element | None

    def __str__(self) -> str:
        kind = ("scalar", "vector", "matrix")[len(self.axes)]
        return kind + (f"[{', '.join(self.axes)}]" if self.axes else "")


@dataclass(frozen=True)
class ListType:
    """A list over an index, in global memory."""

    index: str
    item: Type

    def __str__(self) -> str:
        return f"list over {self.index} of {self.item}"


@dataclass(frozen=True)
class StoredType:
    """A block by itself in global memory."""

    item: Type

    def __str__(self) -> str:
        return f"stored {self.item}"


@dataclass(frozen=True)
class PairType:
    """Two values made together."""

    first: Type
    second: Type

    def __str__(self) -> str:
        return f"pair of {self.first} and {self.second}"


# Functions whose value is one of their operands.
_CHOOSING = frozenset({"where", "maximum", "minimum"})

type Type = BlockType | ListType | StoredType | PairType


class Typing:
    """Finds the types of terms; memoised, for one program's indices and tensors.

    `locals` gives the types of `Local` leaves. Raises BlockTypeError.
    """

    def __init__(
        self,
        table: OperatorTable,
        indices: IndexTable,
        tensors: Mapping[str, Tensor],
        locals: Mapping[str, Type] | None = None,
    ) -> None:
        self._table = table
        self._indices = indices
        self._tensors = tensors
        # Looked up late: a caller may add to it.
        self._locals: Mapping[str, Type] = {} if locals is None else locals
        self._known: dict[Term, Type] = {}
        self._states: dict[Reduce, tuple[BlockType, ...]] = {}
        # What follows from the types of operands alone holds whatever the local blocks are.
        self._applied: dict[tuple[str, tuple[str, ...], tuple[BlockType, ...]], BlockType] = {}
        self._natural: dict[tuple[str, tuple[BlockType, ...]], tuple[BlockType, ...]] = {}

    def with_locals(self, locals: Mapping[str, BlockType]) -> Typing:
        """The same program's typing with other local blocks."""
        return self._with(self._tensors, locals)

    def with_tensors(self, tensors: Mapping[str, Tensor]) -> Typing:
        """The same program's typing with tensors of other types."""
        return self._with(tensors, self._locals)

    def _with(self, tensors: Mapping[str, Tensor], locals: Mapping[str, Type]) -> Typing:
        found = Typing(self._table, self._indices, tensors, locals)
        found._applied, found._natural = self._applied, self._natural
        return found

    def block(self, term: Term) -> BlockType:
        """The type of a term that must be a block."""
        found = self.of(term)
        if not isinstance(found, BlockType):
            raise BlockTypeError(f"a block is needed, this is a {found}", term)
        return found

    def state(self, term: Reduce) -> tuple[BlockType, ...]:
        """The types in which a reduction's state is held.

        Errors of f32 add up from iteration to iteration. So what sums up is held as f64, except where a component is a
        matrix: vectors and numbers cost next to nothing beside the blocks that they are made from. A component that is
        chosen among its operands, as a maximum is, loses nothing.
        """
        found = self._states.get(term)
        if found is None:
            found = self._states[term] = self._find_state(term)
        return found

    def _find_state(self, term: Reduce) -> tuple[BlockType, ...]:
        state = self._natural_state(term)
        if any(len(component.axes) > 1 for component in state):
            return state
        combine = self._table.monoids[term.monoid].combine
        return tuple(
            _accumulated(found) if self._rounds(part) else found for found, part in zip(state, combine, strict=True)
        )

    def _natural_state(self, term: Reduce) -> tuple[BlockType, ...]:
        """The types that follow from the operands: each component is as wide as its identity, its elements and what
        combining makes of them need it to be."""
        key = (term.monoid, tuple([self.block(operand) for operand in term.operands]))
        found = self._natural.get(key)
        if found is None:
            found = self._natural[key] = self._find_natural_state(term, key[1])
        return found

    def _find_natural_state(self, term: Reduce, operands: tuple[BlockType, ...]) -> tuple[BlockType, ...]:
        monoid = self._table.monoids[term.monoid]
        try:
            element = self.with_locals(dict(zip(monoid.parameters, operands, strict=True)))
            wider_state = tuple(
                _beside(value, element.block(part)) for value, part in zip(monoid.identity, monoid.element, strict=True)
            )
            state: tuple[BlockType, ...] = ()
            while state != wider_state:
                state = wider_state
                sides = dict(zip((*monoid.left, *monoid.right), (*state, *state), strict=True))
                combine = self.with_locals(sides)
                wider_state = tuple(
                    _joined(old, combine.block(part), part) for old, part in zip(state, monoid.combine, strict=True)
                )
        except BlockTypeError as fault:
            raise BlockTypeError(f"`{monoid.name}` cannot combine these blocks: {fault}", term) from None
        return state

    def _rounds(self, term: Term) -> bool:
        """Whether a combination may make a number that is none of its operands."""
        if not isinstance(term, Apply):
            return any(self._rounds(child) for child in term.children)
        function = self._table.functions.get(term.operator)
        if function is not None and function.type_rule == "bool":
            return False
        body = function.body if function is not None else None
        chooses = term.operator in _CHOOSING or (body is not None and not self._rounds(body))
        return not chooses or any(self._rounds(operand) for operand in term.operands)

    def of(self, term: Term) -> Type:
        """The type of a term."""
        found = self._known.get(term)
        if found is None:
            found = self._known[term] = self._find(term)
        return found

    def _find(self, term: Term) -> Type:
        match term:
            case Apply():  # most terms are
                return self._apply(term)
            case Number(value):
                # A fraction among whole numbers or positions must not be cut to a whole number.
                return BlockType((), None if value.is_integer() else Element.NUMBER)
            case Size():
                return BlockType((), Element.INDEX)
            case IndexValue(index):
                return BlockType((index,) if self._indices.is_blocked(index) else (), Element.INDEX)
            case Read():
                return self._read(term)
            case Local(name):
                return self._locals[name]
            case Map(index, body):
                return ListType(index, self.of(body))
            case At():
                return self._at(term)
            case Stored(value):
                return StoredType(self.of(value))
            case Loaded(stored):
                return self._loaded(term, self.of(stored))
            case Reduce():
                return self._reduce(term)
            case Pair(first, second):
                return PairType(self.of(first), self.of(second))
            case Component(position, pair):
                return self._component(term, position, self.of(pair))
            case Cast(element, value):
                inner = self.of(value)
                return _with_element(inner, Element(element))
            case _:
                raise AssertionError(term)

    def _read(self, term: Read) -> BlockType:
        axes = tuple(
            name for address in term.addresses for name, _ in address.indices if self._indices.is_blocked(name)
        )
        if len(axes) > 2:
            raise BlockTypeError(f"{term.tensor} is read along {len(axes)} blocked axes; a block has at most two", term)
        return BlockType(axes, self._tensors[term.tensor].element)

    def _at(self, term: At) -> Type:
        items = self.of(term.items)
        if isinstance(items, PairType):
            raise BlockTypeError("a pair of lists cannot be read as one list", term)
        if not isinstance(items, ListType):
            raise BlockTypeError(f"only a list can be read at an index, this is a {items}", term)
        plain = term.address.plain_index
        if plain is not None and not self._indices.same_extent(plain, items.index):
            raise BlockTypeError(f"a list over {items.index} cannot be read at {plain}, of another extent", term)
        blocked = tuple(name for name, _ in term.address.indices if self._indices.is_blocked(name))
        own = (items.index,) if self._indices.is_blocked(items.index) else ()
        return _readdressed(items.item, own, blocked, ())

    def _loaded(self, term: Term, stored: Type) -> Type:
        if not isinstance(stored, StoredType):
            raise BlockTypeError(f"only a stored block can be loaded, this is a {stored}", term)
        return stored.item

    def _reduce(self, term: Reduce) -> BlockType:
        monoid = self._table.monoids[term.monoid]
        operands = [self.block(operand) for operand in term.operands]
        for operand in operands:
            if term.index in operand.axes:
                raise BlockTypeError(
                    f"a block along {term.index} cannot be combined over the blocks of {term.index};"
                    f" reduce it inside the block first",
                    term,
                )
        state = dict(zip(monoid.state, self._natural_state(term), strict=True))
        return self.with_locals(state).block(monoid.finish)

    def _component(self, term: Term, position: int, pair: Type) -> Type:
        if isinstance(pair, PairType):
            return (pair.first, pair.second)[position]
        if isinstance(pair, ListType):
            return ListType(pair.index, self._component(term, position, pair.item))
        raise BlockTypeError(f"a pair is needed, this is a {pair}", term)

    def _apply(self, term: Apply) -> BlockType:
        operands = tuple([self.block(operand) for operand in term.operands])
        key = (term.operator, term.indices, operands)
        found = self._applied.get(key)
        if found is None:
            found = self._applied[key] = self._find_applied(term, operands)
        return found

    def _find_applied(self, term: Apply, operands: tuple[BlockType, ...]) -> BlockType:
        operator = self._table.operators[term.operator]
        axes = result_axes(operator, tuple(operand.axes for operand in operands), term.indices)
        if axes is None:
            shown = ", ".join(str(operand) for operand in operands)
            function = self._table.functions.get(term.operator)
            name = function.symbol if function and function.symbol else term.operator
            raise BlockTypeError(f"`{name}` does not take ({shown})", term)
        elements = tuple(operand.element for operand in operands)
        return BlockType(axes, result_element(self._table.functions.get(operator.function), elements))


def _accumulated(found: BlockType) -> BlockType:
    """The type in which values of a type are summed up: what is worked on as f32 is held as f64."""
    narrow = found.element is not None and found.element.compute_type is Element.F32
    return BlockType(found.axes, Element.F64) if narrow else found


def _joined(one: BlockType, other: BlockType, term: Term) -> BlockType:
    """The type to which both can be broadcast and widened."""
    if one.axes and other.axes and one.axes != other.axes:
        raise BlockTypeError(f"a state that is a {one} becomes a {other}", term)
    return BlockType(one.axes or other.axes, wider(one.element, other.element))


def _beside(identity: float, found: BlockType) -> BlockType:
    """The type that holds an identity too; integers have their least and greatest number for an infinity."""
    if math.isinf(identity) or identity.is_integer():
        return found
    return BlockType(found.axes, wider(found.element, Element.NUMBER))


def result_axes(
    operator: Operator, operands: tuple[tuple[str, ...], ...], indices: tuple[str, ...] = ()
) -> tuple[str, ...] | None:
    """The axes of an operator's result, or None where its signatures do not admit these operands."""
    if operator.is_elementwise:
        shapes = {axes for axes in operands if axes}
        if len(shapes) > 1:
            return None
        return shapes.pop() if shapes else ()
    for signature in operator.signatures:
        letters = dict(zip("01", indices, strict=False))
        if all(_unify(pattern, axes, letters) for pattern, axes in zip(signature.operands, operands, strict=True)):
            return tuple(letters[letter] for letter in signature.result)
    return None


def result_element(function: ScalarFunction | None, elements: tuple[Element | None, ...]) -> Element | None:
    """The element type of a function's result; the identity (None) keeps its operand's."""
    rule = function.type_rule if function else "wider"
    if rule == "bool":
        return Element.BOOL
    found = reduce(wider, elements[1:] if rule == "select" else elements)
    if rule == "float":
        return as_float(found)
    if rule == "compute":
        return found if found is None or not found.is_float or found is Element.NUMBER else found.compute_type
    # Arithmetic on bools counts: true + true is 2.
    return Element.I32 if function and rule == "wider" and found is Element.BOOL else found


def _unify(pattern: str, axes: tuple[str, ...], letters: dict[str, str]) -> bool:
    if len(pattern) != len(axes):
        return False
    return all(letters.setdefault(letter, axis) == axis for letter, axis in zip(pattern, axes, strict=True))


def _with_element(found: Type, element: Element) -> Type:
    match found:
        case BlockType(axes, _):
            return BlockType(axes, element)
        case ListType(index, item):
            return ListType(index, _with_element(item, element))
        case StoredType(item):
            return StoredType(_with_element(item, element))
        case PairType():
            raise AssertionError("a pair is never cast")


def _readdressed(found: Type, own: tuple[str, ...], axes: tuple[str, ...], unread: tuple[str, ...]) -> Type:
    """The item type of a list whose index is the axis `own` of its blocks, read at an address that gives `axes`.

    A block's axes are in the order of its lists' indices, outermost first, so the place of the new axes is counted
    from the end: before those of `unread`, the lists between this one and the block. A list of partial results, one
    a block, has no axis of its own.
    """
    match found:
        case BlockType(old, element):
            place = len(old) - sum(inner in old for inner in unread)
            start = place - len(own)
            if old[start:place] != own:
                return found
            return BlockType((*old[:start], *axes, *old[place:]), element)
        case ListType(inner, item):
            return ListType(inner, _readdressed(item, own, axes, (*unread, inner)))
        case StoredType():
            return found
        case PairType(first, second):
            return PairType(*(_readdressed(side, own, axes, unread) for side in (first, second)))
