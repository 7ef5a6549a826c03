"""Formats programs of either level: spaces between tokens, the indentation of lines that go on, blank lines.

Lines stay as the user broke them, and brackets stay; the tokens of the text are not changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lark import Token

from bbrewrite.core.spans import Source
from bbrewrite.lang.diagnostics import InputError
from bbrewrite.lang.format_text import STEP, Comment, Line, comments_of, joined
from bbrewrite.lang.layout import statements
from bbrewrite.lang.parser import parse_statements, program_tokens

_OPENING = frozenset({"LEFT_BRACKET", "LEFT_SQUARE"})
_CLOSING = frozenset({"RIGHT_BRACKET", "RIGHT_SQUARE"})
_BEFORE_OPERAND = frozenset(
    {"INFIX", "MINUS", "COMPARISON", "AND", "OR", "NOT", "COMMA", "EQUALS", "COLON", "BY"} | _OPENING
)


def format_program(source: Source) -> str:
    """The program laid out anew. Raises InputError for a text that does not parse."""
    parsed = parse_statements(source)
    if parsed.faults:
        raise InputError(parsed.faults)
    groups = [list(cut.tokens) for cut in statements(source, program_tokens(source.text))]
    margins = _margins(groups)
    tokens = [token for group in groups for token in group]
    is_block = bool(groups) and [token.type for token in groups[0][:2]] == ["BLOCK", "PROGRAM"]
    comments = {comment.line: comment for comment in comments_of(source, tokens)}
    code = {
        line.number: line
        for group, margin in zip(groups, margins, strict=True)
        for line in _lines_of(group, margin, is_block)
    }
    return joined(list(_lines(source, code, comments)))


@dataclass(frozen=True)
class _Margin:
    """The indentation of a statement: in the body of a `repeat` it stands under it.

    `repeat` is the column at which a body's `repeat` begins, which the rest of the body lies behind.
    """

    width: int
    repeat: int | None


class _Code:
    """The code of one line of the source, laid out. `depth` counts the brackets that are open behind it."""

    def __init__(self, number: int, margin: _Margin, indentation: int, depth: int) -> None:
        self.number = number
        self.margin = margin
        self.indentation = indentation
        self.depth = depth
        self.text = ""


def _margins(groups: list[list[Token]]) -> list[_Margin]:
    """The margin of each statement."""
    margins: list[_Margin] = []
    repeat: int | None = None
    for group in groups:
        column = group[0].column or 1
        if repeat is not None and column <= repeat:
            repeat = None
        width = 0 if repeat is None else STEP
        if group[0].type == "REPEAT" and repeat is None:
            repeat = column
        margins.append(_Margin(width, repeat))
    return margins


def _lines_of(group: list[Token], margin: _Margin, is_block: bool) -> Iterator[_Code]:
    """The lines of one statement."""
    line = _Code(group[0].line or 1, margin, margin.width, 0)
    in_loop = False
    for position, token in enumerate(group):
        previous = group[position - 1] if position else None
        if token.type in ("MAP", "REDUCE"):
            in_loop = True
        if previous is not None and token.line != line.number:
            yield line
            depth = line.depth - (token.type in _CLOSING)
            indentation = margin.width + STEP * max(depth, token.type not in _CLOSING)
            line = _Code(token.line or 1, margin, indentation, line.depth)
        elif previous is not None:
            before = group[position - 2] if position > 1 else None
            line.text += _gap(before, previous, token, in_loop)
            if previous.type == "INPUT" and not is_block:
                line.text += " "  # names stand under those of `weight` and `output`
        line.depth += (token.type in _OPENING) - (token.type in _CLOSING)
        line.text += token.value
        in_loop = in_loop and token.type != "COLON"
    yield line


def _gap(before: Token | None, previous: Token, token: Token, in_loop: bool) -> str:
    """The space between two tokens of a line."""
    is_sign = previous.type == "MINUS" and (before is None or before.type in _BEFORE_OPERAND)
    if is_sign or previous.type in _OPENING or token.type in _CLOSING:
        return ""
    if token.type in ("COMMA", "LEFT_SQUARE") or "^" in (token, previous):
        return ""
    if token.type == "LEFT_BRACKET" and previous.type in {"NAME", *_CLOSING}:
        return ""
    return "" if token.type == "COLON" and in_loop else " "


def _lines(source: Source, code: dict[int, _Code], comments: dict[int, Comment]) -> Iterator[Line]:
    texts, previous = source.text.split("\n"), None
    following: dict[int, _Code | None] = {len(texts) + 1: None}
    for number in range(len(texts), 0, -1):
        following[number] = code.get(number, following[number + 1])
    for number, text in enumerate(texts, 1):
        line, comment = code.get(number), comments.get(number)
        if line is not None:
            previous = line
            yield Line(line.indentation, line.text, comment)
        elif comment is not None:
            yield Line(_comment_indentation(len(text) - len(text.lstrip()), previous, following[number]), "", comment)
        else:
            yield Line()


def _comment_indentation(column: int, previous: _Code | None, following: _Code | None) -> int:
    """Where a comment stands that began at a column, counted from 0: inside open brackets, else as what follows, or at
    a body's end if it was indented."""
    if previous is not None and previous.depth:
        return previous.margin.width + STEP * previous.depth
    if following is not None and following.margin.width:
        return following.margin.width
    repeat = previous.margin.repeat if previous is not None else None
    return STEP if repeat is not None and column >= repeat else 0
