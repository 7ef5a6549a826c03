"""Prints array programs: text that parses back to an equal program. Users' `def`s are expanded by then."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

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
    SizeOf,
)
from bbrewrite.core.elements import stored_element
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.printing import ATOM, BODY, UNARY, index_lines, input_lines, join_infix, print_number, print_tensor
from bbrewrite.core.programs import Role
from bbrewrite.lang.array_types import element_of


def print_array_program(program: ArrayProgram, table: OperatorTable) -> str:
    """The program as text."""
    return "\n".join(_lines(program, table)) + "\n"


def print_array_expression(expression: ArrayExpression, table: OperatorTable) -> str:
    """An expression on one line, with the fewest brackets."""
    return _leveled(expression, table)[0]


def _lines(program: ArrayProgram, table: OperatorTable) -> Iterator[str]:
    yield f"program {program.name}"
    unblocked = IndexTable.of([replace(index, block=None) for index in program.indices])
    yield from index_lines(unblocked)
    blocks = [f"{index.name} = {index.block}" for index in program.indices if index.block is not None]
    if blocks:
        yield f"block {', '.join(blocks)}"
    yield from input_lines(program.inputs, program.assumptions)
    repeats = list(program.repeats)
    for position in range(len(program.definitions) + 1):
        while repeats and repeats[0].position == position:
            yield from _repeat(repeats.pop(0), program, table)
        if position < len(program.definitions):
            definition = program.definitions[position]
            keyword = "output " if definition.tensor.role is Role.OUTPUT else ""
            yield keyword + _definition(definition, program, table)


def _repeat(repeat: Repeat, program: ArrayProgram, table: OperatorTable) -> Iterator[str]:
    yield f"repeat {repeat.index}"
    for first in repeat.carried:
        yield f"    carry {_definition(first, program, table)}"
    for definition in repeat.body:
        yield f"    {_definition(definition, program, table)}"
    for definition in repeat.following:
        yield f"    next {print_tensor(definition.tensor)} = {print_array_expression(definition.expression, table)}"


def _definition(definition: ArrayDefinition, program: ArrayProgram, table: OperatorTable) -> str:
    tensor = definition.tensor
    inferred = stored_element(element_of(definition.expression, program.tensors, table))
    declared = "" if inferred is tensor.element else f" : {tensor.element}"
    return f"{print_tensor(tensor)}{declared} = {print_array_expression(definition.expression, table)}"


def _leveled(expression: ArrayExpression, table: OperatorTable) -> tuple[str, int]:
    """The text of an expression and how tightly it binds."""
    match expression:
        case Literal(value):
            return print_number(value), UNARY if value < 0 else ATOM
        case SizeOf(index):
            return f"size({index})", ATOM
        case Position(index):
            return index, ATOM
        case Element(tensor, addresses):
            shown = ", ".join(str(address) for address in addresses)
            return tensor + (f"[{shown}]" if addresses else ""), ATOM
        case Fold(name, indices, body):
            return f"{name}[{', '.join(indices)}]({print_array_expression(body, table)})", ATOM
        case LibraryCall(name, indices, operand, eps):
            shown = "" if eps is None else f", eps = {print_number(eps)}"
            return f"{name}[{', '.join(indices)}]({print_array_expression(operand, table)}{shown})", ATOM
        case Call(name, operands):
            leveled = [_leveled(operand, table) for operand in operands]
            function = table.functions[name]
            if not function.symbol:
                return f"{name}({', '.join(text for text, _ in leveled)})", ATOM
            if name == "negate" and isinstance(operands[0], Literal) and operands[0].value >= 0:
                # Without brackets the sign would be read as the number's own.
                leveled = [(leveled[0][0], BODY)]
            return join_infix(function.symbol, function.precedence, leveled), function.precedence
        case _:
            raise AssertionError(expression)
