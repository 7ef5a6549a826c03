"""Checks a block program: statements in order, every fault reported, types by `core.types`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from bbrewrite.core.elements import Element, stored_element
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import BlockProgram, Definition, Role, Tensor
from bbrewrite.core.spans import Span
from bbrewrite.core.spreads import with_spreads
from bbrewrite.core.terms import Apply, At, Map, Read, Reduce, Term, walk
from bbrewrite.core.types import BlockType, BlockTypeError, ListType, StoredType, Typing
from bbrewrite.lang import syntax
from bbrewrite.lang.block_terms import BlockTerms
from bbrewrite.lang.declarations import check_assumptions, check_header, check_indices, check_inputs, check_outputs
from bbrewrite.lang.diagnostics import InputError
from bbrewrite.lang.parser import Parsed
from bbrewrite.lang.scope import Scope


def check_block_program(parsed: Parsed, table: OperatorTable) -> BlockProgram:
    """The program that the statements make. Raises InputError with every fault, those of parsing included."""
    statements = parsed.statements
    scope = Scope(table, statements, parsed.faulty_names)
    definitions: list[Definition] = []
    name = check_header(scope, parsed, is_block=True)
    for statement in statements:
        match statement:
            case syntax.HeaderStatement():
                pass
            case syntax.IndexStatement():
                check_indices(scope, statement, is_block=True)
            case syntax.BlockStatement(span=span):
                hint = "write `index m = 4096 by 64`"
                scope.report("level", "block sizes of a block program stand with its indices", span, hint)
            case syntax.InputStatement():
                check_inputs(scope, statement)
            case syntax.AssumeStatement():
                check_assumptions(scope, statement)
            case syntax.DefStatement(span=span):
                scope.report("level", "`def` belongs to array programs", span, "write `op` in a rule file")
            case syntax.LetStatement():
                _let(scope, statement)
            case syntax.RepeatStatement(span=span) | syntax.CarryStatement(span=span) | syntax.NextStatement(span=span):
                scope.report("level", "`repeat` belongs to array programs", span, "write the iterations out")
            case syntax.RepeatEnd():
                pass
            case syntax.DefinitionStatement():
                definition = _definition(scope, statement)
                if definition is not None:
                    definitions.append(definition)
    if not parsed.faults:
        check_outputs(scope, statements)
    faults = scope.sorted_faults(parsed.faults)
    if faults:
        raise InputError(faults)
    inputs = tuple(tensor for tensor in scope.tensors.values() if tensor.role in (Role.INPUT, Role.WEIGHT))
    indices = IndexTable.of(list(scope.indices.values()))
    equal = tuple(scope.equal_extents)
    places = MappingProxyType(scope.places)
    return BlockProgram(name, indices, inputs, tuple(scope.assumptions), tuple(definitions), equal, places)


def _let(scope: Scope, statement: syntax.LetStatement) -> None:
    """Checks a named term; its free indices are those of the loops where it is used."""
    terms = BlockTerms(scope)
    term = terms.build(statement.expression, tuple(scope.indices))
    if not scope.declare(statement.name, "let"):
        return
    if term is None:
        scope.broken.add(statement.name.text)
        return
    typing = Typing(scope.table, scope.index_table, scope.tensors)
    origins: dict[Term, Term] = {}
    try:
        typing.of(with_spreads(term, scope.table, typing, tuple(scope.indices), origins))
    except BlockTypeError as error:
        scope.report("type", str(error), terms.spans.get(origins.get(error.term, error.term), statement.name.span))
    _note_places(scope, term, terms.spans, origins, statement.name.span)
    scope.lets[statement.name.text] = term


def _definition(scope: Scope, statement: syntax.DefinitionStatement) -> Definition | None:
    """Checks a definition and enters its tensor."""
    name = statement.name
    scope.defining = name.text
    if statement.indices:
        hint = f"write `{name.text} = {' '.join(f'map {index.text}:' for index in statement.indices)} ...`"
        scope.report("level", "the indices of a block program's list are those of its maps", name.span, hint)
    declared = scope.element(statement.element) if statement.element else None
    terms = BlockTerms(scope)
    written = terms.build(statement.expression)
    checked = None if written is None else _checked(scope, written, terms.spans, name.span)
    if not scope.declare(name, "definition"):
        return None
    if checked is None or statement.indices or (statement.element and declared is None):
        scope.broken.add(name.text)
        return None
    term, indices, element = checked
    role = Role.OUTPUT if statement.is_output else Role.BUFFER
    tensor = Tensor(name.text, indices, declared or element, role)
    scope.tensors[name.text] = tensor
    return Definition(tensor, term)


def _checked(
    scope: Scope, written: Term, spans: dict[Term, Span], name: Span
) -> tuple[Term, tuple[str, ...], Element] | None:
    """The term with its index values spread, the indices of its list, and its element type."""
    typing = Typing(scope.table, scope.index_table, scope.tensors)
    origins: dict[Term, Term] = {}
    term = with_spreads(written, scope.table, typing, origins=origins)
    try:
        found = typing.of(term)
    except BlockTypeError as error:
        scope.report("type", str(error), spans.get(origins.get(error.term, error.term), name))
        return None
    for node in walk(term):
        if isinstance(node, At):
            plain, items = node.address.plain_index, typing.of(node.items)
            if plain is not None and isinstance(items, ListType):
                span = spans.get(origins.get(node, node), name)
                scope.note_extents(plain, items.index, f"a list over {items.index}", span)
    _note_places(scope, term, spans, origins, name)
    indices: list[str] = []
    while isinstance(found, ListType):
        indices.append(found.index)
        found = found.item
    if isinstance(found, StoredType) and not indices:
        found = found.item
    if not isinstance(found, BlockType):
        scope.report("type", f"a definition holds one list of blocks, not of a {found}", name)
        return None
    blocked = tuple(index for index in indices if scope.index_table.is_blocked(index))
    if len(set(indices)) < len(indices):
        scope.report("repeated-index", "two maps of a list run over one index", name)
        return None
    if blocked and not found.axes and _is_mapped(term, len(indices)):
        return _filled(term, blocked), tuple(indices), stored_element(found.element)
    if found.axes != blocked:
        shown = f"[{', '.join(blocked)}]" if blocked else "no blocks"
        scope.report("type", f"the maps make {shown}, the block inside is a {found}", name)
        return None
    return term, tuple(indices), stored_element(found.element)


def _note_places(
    scope: Scope, term: Term, spans: Mapping[Term, Span], origins: Mapping[Term, Term], name: Span
) -> None:
    """Keeps where reads and folds were written first."""
    for node in walk(term):
        if isinstance(node, Read | At | Apply | Reduce):
            scope.places.setdefault(node, spans.get(origins.get(node, node), name))


def _is_mapped(term: Term, count: int) -> bool:
    """Whether that many maps stand around a body."""
    for _ in range(count):
        if not isinstance(term, Map):
            return False
        term = term.body
    return True


def _filled(term: Term, axes: tuple[str, ...]) -> Term:
    """The list with the scalar inside its maps made a block of these axes: a scalar fills what it is stored to."""
    if isinstance(term, Map):
        return Map(term.index, _filled(term.body, axes))
    for axis in axes:
        term = Apply("row_spread", (term,), (axis,))
    return term
