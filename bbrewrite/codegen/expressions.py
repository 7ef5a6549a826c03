"""Entrywise block expressions as C++ expressions for one entry.

An expression becomes nested calls; a value used twice, or that does not change in the innermost loop, becomes a
`const` variable at the loop where it is first known. Which loops there are is the statement's business.
"""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import dataclass
from typing import Protocol

from bbrewrite.codegen.access import classify
from bbrewrite.codegen.column_bounds import column_bound
from bbrewrite.codegen.names import Names
from bbrewrite.codegen.scalars import operand_positions, value_element
from bbrewrite.codegen.scope import KernelScope, Position
from bbrewrite.codegen.text import bare, number, value_type
from bbrewrite.core.elements import Element, wider
from bbrewrite.core.operators import OperatorTable, ScalarFunction
from bbrewrite.core.terms import Apply, Cast, IndexValue, Local, Number, Read, Size, Term
from bbrewrite.core.types import Typing


class UserFunctions(Protocol):
    """Names the C++ function made for a user's `op` with these operand types."""

    def call(self, function: ScalarFunction, operands: tuple[Element, ...]) -> str: ...


# Functions of floats that the headers also have for four vectors at a time, by the name in the operator table.
_OF_VECTORS = {"exp": "bb::Exp", "tanh": "bb::Tanh"}


@dataclass(frozen=True)
class Staged:
    """A call of a function that is made for four vectors at a time: of `argument`, which needs `lines`, as `value`."""

    function: str
    lines: tuple[str, ...]
    argument: str
    value: str


@dataclass(frozen=True)
class Entry:
    """One entry of a term's value, wanted in a compute type."""

    term: Term
    positions: tuple[Position, ...]
    element: Element


