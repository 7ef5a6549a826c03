"""Checks an array program: statements in order, every fault reported, to the form that lowering takes."""

from __future__ import annotations

from bbrewrite.core.arrays import ArrayDefinition, ArrayProgram
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Role
from bbrewrite.lang import syntax
from bbrewrite.lang.array_definitions import check_definition
from bbrewrite.lang.array_expressions import Expressions
from bbrewrite.lang.check_repeat import Repeats
from bbrewrite.lang.declarations import (
    check_assumptions,
    check_blocks,
    check_header,
    check_indices,
    check_inputs,
    check_outputs,
)
from bbrewrite.lang.diagnostics import InputError
from bbrewrite.lang.parser import Parsed
from bbrewrite.lang.scope import Scope


def check_array_program(parsed: Parsed, table: OperatorTable) -> ArrayProgram:
    """The program that the statements make. Raises InputError with every fault, those of parsing included."""
    statements = parsed.statements
    scope = Scope(table, statements, parsed.faulty_names)
    expressions = Expressions(scope)
    repeats = Repeats(scope, expressions)
    definitions: list[ArrayDefinition] = []
    name = check_header(scope, parsed, is_block=False)
    for statement in statements:
        repeats.check_place(statement)
        match statement:
            case syntax.HeaderStatement():
                pass
            case syntax.IndexStatement():
                check_indices(scope, statement, is_block=False)
            case syntax.BlockStatement():
                check_blocks(scope, statement)
            case syntax.InputStatement():
                check_inputs(scope, statement)
            case syntax.AssumeStatement():
                check_assumptions(scope, statement)
            case syntax.LetStatement(span=span):
                scope.report(
                    "level", "`let` belongs to block programs", span, "leave it out: every definition is a name"
                )
            case syntax.DefStatement():
                expressions.define(statement)
            case syntax.DefinitionStatement():
                if repeats.is_open:
                    repeats.definition(statement)
                else:
                    definition = check_definition(scope, expressions, statement)
                    definitions += [definition] if definition is not None else []
            case syntax.RepeatStatement():
                repeats.begin(statement, len(definitions))
            case syntax.RepeatEnd():
                repeats.end()
            case syntax.CarryStatement():
                repeats.carry(statement)
            case syntax.NextStatement():
                repeats.next(statement)
    if not parsed.faults:
        check_outputs(scope, statements)
    faults = scope.sorted_faults(parsed.faults)
    if faults:
        raise InputError(faults)
    inputs = tuple(tensor for tensor in scope.tensors.values() if tensor.role in (Role.INPUT, Role.WEIGHT))
    indices = IndexTable.of(list(scope.indices.values()))
    equal = tuple(scope.equal_extents)
    assumptions, places = tuple(scope.assumptions), {tensor.name: scope.names[tensor.name].span for tensor in inputs}
    return ArrayProgram(name, indices, inputs, assumptions, tuple(definitions), repeats.found, equal, places)
