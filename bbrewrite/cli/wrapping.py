"""Breaks long lines of a block program inside brackets, where the language lets a statement go on.

The text still parses to the same program. Nothing is known here of its meaning: only brackets and commas count.
"""

from __future__ import annotations

_STEP = 2


def wrapped(text: str, width: int) -> str:
    """The text with every line longer than `width` broken at the commas of its longest bracket, and so on inside."""
    return "\n".join(piece for line in text.splitlines() for piece in _pieces(line, width, _indentation(line)))


def _pieces(line: str, width: int, indentation: int) -> list[str]:
    bracket = _longest_bracket(line)
    if len(line) <= width or bracket is None:
        return [line]
    start, end = bracket
    pieces = [line[: start + 1]]
    inner = " " * (indentation + _STEP)
    parts = _split_at_commas(line[start + 1 : end])
    for number, part in enumerate(parts):
        comma = "," if number < len(parts) - 1 else ""
        pieces += _pieces(f"{inner}{part}{comma}", width, indentation + _STEP)
    return pieces + _pieces(" " * indentation + line[end:], width, indentation)


def _longest_bracket(line: str) -> tuple[int, int] | None:
    """Where the longest outermost pair of round brackets opens and closes."""
    found: tuple[int, int] | None = None
    depth, start = 0, 0
    for position, character in enumerate(line):
        if character == "(":
            depth += 1
            start = position if depth == 1 else start
        elif character == ")":
            depth -= 1
            if depth == 0 and (found is None or position - start > found[1] - found[0]):
                found = (start, position)
    return found


def _split_at_commas(text: str) -> list[str]:
    """The parts between commas outside all brackets."""
    parts, depth, start = list[str](), 0, 0
    for position, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    return [*parts, text[start:].strip()]


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())