class EntryPrinter:
    """Prints the entries that one step needs. `lines[d]` are the variables to declare inside the d-th loop.

    `parameters` names the values of `Local` leaves that are no blocks: those of a user's function. One that `stages`
    leaves the first call of a function for vectors in the innermost loop out, as `staged`, and uses its value. With
    `bounds`, conditions on the columns of a row become bounds of the headers' type.
    """

    def __init__(
        self,
        table: OperatorTable,
        typing: Typing,
        functions: UserFunctions,
        names: Names,
        scope: KernelScope | None,
        parameters: dict[str, str] | None = None,
        stages: bool = False,
        bounds: bool = False,
    ) -> None:
        self._stages = stages
        self._bounds = bounds
        self.staged: Staged | None = None
        self._table = table
        self._typing = typing
        self._functions = functions
        self._names = names
        self._scope = scope
        self._parameters = parameters or {}
        self._uses: Counter[Entry] = Counter()
        self._printed: dict[Entry, str] = {}
        self._depths: dict[Entry, int] = {}
        self._kept: dict[tuple[Entry, Element], str] = {}
        self.lines: list[list[str]] = [[], [], []]

    def print(self, term: Term, positions: tuple[Position, ...], element: Element) -> str:
        """The C++ expression of an entry in the compute type `element`."""
        entry = self._entry(term, positions, element)
        self._count(entry)
        return self._as(entry, element, _depth_of(positions))

    def _entry(self, term: Term, positions: tuple[Position, ...], context: Element) -> Entry:
        return Entry(term, positions, value_element(term, context, self._typing))

    def _count(self, entry: Entry) -> None:
        self._uses[entry] += 1
        if self._uses[entry] == 1:
            for operand, _ in self._operands(entry):
                self._count(operand)

    def _operands(self, entry: Entry) -> list[tuple[Entry, Element]]:
        """The operands of an entry, each with the type in which the operator takes it."""
        match entry.term:
            case Cast(element, value):
                inner = self._entry(value, entry.positions, Element(element).compute_type)
                return [(inner, Element(element).compute_type)]
            case Apply(name, operands):
                operator = self._table.operators[name]
                ranks = tuple(len(self._typing.block(operand).axes) for operand in operands)
                places = operand_positions(operator, ranks, entry.positions)
                function = self._table.functions.get(operator.function)
                wanted = self._operand_types(function, entry)
                return [
                    (self._entry(operand, place, element), element)
                    for operand, place, element in zip(operands, places, wanted, strict=True)
                ]
            case _:
                return []

    def _operand_types(self, function: ScalarFunction | None, entry: Entry) -> tuple[Element, ...]:
        assert isinstance(entry.term, Apply)
        operands = entry.term.operands
        if function is not None and function.type_rule == "bool":
            return (self._comparison_type(operands),) * len(operands)
        if function is not None and function.type_rule == "select":
            return (Element.BOOL,) + (entry.element,) * (len(operands) - 1)
        return (entry.element,) * len(operands)

    def _comparison_type(self, operands: tuple[Term, ...]) -> Element:
        """Operands of a comparison are compared as numbers: a position is exact in double, not in float."""
        own = [self._typing.block(operand).element for operand in operands if not isinstance(operand, Number)]
        kinds = {element.compute_type for element in own if element is not None}
        mixed = Element.INDEX in kinds and any(kind.is_float for kind in kinds)
        whole = all(float(o.value).is_integer() for o in operands if isinstance(o, Number))
        if not kinds or mixed or not (whole or any(kind.is_float for kind in kinds)):
            return Element.F64
        return functools.reduce(lambda a, b: wider(a, b) or b, kinds)

    def _as(self, entry: Entry, wanted: Element, consumer: int) -> str:
        """The entry in another compute type; one that changes in fewer loops is converted outside the others."""
        depth = self._depth(entry)
        if entry.element is wanted or depth == consumer or not self._is_work(entry.term):
            return _converted(self._text(entry, consumer), entry.element, wanted)
        if (entry, wanted) not in self._kept:
            text = _converted(self._text(entry, depth), entry.element, wanted)
            self._kept[entry, wanted] = self._variable(_stem(entry.term), value_type(wanted), text, depth)
        return self._kept[entry, wanted]

    def _text(self, entry: Entry, consumer: int) -> str:
        """The entry as it is used `consumer` loops deep, where its value may have been kept in a variable."""
        if entry not in self._printed:
            depth = self._depth(entry)
            text = self._fresh_text(entry, depth)
            kept = self._is_work(entry.term) and (self._uses[entry] > 1 or depth < consumer)
            loaded = isinstance(entry.term, Read | Local) and bool(entry.positions) and depth < consumer
            if kept or loaded:
                text = self._variable(_stem(entry.term), value_type(entry.element), bare(text), depth)
            self._printed[entry] = text
        return self._printed[entry]

    def _variable(self, stem: str, kind: str, text: str, depth: int) -> str:
        name = self._names.fresh(stem)
        self.lines[depth].append(f"const {kind} {name} = {text};")
        return name

    def _depth(self, entry: Entry) -> int:
        """How many loops deep the entry's value changes."""
        if entry not in self._depths:
            operands = [self._depth(operand) for operand, _ in self._operands(entry)]
            changes = isinstance(entry.term, Apply | Cast)
            self._depths[entry] = max(operands, default=0) if changes else _depth_of(entry.positions)
        return self._depths[entry]

    def _fresh_text(self, entry: Entry, depth: int) -> str:
        match entry.term:
            case Number(value):
                return number(value, entry.element)
            case Local(name) if name in self._parameters:
                return self._parameters[name]
            case Size(index):
                return _converted(self._kernel.size(index), Element.INDEX, entry.element)
            case IndexValue(index):
                names = self._kernel.index(index)
                return names.position(entry.positions[0].variable) if names.start else names.number
            case Local():
                return self._kernel.entry(entry.term, entry.positions)
            case Read():
                return self._read(entry.term, entry.positions)
            case Cast() | Apply():
                return self._applied(entry, depth)
            case _:
                raise AssertionError(entry.term)

    @property
    def _kernel(self) -> KernelScope:
        assert self._scope is not None
        return self._scope

    def _applied(self, entry: Entry, depth: int) -> str:
        bound = self._column_bound(entry) if self._bounds and depth == 2 else ""
        if bound:
            return bound
        operands = self._operands(entry)
        texts = [self._as(operand, element, depth) for operand, element in operands]
        function = self._function(entry.term)
        if function is None:
            return _converted(texts[0], operands[0][1], entry.element)
        if function.body is not None:
            name = self._functions.call(function, tuple(element for _, element in operands))
            return f"{name}({', '.join(map(bare, texts))})"
        of_vectors = _OF_VECTORS.get(function.name) if self._stages and not self.staged and depth == 2 else None
        if of_vectors and entry.element is Element.F32:
            value = self._names.fresh(f"{function.name}_value")
            self.staged = Staged(of_vectors, tuple(self.lines[2]), bare(texts[0]), value)
            return value
        # Arguments of a call need no parentheses, operands of an infix operator do.
        text = function.cpp.format(*(texts if function.cpp.startswith("(") else map(bare, texts)))
        # C++ promotes truth values to int; this leads back.
        return f"bool({text})" if entry.element is Element.BOOL and function.type_rule != "bool" else text

    def _column_bound(self, entry: Entry) -> str:
        """A comparison of positions as one of the column with a bound, if it is that; else nothing."""
        function, places = self._function(entry.term), self._places(entry)
        if function is None or function.type_rule != "bool" or not places or self._scope is None:
            return ""
        found = column_bound(entry.term, places, self._typing, self._scope)
        if not found:
            return ""
        name = "first" if found.relation == ">=" else "last"
        bound = self._variable(name, "int32_t", f"bb::column_bound({found.bound})", int(found.has_row))
        return f"(int32_t({found.column}) {found.relation} {bound})"

    def _places(self, entry: Entry) -> dict[str, Position] | None:
        """The place of each index whose value the entry has; None where one has two of them."""
        if isinstance(entry.term, IndexValue):
            return {entry.term.index: entry.positions[0]} if entry.positions else {}
        found: dict[str, Position] = {}
        for operand, _ in self._operands(entry):
            places = self._places(operand)
            if places is None or any(found.get(index, place) != place for index, place in places.items()):
                return None
            found |= places
        return found

    def _is_work(self, term: Term) -> bool:
        return isinstance(term, Apply) and self._function(term) is not None

    def _function(self, term: Term) -> ScalarFunction | None:
        if isinstance(term, Cast):
            return None
        assert isinstance(term, Apply)
        return self._table.functions.get(self._table.operators[term.operator].function)

    # Reads from global memory

    def _read(self, read: Read, positions: tuple[Position, ...]) -> str:
        scope = self._kernel
        element = scope.tensors[read.tensor].element
        shape = classify(read, scope.indices)
        if shape.placed:
            entry = _loaded(scope.entry(read, positions), element)
            inside = scope.place(read).inside
            return f"({inside} ? {entry} : {number(0, element.compute_type)})" if inside else entry
        return self._read_anywhere(read, positions, shape.guarded, element)

    def _read_anywhere(
        self, read: Read, positions: tuple[Position, ...], guarded: tuple[int, ...], element: Element
    ) -> str:
        """A read whose blocked indices stand in an expression: element by element, zero outside the tensor."""
        scope = self._kernel
        remaining = list(positions)
        places: list[str] = []
        tests: list[str] = []
        for axis, address in enumerate(read.addresses):
            blocked = sum(scope.indices.is_blocked(name) for name, _ in address.indices)
            mine, remaining = remaining[:blocked], remaining[blocked:]
            text = scope.element_address(address, mine)
            if axis in guarded:
                depth = _depth_of(tuple(mine))
                text = self._variable(f"{read.tensor}_at", "int64_t", text, depth)
                test = f"bb_inside({text}, {scope.size(scope.tensors[read.tensor].indices[axis])})"
                tests.append(self._variable(f"{read.tensor}_inside", "bool", test, depth))
            places.append(text)
        offset = scope.offset(scope.tensor_strides(read.tensor), places)
        entry = _loaded(f"{scope.pointers[read.tensor]}[{offset}]", element)
        return f"({' && '.join(tests)} ? {entry} : {number(0, element.compute_type)})"


def _depth_of(positions: tuple[Position, ...]) -> int:
    return max((position.depth for position in positions), default=0)


def _stem(term: Term) -> str:
    match term:
        case Apply(name):
            return f"{name}_value"
        case Read(name) | Local(name):
            return f"{name}_entry"
        case _:
            return "value"


def _loaded(entry: str, element: Element) -> str:
    plain = element in (Element.F32, Element.F64, Element.INDEX)
    return entry if plain else f"bb::load({entry})"


def _converted(text: str, own: Element, wanted: Element) -> str:
    if own is wanted:
        return text
    return f"{value_type(wanted)}({bare(text)})"
