"""Questions about array expressions, and renaming: what lowering and checks need to know of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from bbrewrite.core.arrays import (
    ArrayDefinition,
    ArrayExpression,
    Call,
    Element,
    Fold,
    LibraryCall,
    Literal,
    Position,
    SizeOf,
)
from bbrewrite.core.elements import Element as ElementType
from bbrewrite.core.elements import as_float
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Role, Tensor
from bbrewrite.core.spans import Span
from bbrewrite.core.types import result_element

# Library functions whose result has one entry for each position of the indices; the others reduce them away.
SHAPED_FUNCTIONS = frozenset({"softmax", "log_softmax", "layer_norm", "rms_norm", "l2_norm"})


def children(expression: ArrayExpression) -> tuple[ArrayExpression, ...]:
    """The operands, in order."""
    match expression:
        case Call():
            return expression.operands
        case Fold():
            return (expression.body,)
        case LibraryCall():
            return (expression.operand,)
        case _:
            return ()


def walk(expression: ArrayExpression) -> Iterator[ArrayExpression]:
    """Every subexpression, operands before their users."""
    for child in children(expression):
        yield from walk(child)
    yield expression


def bound_indices(expression: ArrayExpression) -> tuple[str, ...]:
    """The indices that an expression binds in its operand."""
    return expression.indices if isinstance(expression, Fold | LibraryCall) else ()


def free_indices(expression: ArrayExpression) -> frozenset[str]:
    """The indices on which the value depends."""
    match expression:
        case Position(index):
            return frozenset({index})
        case Element():
            return frozenset[str]().union(*(address.index_names for address in expression.addresses))
        case LibraryCall() if expression.function in SHAPED_FUNCTIONS:
            return free_indices(expression.operand) | frozenset(expression.indices)
        case _:
            inner = frozenset[str]().union(*(free_indices(child) for child in children(expression)))
            return inner - frozenset(bound_indices(expression))


def renamed(expression: ArrayExpression, names: Mapping[str, str]) -> ArrayExpression:
    """The expression with free indices renamed to names that nothing in it binds; it holds no library call."""
    match expression:
        case Position(index):
            return replace(expression, index=names.get(index, index))
        case Element():
            return replace(expression, addresses=tuple(address.renamed(names) for address in expression.addresses))
        case Call():
            return replace(expression, operands=tuple(renamed(operand, names) for operand in expression.operands))
        case Fold():
            inner = {old: new for old, new in names.items() if old not in expression.indices}
            return replace(expression, body=renamed(expression.body, inner))
        case LibraryCall():
            raise AssertionError("library calls are expanded before indices are renamed")
        case _:
            return expression


def element_of(expression: ArrayExpression, tensors: Mapping[str, Tensor], table: OperatorTable) -> ElementType | None:
    """The element type of a value; None for a bare whole number. Sums of bools count."""
    match expression:
        case Literal():
            return None if expression.value.is_integer() else ElementType.NUMBER
        case SizeOf() | Position():
            return ElementType.INDEX
        case Element():
            return tensors[expression.tensor].element
        case Call():
            elements = tuple(element_of(operand, tensors, table) for operand in expression.operands)
            return result_element(table.functions[expression.operator], elements)
        case Fold():
            body = element_of(expression.body, tensors, table)
            if expression.reduction == "mean":
                return as_float(body)
            counts = body is ElementType.BOOL and expression.reduction in ("sum", "prod")
            return ElementType.I32 if counts else body
        case LibraryCall():
            return as_float(element_of(expression.operand, tensors, table))
        case _:
            raise AssertionError(expression)


def number_of_positions(indices: tuple[str, ...], span: Span | None = None) -> ArrayExpression:
    """How many positions indices have together."""
    count: ArrayExpression = SizeOf(indices[0], span)
    for name in indices[1:]:
        count = Call("multiply", (count, SizeOf(name, span)), span)
    return count


def needed(definitions: tuple[ArrayDefinition, ...]) -> tuple[ArrayDefinition, ...]:
    """The definitions that outputs need, in their order; all of them where the program has no output."""
    wanted = {d.tensor.name for d in definitions if d.tensor.role is Role.OUTPUT}
    if not wanted:
        return definitions
    for definition in reversed(definitions):
        if definition.tensor.name in wanted:
            wanted |= {e.tensor for e in walk(definition.expression) if isinstance(e, Element)}
    return tuple(d for d in definitions if d.tensor.name in wanted)
