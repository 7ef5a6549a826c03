"""Writes repeats out: the body once for each position of the index, with names of its own.

`A` becomes `A_0`, `A_1`, ... and the index a number, so that weights are read at constant positions and conditions on
the index are settled. What the last iteration gives is what the rest of the program reads. That layers are alike is
found again in planning, and code is generated once for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bbrewrite.core.addresses import Address, make_address
from bbrewrite.core.arrays import (
    ArrayDefinition,
    ArrayExpression,
    ArrayProgram,
    Call,
    Element,
    Fold,
    LibraryCall,
    Literal,
    Position,
    Repeat,
)
from bbrewrite.lang.diagnostics import Diagnostic, InputError
from bbrewrite.lower.settled import settled


def expand_repeats(program: ArrayProgram) -> ArrayProgram:
    """The program without repeats. Raises InputError where the extent of a repeated index is open."""
    return _Expansion(program).program() if program.repeats else program


class _Expansion:
    def __init__(self, program: ArrayProgram) -> None:
        self._program = program
        self._taken = {*program.tensors, *(index.name for index in program.indices)}
        self._tensors = {tensor.name: tensor for tensor in program.inputs}
        self._names: dict[str, str] = {}  # what a name stands for now, where it is not itself
        self._found: list[ArrayDefinition] = []

    def program(self) -> ArrayProgram:
        rest = list(self._program.definitions)
        done = 0
        for repeat in self._program.repeats:
            self._add_all(rest[done : repeat.position])
            done = repeat.position
            self._repeat(repeat)
        self._add_all(rest[done:])
        return replace(self._program, definitions=tuple(self._found), repeats=())

    def _add_all(self, definitions: list[ArrayDefinition]) -> None:
        for definition in definitions:
            self._add(definition, definition.tensor.name, {})

    def _repeat(self, repeat: Repeat) -> None:
        count = self._program.indices.extent(repeat.index)
        if count is None:
            root = self._program.indices.root(repeat.index)
            hint = f"give --size {root}=...; from Python, sizes={{{root!r}: ...}}"
            message = f"how often to repeat is open: the extent of {repeat.index} is not known"
            raise InputError([Diagnostic("open-extent", message, hint=hint)])
        for first in repeat.carried:
            self._carry(first)
        for number in range(count):
            at = {repeat.index: number}
            for definition in repeat.body:
                name = definition.tensor.name
                own = self._fresh(f"{name}_{number}")
                self._add(definition, own, at)
                self._names[name] = own
            given: dict[str, str] = {}
            for definition in repeat.following:
                given[definition.tensor.name] = self._fresh(f"{definition.tensor.name}_{number}")
                self._add(definition, given[definition.tensor.name], at)
            self._names |= given

    def _carry(self, first: ArrayDefinition) -> None:
        """The first value of a carried name; where that is a tensor as it is, no copy is made of it."""
        tensor, value = first.tensor, first.expression
        if isinstance(value, Element):
            name = self._names.get(value.tensor, value.tensor)
            plain = tuple(address.plain_index for address in value.addresses)
            if plain == tensor.indices and self._tensors[name].element is tensor.element:
                self._names[tensor.name] = name
                return
        self._add(first, tensor.name, {})

    def _add(self, definition: ArrayDefinition, name: str, at: Mapping[str, int]) -> None:
        tensor = replace(definition.tensor, name=name)
        self._found.append(replace(definition, tensor=tensor, expression=self._written(definition.expression, at)))
        self._tensors[name] = tensor

    def _fresh(self, name: str) -> str:
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def _written(self, expression: ArrayExpression, at: Mapping[str, int]) -> ArrayExpression:
        """The expression with names as they stand now and repeated indices as numbers."""
        match expression:
            case Element(tensor, addresses):
                changed = tuple(_address(address, at) for address in addresses)
                return replace(expression, tensor=self._names.get(tensor, tensor), addresses=changed)
            case Position(index) if index in at:
                return Literal(float(at[index]), expression.span)
            case Call(_, operands):
                return settled(replace(expression, operands=tuple(self._written(operand, at) for operand in operands)))
            case Fold(_, indices, body):
                return replace(expression, body=self._written(body, _without(at, indices)))
            case LibraryCall(_, indices, operand):
                return replace(expression, operand=self._written(operand, _without(at, indices)))
            case _:
                return expression


def _without(at: Mapping[str, int], bound: tuple[str, ...]) -> Mapping[str, int]:
    return {index: number for index, number in at.items() if index not in bound}


def _address(address: Address, at: Mapping[str, int]) -> Address:
    if not address.index_names & at.keys():
        return address
    rest = [(index, coefficient) for index, coefficient in address.indices if index not in at]
    offset = address.offset + sum(coefficient * at[index] for index, coefficient in address.indices if index in at)
    return make_address(rest, list(address.sizes), offset, address.divisor)
