"""Places in source text: values that syntax trees carry so that messages can point at their cause.

Light to import, as is all that calls a program which was compiled before: to define a dataclass takes a millisecond.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple


@lru_cache(maxsize=8)  # checks ask line by line
def _lines(text: str) -> list[str]:
    return text.split("\n")


class Source(NamedTuple):
    """A text and the name under which the user knows it (a path, or "<program>")."""

    name: str
    text: str

    def line(self, number: int) -> str:
        """The text of line `number`, counted from 1; "" past the end."""
        lines = _lines(self.text)
        return lines[number - 1].rstrip("\r") if 0 < number <= len(lines) else ""


class Span(NamedTuple):
    """A stretch of one line of a source; `line` and `column` count from 1, `length` in characters."""

    source: Source
    line: int
    column: int
    length: int = 1

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}"
