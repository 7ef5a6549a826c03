"""Checks one definition of an array program against the scope so far, and enters its tensor."""

from __future__ import annotations

from bbrewrite.core.arrays import ArrayDefinition
from bbrewrite.core.elements import Element, stored_element
from bbrewrite.core.programs import Role, Tensor
from bbrewrite.core.spans import Span
from bbrewrite.lang import syntax
from bbrewrite.lang.array_expressions import Expressions, Resolved
from bbrewrite.lang.scope import Scope


def check_definition(
    scope: Scope, expressions: Expressions, statement: syntax.DefinitionStatement, around: str | None = None
) -> ArrayDefinition | None:
    """Checks a definition and enters its tensor. `around` is the index of the `repeat` in which it stands."""
    name = scope.defining = statement.name.text
    good = scope.distinct_indices(statement.indices, f"in {name}")
    declared = scope.element(statement.element) if statement.element else None
    value = expressions.resolve(statement.expression)
    if good and value is not None:
        good = indices_are_bound(scope, statement, value, around)
    # Entered last: a definition does not see itself.
    if not scope.declare(statement.name, "definition"):
        return None
    if not good or value is None or (statement.element and declared is None):
        scope.broken.add(name)
        return None
    if statement.element is not None:
        check_stored_type(scope, declared, value, statement.element.span)
    role = Role.OUTPUT if statement.is_output else Role.BUFFER
    indices = tuple(index.text for index in statement.indices)
    tensor = Tensor(name, indices, declared or stored_element(value.element), role)
    scope.tensors[name] = tensor
    return ArrayDefinition(tensor, value.expression, statement.span)


def check_stored_type(scope: Scope, declared: Element | None, value: Resolved, span: Span) -> None:
    """Reports a value that is stored as truth values and is none."""
    if declared is Element.BOOL and value.element is not Element.BOOL:
        found = value.element or "a number"
        message = f"a value of type {found} is not stored as bool"
        scope.report("type", message, span, "compare it with something: `x != 0`")


def indices_are_bound(
    scope: Scope,
    statement: syntax.DefinitionStatement | syntax.NextStatement,
    value: Resolved,
    around: str | None,
) -> bool:
    """Whether every index on the right is on the left, or has one position in each iteration; reports where not."""
    left = {index.text for index in statement.indices} | {around}
    loose = {index: span for index, span in value.free.items() if index not in left}
    if around is not None and around not in scope.indices:
        return not loose  # which of them is meant to have a position cannot be said
    for index, span in loose.items():
        message = f"`{index}` is on the right side only and is not reduced"
        shown = ", ".join([*(word.text for word in statement.indices), index])
        hint = f"write `{statement.name.text}[{shown}] = ...`, or reduce it: `sum[{index}](...)`"
        scope.report("loose-index", message, span, hint)
    return not loose
