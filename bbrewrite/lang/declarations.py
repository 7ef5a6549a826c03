"""Checks the statements that both levels share: headers, indices, block sizes, inputs and assumptions."""

from __future__ import annotations

from dataclasses import replace

from bbrewrite.core.elements import Element
from bbrewrite.core.indices import Index
from bbrewrite.core.programs import Assumption, Role, Tensor
from bbrewrite.lang import syntax
from bbrewrite.lang.diagnostics import Related, did_you_mean
from bbrewrite.lang.parser import Parsed
from bbrewrite.lang.scope import STORED_ELEMENTS, Scope

FACTS = ("nonzero", "positive", "nonnegative", "finite")
_GREATEST_EXTENT = 2**48


def check_header(scope: Scope, parsed: Parsed, is_block: bool) -> str:
    """The program's name; reports a header that is missing, late or repeated."""
    statements = parsed.statements
    headers = [statement for statement in statements if isinstance(statement, syntax.HeaderStatement)]
    for other in headers[1:]:
        related = (Related(headers[0].span, "the first is here"),)
        scope.report("header", "a file holds one program; this is a second header", other.span, related=related)
    kind = "block program" if is_block else "program"
    if not headers:
        if statements and not parsed.faults:
            scope.report("header", f"a program begins with its name: `{kind} name`", statements[0].span)
        return ""
    if statements[0] is not headers[0] and not parsed.faults:
        scope.report("header", f"`{kind} name` is the first statement of a program", headers[0].span)
    return headers[0].name.text


def check_indices(scope: Scope, statement: syntax.IndexStatement, is_block: bool) -> None:
    """Enters indices with their extents, and at block level their block sizes."""
    for item in statement.items:
        if not scope.declare(item.name, "index"):
            continue
        index = _with_extent(scope, item)
        if item.extent is not None and index.extent is None and index.same_as is None:
            scope.broken.add(index.name)  # what it is compared with is not at fault
        if item.block is not None:
            if is_block:
                size = _whole(scope, item.block, "a block size", least=1)
                index = replace(index, block=size, block_is_fixed=True)
            else:
                hint = f"write `block {item.name.text} = ...` on a line of its own, or begin with `block program`"
                scope.report("level", "`by` belongs to block programs", item.block.span, hint)
        scope.indices[item.name.text] = index


def check_blocks(scope: Scope, statement: syntax.BlockStatement) -> None:
    """Enters the block sizes that a user of the array level fixes."""
    for item in statement.items:
        assert item.block is not None
        size = _whole(scope, item.block, "a block size", least=1)
        if not scope.index(item.name):
            continue
        index = scope.indices[item.name.text]
        if index.block is not None:
            scope.report("name-clash", f"the block size of `{index.name}` is given twice", item.name.span)
        scope.indices[index.name] = replace(index, block=size, block_is_fixed=size is not None)


def check_inputs(scope: Scope, statement: syntax.InputStatement) -> None:
    """Enters inputs or weights; a type holds for the names before it that have none."""
    kind = "weight" if statement.is_weight else "input"
    items = statement.items
    element: Element | None = None
    elements: list[Element | None] = []
    last = items[-1]
    if last.element is None and last.name.text in STORED_ELEMENTS:
        hint = f"write `: {last.name.text}` behind the last name"
        scope.report("no-type", f"`{last.name.text}` is a type, not a name", last.name.span, hint)
        items, element = items[:-1], STORED_ELEMENTS[last.name.text]
    elif last.element is None:
        scope.report("no-type", f"`{last.name.text}` has no element type", last.name.span, "write `: f32` behind it")
    for item in reversed(items):
        element = scope.element(item.element) if item.element else element
        elements.append(element)
    for item, found in zip(items, reversed(elements), strict=True):
        good = scope.distinct_indices(item.indices, f"in {item.name.text}")
        if not scope.declare(item.name, kind):
            continue
        if not good or found is None:
            scope.broken.add(item.name.text)
            continue
        names = tuple(index.text for index in item.indices)
        scope.tensors[item.name.text] = Tensor(item.name.text, names, found, Role(kind))


def check_assumptions(scope: Scope, statement: syntax.AssumeStatement) -> None:
    """Enters declared facts about inputs."""
    for fact, word in statement.facts:
        if fact.text not in FACTS:
            hint = did_you_mean(fact.text, FACTS) or f"the facts are {', '.join(FACTS)}"
            scope.report("unknown-fact", f"there is no fact `{fact.text}`", fact.span, hint)
        tensor = scope.tensors.get(word.text)
        if tensor is None:
            inputs = [name for name, entry in scope.names.items() if entry.kind in ("input", "weight")]
            scope.report_unknown(word.text, word.span, "an input or weight", inputs)
        elif tensor.role not in (Role.INPUT, Role.WEIGHT):
            message = f"`{word.text}` is computed; only inputs and weights are assumed about"
            scope.report("wrong-kind", message, word.span)
        elif fact.text in FACTS:
            assumption = Assumption(fact.text, word.text)
            if assumption not in scope.assumptions:
                scope.assumptions.append(assumption)


def check_outputs(scope: Scope, statements: tuple[syntax.Statement, ...]) -> None:
    """Reports a program that computes nothing."""
    if any(isinstance(statement, syntax.DefinitionStatement) and statement.is_output for statement in statements):
        return
    definitions = [s for s in statements if isinstance(s, syntax.DefinitionStatement)]
    if definitions:
        last = definitions[-1]
        hint = f"write `output` before `{last.name.text}`"
        scope.report("no-output", "the program has no output", last.span, hint)
    elif statements:
        scope.report("no-output", "the program defines no output", statements[0].span, "write `output O[m, l] = ...`")


def _with_extent(scope: Scope, item: syntax.IndexItem) -> Index:
    name = item.name.text
    if item.extent is None:
        return Index(name)
    if isinstance(item.extent.value, str):
        word = syntax.Word(item.extent.value, item.extent.span)
        if word.text == name:
            scope.report("unknown-name", f"the extent of `{name}` cannot be its own", word.span)
            return Index(name)
        return Index(name, same_as=scope.index_table.root(word.text)) if scope.index(word) else Index(name)
    return Index(name, extent=_whole(scope, item.extent, "an extent", least=0))


def _whole(scope: Scope, number: syntax.ExtentSyntax, what: str, least: int) -> int | None:
    """The whole number of an extent or block size; None, reported, where it is none."""
    value = number.value
    if isinstance(value, str):
        scope.report("number", f"{what} is a number", number.span)
    elif isinstance(value, float) and not value.is_integer():
        scope.report("number", f"{what} is a whole number", number.span)
    elif value < least:
        scope.report("number", f"{what} is at least {least}", number.span)
    elif value > _GREATEST_EXTENT:
        scope.report("number", f"{what} of {value:g} is beyond any machine", number.span)
    else:
        return int(value)
    return None
