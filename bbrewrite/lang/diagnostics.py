"""Messages about users' input: what is wrong, where, and what to write instead.

Every front end collects `Diagnostic`s and raises them together as one `InputError`; the command line prints
them and exits with 2. Nothing here knows the languages.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from bbrewrite.core.spans import Span

_LISTED_WIDTH = 90  # of a line of names in a hint
_SHOWN_WIDTH = 140  # a longer line is cut around the place that is meant
# Of a message: a longer word (a name, a path) or text (an expression) is cut, since nobody reads on.
_LONGEST_WORD = 160
_LONGEST_TEXT = 600


@dataclass(frozen=True)
class Related:
    """A second place that a message speaks of: "first declared here"."""

    span: Span
    message: str


@dataclass(frozen=True)
class Diagnostic:
    """One fault. `code` is a short stable name ("unknown-name"); `hint` says what to do about it, on a line or more.

    `span` is None where the fault is in no text (a missing file); the message then names the place itself.
    A "warning" is printed and stops nothing: the text has a meaning, perhaps not the one that was meant.
    """

    code: str
    message: str
    span: Span | None = None
    hint: str = ""
    related: tuple[Related, ...] = ()
    severity: Literal["error", "warning"] = "error"

    def render(self) -> str:
        """`file:line:column: error[code]: message`, the line, a caret underline, the hint, related places."""
        if self.span is None:
            lines = [f"{self.severity}[{self.code}]: {shortened(self.message)}"]
        else:
            lines = [f"{self.span}: {self.severity}[{self.code}]: {shortened(self.message)}", *_excerpt(self.span)]
        if self.hint:
            first, *more = map(shortened, self.hint.split("\n"))
            lines += [f"  hint: {first}", *(f"    {line}" for line in more)]
        for other in self.related:
            lines += [f"  {other.span}: note: {shortened(other.message)}", *_excerpt(other.span)]
        return "\n".join(lines)


class InputError(Exception):
    """The user's input is at fault; carries every diagnostic found, in order of position."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(diagnostic.render() for diagnostic in self.diagnostics))


def render(diagnostics: Iterable[Diagnostic]) -> str:
    """The diagnostics as text, one after another."""
    return "\n".join(diagnostic.render() for diagnostic in diagnostics)


def shortened(text: str) -> str:
    """A line of a message with very long words cut, and then the whole where it is still very long."""
    text = re.sub(rf"(\S{{{_LONGEST_WORD - 40}}})\S{{41,}}", r"\1...", text)
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]} ..."


def counted(number: int, singular: str, plural: str = "") -> str:
    """A number of things in words: "no indices", "1 index", "2 indices"."""
    if number == 1:
        return f"1 {singular}"
    return f"{number or 'no'} {plural or singular + 's'}"


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """A hint that names the nearest candidate, or "" where none is near. Candidates are compared without case."""
    import difflib

    by_lower: dict[str, str] = {}
    for candidate in sorted(set(candidates)):
        by_lower.setdefault(candidate.lower(), candidate)
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return f"did you mean `{by_lower[near[0]]}`?" if near else ""


def listed(title: str, names: Iterable[str]) -> str:
    """A hint that lists names in order, as many as fit on a line, or "" where there are none."""
    shown = ""
    rest = sorted(set(names))
    while rest and len(shown) + len(rest[0]) < _LISTED_WIDTH:
        shown += f"{', ' if shown else ''}{rest.pop(0)}"
    return f"{title}: {shown}{f' and {len(rest)} more' if rest else ''}" if shown else ""


def all_of(title: str, names: Iterable[str]) -> str:
    """A hint that lists all names in order, on as many lines as they need, or "" where there are none."""
    lines = textwrap.wrap(", ".join(sorted(set(names))), _LISTED_WIDTH, break_long_words=False)
    return "\n".join((title, *lines)) if lines else ""


def _excerpt(span: Span) -> list[str]:
    line = span.source.line(span.line)
    start = span.column - 1
    length = max(1, min(span.length, len(line) - start))
    offset = 0
    if len(line) > _SHOWN_WIDTH:
        offset = max(0, start - _SHOWN_WIDTH // 2)
        line = line[offset : offset + _SHOWN_WIDTH]
        length = max(1, min(length, len(line) - (start - offset)))
    before = line[: start - offset]
    # Tabs are kept, so that the caret stands under its character however wide the terminal makes them.
    padding = "".join("\t" if character == "\t" else " " for character in before)
    shown = "".join(character if character.isprintable() or character == "\t" else "\ufffd" for character in line)
    return [f"    {shown}", f"    {padding}{'^' * length}"]
