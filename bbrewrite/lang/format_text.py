"""What both formatters share: lines of tokens with their comments, and how laid-out lines become text.

Formatting moves white space and nothing else. What stands on which line is decided by the formatter of a language.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lark import Token

from bbrewrite.core.spans import Source

STEP = 4


@dataclass(frozen=True)
class Comment:
    """A comment where it was written; `column` counts from 0. `is_alone` where its line has nothing else."""

    text: str
    line: int
    column: int
    is_alone: bool


@dataclass(frozen=True)
class Line:
    """A line of formatted text: code, a comment, both, or nothing (a blank line)."""

    indentation: int = 0
    code: str = ""
    comment: Comment | None = None

    @property
    def end(self) -> int:
        """The column behind the code."""
        return self.indentation + len(self.code)


def comments_of(source: Source, tokens: Iterable[Token]) -> list[Comment]:
    """The comments of a text whose tokens are known: what follows the last token of a line, from its `#` on."""
    ends: dict[int, int] = {}
    for token in tokens:
        ends[token.line or 1] = (token.column or 1) - 1 + len(token)
    found: list[Comment] = []
    for number, line in enumerate(source.text.split("\n"), start=1):
        start = line.find("#", ends.get(number, 0))
        if start >= 0:
            column = len(line[:start].expandtabs(STEP))
            found.append(Comment(line[start:].rstrip(), number, column, number not in ends))
    return found


def joined(lines: Sequence[Line]) -> str:
    """The text of lines. Comments behind code that stood in one column stand in one column again."""
    columns: dict[int, int] = {}
    for line in lines:
        if line.code and line.comment:
            column = line.comment.column
            columns[column] = max(columns.get(column, column), line.end + 2)
    texts: list[str] = []
    for line in lines:
        text = " " * line.indentation + line.code
        if line.comment and line.code:
            text = text.ljust(columns[line.comment.column]) + line.comment.text
        elif line.comment:
            text = " " * line.indentation + line.comment.text
        if text.strip() or (texts and texts[-1]):
            texts.append(text.rstrip())
    while texts and not texts[-1]:
        texts.pop()
    return "".join(f"{text}\n" for text in texts)
