"""Syntax trees of `.bb` programs as written: names unresolved, nothing checked.

Spans point at the word or operator that gives a node its meaning.
"""

from __future__ import annotations

from dataclasses import dataclass

from bbrewrite.core.spans import Span


@dataclass(frozen=True)
class Word:
    """A name as written."""

    text: str
    span: Span


@dataclass(frozen=True)
class NumberSyntax:
    """A number; `bare` unless in brackets or under a minus sign, which a bare number absorbs: `-3`."""

    value: float
    span: Span
    bare: bool = True


@dataclass(frozen=True)
class NameSyntax:
    """A name in value position."""

    name: str
    span: Span


@dataclass(frozen=True)
class Operation:
    """An infix or prefix operator by its symbol."""

    symbol: str
    operands: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True)
class Indexed:
    """`base[a, b]`: a read, or the indices of a reduction that is being called."""

    base: Expression
    addresses: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True)
class Keyword:
    """`eps = 1e-6` among arguments."""

    name: Word
    value: Expression


@dataclass(frozen=True)
class CallSyntax:
    """`callee(arguments)`; the callee is a name or an indexed name where the program is right."""

    callee: Expression
    arguments: tuple[Expression, ...]
    keywords: tuple[Keyword, ...]
    span: Span


@dataclass(frozen=True)
class MapSyntax:
    """`map m: body`."""

    index: Word
    body: Expression
    span: Span


@dataclass(frozen=True)
class ReduceSyntax:
    """`reduce sum n: body`, or several operands in brackets."""

    monoid: Word
    index: Word
    operands: tuple[Expression, ...]
    span: Span


type Expression = NumberSyntax | NameSyntax | Operation | Indexed | CallSyntax | MapSyntax | ReduceSyntax


@dataclass(frozen=True)
class HeaderStatement:
    """`program name` or `block program name`."""

    name: Word
    is_block: bool
    span: Span


@dataclass(frozen=True)
class ExtentSyntax:
    """A number or the name of an index."""

    value: float | str
    span: Span


@dataclass(frozen=True)
class IndexItem:
    """`m`, `m = 4096`, `e = d`; at block level with `by 64`. Also `m = 64` of a block statement, as `block`."""

    name: Word
    extent: ExtentSyntax | None
    block: ExtentSyntax | None


@dataclass(frozen=True)
class IndexStatement:
    items: tuple[IndexItem, ...]
    span: Span


@dataclass(frozen=True)
class BlockStatement:
    items: tuple[IndexItem, ...]
    span: Span


@dataclass(frozen=True)
class Declared:
    """`Q[m, d]`, with a type behind the last name of a group."""

    name: Word
    indices: tuple[Word, ...]
    element: Word | None


@dataclass(frozen=True)
class InputStatement:
    is_weight: bool
    items: tuple[Declared, ...]
    span: Span


@dataclass(frozen=True)
class AssumeStatement:
    facts: tuple[tuple[Word, Word], ...]  # fact, tensor
    span: Span


@dataclass(frozen=True)
class DefStatement:
    """`def f[n](x, c) = body`; index parameters are in square brackets, as in library calls."""

    name: Word
    indices: tuple[Word, ...]
    parameters: tuple[Word, ...]
    body: Expression
    span: Span


@dataclass(frozen=True)
class LetStatement:
    """`let s = expression` of a block program: a name for a term, not a list in memory."""

    name: Word
    expression: Expression
    span: Span


@dataclass(frozen=True)
class DefinitionStatement:
    """`output O[m, l] : bf16 = expression`."""

    name: Word
    indices: tuple[Word, ...]
    element: Word | None
    expression: Expression
    is_output: bool
    span: Span


@dataclass(frozen=True)
class RepeatStatement:
    """`repeat layer`; the statements up to the `RepeatEnd` are its body."""

    index: Word
    span: Span


@dataclass(frozen=True)
class RepeatEnd:
    """Where the lines indented under a `repeat` end; no text of its own."""

    span: Span


@dataclass(frozen=True)
class CarryStatement:
    """`carry H[m, d] = expression`: what the first iteration is given."""

    name: Word
    indices: tuple[Word, ...]
    element: Word | None
    expression: Expression
    span: Span


@dataclass(frozen=True)
class NextStatement:
    """`next H[m, d] = expression`: what the following iteration is given, or the rest of the program."""

    name: Word
    indices: tuple[Word, ...]
    expression: Expression
    span: Span


type Statement = (
    HeaderStatement
    | IndexStatement
    | BlockStatement
    | InputStatement
    | AssumeStatement
    | DefStatement
    | LetStatement
    | DefinitionStatement
    | RepeatStatement
    | RepeatEnd
    | CarryStatement
    | NextStatement
)


def children(expression: Expression) -> tuple[Expression, ...]:
    """The operand expressions in order of writing."""
    match expression:
        case NumberSyntax() | NameSyntax():
            return ()
        case Operation(_, operands) | ReduceSyntax(_, _, operands):
            return operands
        case Indexed(base, addresses):
            return (base, *addresses)
        case CallSyntax(callee, arguments, keywords):
            return (callee, *arguments, *(keyword.value for keyword in keywords))
        case MapSyntax(_, body):
            return (body,)


def depth(expression: Expression) -> int:
    """The greatest number of expressions within one another; found without recursion."""
    deepest = 0
    waiting = [(expression, 1)]
    while waiting:
        node, level = waiting.pop()
        deepest = max(deepest, level)
        waiting.extend((child, level + 1) for child in children(node))
    return deepest
