"""Formats rule files: a clause a line, keywords padded so that what they speak of stands in one column.

Within a clause lines stay as the user broke them, and brackets stay; the tokens of the text are not changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lark import Token

from bbrewrite.core.spans import Source
from bbrewrite.lang.diagnostics import InputError
from bbrewrite.lang.format_text import STEP, Comment, Line, comments_of, joined
from bbrewrite.rules.recovery import parse_items
from bbrewrite.rules.syntax import rule_tokens

_ITEMS = frozenset({"AT", "RULE", "OP", "MONOID"})
_CLAUSES = frozenset({"MATCH", "THEN", "LET", "WHERE", "TEST"})
_SECTIONS = frozenset({"STATE", "IDENTITY", "ELEMENT", "COMBINE", "FINISH"})
_KEYWORDS = _ITEMS | _CLAUSES | _SECTIONS
# A keyword is as wide as the longest of its kind, and a space.
_CLAUSE_WIDTH, _SECTION_WIDTH = 6, 9
_BEFORE_OPERAND = frozenset(
    {"INFIX", "MINUS", "AND", "OR", "NOT", "COMPARISON", "COMMA", "EQUAL", "LPAR", "LSQB", "_BECOMES", "BOTH_WAYS"}
)


def format_rules(source: Source) -> str:
    """The rule file laid out anew. Raises InputError for a text that does not parse."""
    faults = parse_items(source).faults
    if faults:
        raise InputError(faults)
    tokens = rule_tokens(source)
    layout = _Layout(comments_of(source, tokens))
    for segment in _segments(tokens):
        layout.add(segment)
    layout.end(source.text.count("\n") + 2)
    return joined(layout.lines)


@dataclass
class _Segment:
    """Tokens that begin a line: an item's head, the body of a rule, a clause, a section.

    `column` is where a line of it that goes on begins; `arrow` the space around its `=>`.
    """

    indentation: int
    width: int
    column: int
    arrow: str
    tokens: list[Token] = field(default_factory=list[Token])


def _segments(tokens: Sequence[Token]) -> Iterator[_Segment]:
    segment: _Segment | None = None
    in_monoid = False
    for position, token in enumerate(tokens):
        started = _started(tokens, position, segment, in_monoid)
        if started is not None:
            if segment is not None:
                yield segment
            segment = started
        in_monoid = token.type == "MONOID" or (in_monoid and token.type not in _ITEMS)
        assert segment is not None
        segment.tokens.append(token)
    if segment is not None:
        yield segment


def _started(tokens: Sequence[Token], position: int, segment: _Segment | None, in_monoid: bool) -> _Segment | None:
    """The segment that a token begins, if it begins one."""
    kind = tokens[position].type
    if kind in _ITEMS:
        return _Segment(0, 0, STEP, " ")
    if kind in _SECTIONS:
        return _Segment(STEP, _SECTION_WIDTH, STEP + _SECTION_WIDTH, " ")
    if kind in _CLAUSES and not (kind == "LET" and in_monoid):
        return _Segment(STEP, _CLAUSE_WIDTH, STEP + _CLAUSE_WIDTH, " ")
    is_head = segment is not None and segment.tokens[0].type == "RULE" and len(segment.tokens) > 1
    if is_head and kind != "MEANING":
        return _Segment(STEP, 0, 2 * STEP, "  ")
    return None


class _Layout:
    """Lays segments out, with the comments that stand between their tokens."""

    def __init__(self, comments: list[Comment]) -> None:
        self.lines: list[Line] = []
        self._comments = comments
        self._last = 0  # the line of the source down to which everything is laid out
        self._line = Line()
        self._brackets: list[int] = []

    def add(self, segment: _Segment) -> None:
        """Lays out a segment on lines of its own."""
        self._brackets.clear()
        for position, token in enumerate(segment.tokens):
            before = segment.tokens[:position]
            broken = not before or token.line != before[-1].line
            is_first_word = len(before) == 1 and segment.width > 0
            if not before:
                self._begin(segment.indentation, token)
            elif broken and (self._comment_before(token) or not is_first_word):
                self._begin(self._column(segment, token), token)
            else:
                self._write(_gap(segment, before, token))
            self._write(str(token))
            self._count(token)
            self._last = token.line or 1

    def end(self, line: int) -> None:
        """Lays out what follows the last token."""
        self._flush(line, 0)

    def _begin(self, indentation: int, token: Token) -> None:
        self._flush(token.line or 1, indentation)
        self._line = Line(indentation)

    def _comment_before(self, token: Token) -> bool:
        return bool(self._comments) and self._comments[0].line < (token.line or 1)

    def _write(self, text: str) -> None:
        self._line = Line(self._line.indentation, self._line.code + text)

    def _flush(self, until: int, indentation: int) -> None:
        """Ends the line that is being written, and writes the comments and blank lines before line `until`."""
        written, self._line = self._line, Line()
        is_last = until > self._last and bool(self._comments) and self._comments[0].line == self._last
        comment = self._taken(self._last) if is_last else None
        if written.code:
            self.lines.append(Line(written.indentation, written.code, comment))
        while self._comments and self._comments[0].line < until:
            line = self._comments[0].line
            self._space(line)
            self.lines.append(Line(indentation, "", self._taken(line)))
            self._last = line
        self._space(until)

    def _space(self, line: int) -> None:
        if line > self._last + 1:
            self.lines.append(Line())

    def _taken(self, line: int) -> Comment:
        self._last = line
        return self._comments.pop(0)

    def _column(self, segment: _Segment, token: Token) -> int:
        """Where a line that goes on begins: behind the bracket that is open, else in the segment's column."""
        if token.type == "RPAR" or not self._brackets:
            is_low = token.type == "RPAR" or (token.type in ("_BECOMES", "BOTH_WAYS") and not segment.width)
            return segment.indentation if is_low else segment.column
        return self._brackets[-1]

    def _count(self, token: Token) -> None:
        if token.type in ("LPAR", "LSQB"):
            self._brackets.append(self._line.end)
        elif token.type in ("RPAR", "RSQB") and self._brackets:
            self._brackets.pop()


def _gap(segment: _Segment, before: Sequence[Token], token: Token) -> str:
    """The space between two tokens of a line."""
    previous = before[-1]
    if len(before) == 1 and segment.width:
        return " " * (segment.width - len(previous))
    if "_BECOMES" in (token.type, previous.type) or "BOTH_WAYS" in (token.type, previous.type):
        return segment.arrow
    if token.type == "LET":
        return "  "
    earlier = before[-2] if len(before) > 1 else None
    is_first = earlier is None or earlier.type in _KEYWORDS
    is_sign = previous.type == "MINUS" and (is_first or (earlier is not None and earlier.type in _BEFORE_OPERAND))
    if is_sign or previous.type in ("AT", "LPAR", "LSQB") or token.type in ("COMMA", "RPAR", "RSQB", "LSQB"):
        return ""
    if "^" in (token, previous):
        return ""
    return "" if token.type == "LPAR" and previous.type in ("NAME", "FREE") else " "
