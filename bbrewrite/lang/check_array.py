"""Checks an array program: statements in order, every fault reported, to the form that lowering takes."""

from __future__ import annotations

from bbrewrite.core.arrays import ArrayDefinition, ArrayProgram
from bbrewrite.core.elements import Element, stored_element
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Role, Tensor
from bbrewrite.lang import syntax
from bbrewrite.lang.array_expressions import Expressions, Resolved
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
    definitions: list[ArrayDefinition] = []
    name = check_header(scope, parsed, is_block=False)
    for statement in statements:
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
                definition = _definition(scope, expressions, statement)
                if definition is not None:
                    definitions.append(definition)
    if not parsed.faults:
        check_outputs(scope, statements)
    faults = scope.sorted_faults(parsed.faults)
    if faults:
        raise InputError(faults)
    inputs = tuple(tensor for tensor in scope.tensors.values() if tensor.role in (Role.INPUT, Role.WEIGHT))
    indices = IndexTable.of(list(scope.indices.values()))
    return ArrayProgram(name, indices, inputs, tuple(scope.assumptions), tuple(definitions))


def _definition(
    scope: Scope, expressions: Expressions, statement: syntax.DefinitionStatement
) -> ArrayDefinition | None:
    """Checks a definition and enters its tensor."""
    name = scope.defining = statement.name.text
    good = scope.distinct_indices(statement.indices, f"in {name}")
    declared = scope.element(statement.element) if statement.element else None
    value = expressions.resolve(statement.expression)
    if good and value is not None:
        good = _indices_are_bound(scope, statement, value)
    # Entered last: a definition does not see itself.
    if not scope.declare(statement.name, "definition"):
        return None
    if not good or value is None or (statement.element and declared is None):
        scope.broken.add(name)
        return None
    if declared is Element.BOOL and value.element is not Element.BOOL:
        assert statement.element is not None
        found = value.element or "a number"
        message = f"a value of type {found} is not stored as bool"
        scope.report("type", message, statement.element.span, "compare it with something: `x != 0`")
    role = Role.OUTPUT if statement.is_output else Role.BUFFER
    indices = tuple(index.text for index in statement.indices)
    tensor = Tensor(name, indices, declared or stored_element(value.element), role)
    scope.tensors[name] = tensor
    return ArrayDefinition(tensor, value.expression, statement.span)


def _indices_are_bound(scope: Scope, statement: syntax.DefinitionStatement, value: Resolved) -> bool:
    left = {index.text for index in statement.indices}
    loose = {index: span for index, span in value.free.items() if index not in left}
    for index, span in loose.items():
        message = f"`{index}` is on the right side only and is not reduced"
        shown = ", ".join([*(word.text for word in statement.indices), index])
        hint = f"write `{statement.name.text}[{shown}] = ...`, or reduce it: `sum[{index}](...)`"
        scope.report("loose-index", message, span, hint)
    return not loose
