"""Finds the inputs and definitions of an array program that no output needs; that is no fault, they are left out.

A name that stands for a value in every iteration of a repeat counts as one: it is needed where any of them is.
"""

from __future__ import annotations

from collections.abc import Iterator

from bbrewrite.core.arrays import ArrayDefinition, ArrayProgram, Element
from bbrewrite.core.programs import Role
from bbrewrite.lang.diagnostics import Diagnostic
from bbrewrite.lower.array_expressions import walk


def unused_warnings(program: ArrayProgram) -> tuple[Diagnostic, ...]:
    """A warning for each input, then for each definition, that no output needs, in the order of the text."""
    needed = _needed(program)
    places = dict(program.places)
    for definition in _definitions(program):
        if definition.span is not None:
            places.setdefault(definition.tensor.name, definition.span)
    return tuple(
        Diagnostic("unused", f"no output needs `{name}`", span, "leave it out", severity="warning")
        for name, span in sorted(places.items(), key=lambda item: (item[1].line, item[1].column))
        if name not in needed
    )


def _needed(program: ArrayProgram) -> set[str]:
    reads: dict[str, set[str]] = {}
    for definition in _definitions(program):
        found = reads.setdefault(definition.tensor.name, set())
        found.update(part.tensor for part in walk(definition.expression) if isinstance(part, Element))
    left = [definition.tensor.name for definition in program.definitions if definition.tensor.role is Role.OUTPUT]
    needed: set[str] = set()
    while left:
        name = left.pop()
        if name not in needed:
            needed.add(name)
            left += reads.get(name, ())
    return needed


def _definitions(program: ArrayProgram) -> Iterator[ArrayDefinition]:
    yield from program.definitions
    for repeat in program.repeats:
        yield from (*repeat.carried, *repeat.body, *repeat.following)
