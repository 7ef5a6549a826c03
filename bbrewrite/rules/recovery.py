"""Parses what can be parsed of a rule file that has faults of syntax, so that one run reports every faulty item.

An item begins with its keyword or its attributes, which stand nowhere else. The text of an item with a fault is taken
out and the rest parsed again; what the item would have declared counts as known, so that its uses are not reported.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import cast

from lark import Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from bbrewrite.core.spans import Source
from bbrewrite.lang.diagnostics import Diagnostic
from bbrewrite.rules.expectations import syntax_error
from bbrewrite.rules.syntax import faults_of_form, parse_text

_KEYWORD = re.compile(r"[ \t]*(?:rule|op|monoid)\b")
_ATTRIBUTE = re.compile(r"[ \t]*@")
_DECLARED = re.compile(r"^[ \t]*(?:op|monoid)[ \t]+([A-Za-z_]\w*)", re.MULTILINE)


@dataclass(frozen=True)
class ParsedFile:
    """The items that could be parsed, the faults of the others, and the names that those would declare."""

    items: tuple[Tree[Token], ...]
    faults: tuple[Diagnostic, ...]
    faulty_names: frozenset[str]


def parse_items(source: Source) -> ParsedFile:
    """Parses a rule file item by item."""
    lines = source.text.split("\n")
    starts = _starts(lines)
    faults: list[Diagnostic] = []
    faulty: set[str] = set()

    def take_out(first: int, last: int) -> None:
        faulty.update(_DECLARED.findall("\n".join(lines[first:last])))
        lines[first:last] = [""] * (last - first)

    while True:
        try:
            tree = parse_text("\n".join(lines))
            break
        except UnexpectedInput as error:
            faults.append(syntax_error(source, error))
            take_out(*_range_at_fault(error, lines, starts))
    items: list[Tree[Token]] = []
    for item in tree.children:
        if isinstance(item, Tree):
            wrong = list(faults_of_form(source, item))
            faults += wrong
            if wrong:
                take_out(item.meta.line - 1, item.meta.end_line)
            else:
                items.append(item)
    return ParsedFile(tuple(items), tuple(faults), frozenset(faulty))


def _starts(lines: list[str]) -> list[int]:
    """The positions of the lines on which items begin; the first of a file is one too."""
    found = [0]
    attributes = -1  # where those begin that wait for their rule
    for number, line in enumerate(lines):
        if _ATTRIBUTE.match(line):
            attributes = number if attributes < 0 else attributes
        elif _KEYWORD.match(line):
            found.append(number if attributes < 0 else attributes)
            attributes = -1
    return found


def _range_at_fault(error: UnexpectedInput, lines: list[str], starts: list[int]) -> tuple[int, int]:
    """The lines of the item that a fault is in, first and behind the last; some line of them is not empty."""
    # What is missing at the end, or in an item that was taken out, is missing in what was written last before.
    number = max((k for k in range(_line(error, len(lines)) + 1) if lines[k].strip()), default=0)
    before, after = [start for start in starts if start <= number], [start for start in starts if start > number]
    first, last = before[-1], after[0] if after else len(lines)
    if number == first and _is_first_word(error) and (_KEYWORD.match(lines[first]) or _ATTRIBUTE.match(lines[first])):
        # A keyword comes too early where the item before it is not complete.
        earlier = [start for start in before[:-1] if any(line.strip() for line in lines[start:first])]
        if earlier:
            return earlier[-1], first
    if number > first and _is_first_word(error) and lines[number][:1].strip():
        return number, last  # a word that begins a line where only items begin: the item above is complete
    return first, last


def _line(error: UnexpectedInput, count: int) -> int:
    if isinstance(error, UnexpectedCharacters):
        return error.line - 1
    token = _token(error)
    return count - 1 if token is None else (token.line or 1) - 1


def _is_first_word(error: UnexpectedInput) -> bool:
    token = _token(error)
    return token is not None and token.column == 1


def _token(error: UnexpectedInput) -> Token | None:
    """The word that does not fit; None for the end of the text."""
    if not isinstance(error, UnexpectedToken):
        return None
    token = cast("Token", error.token)  # pyright: ignore[reportUnknownMemberType]
    return None if token.type == "$END" else token
