"""From the text of a rule file to a syntax tree, by `grammar/rules.lark`. Meaning is checked elsewhere."""

from __future__ import annotations

import re
from functools import cache
from typing import cast

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from bbrewrite.core.spans import Source, Span
from bbrewrite.lang.diagnostics import Diagnostic, InputError, did_you_mean
from bbrewrite.resources import resource_directory

_COMMENT = re.compile(r'(?<!")#[^"\n]*$')
type Node = Tree[Token] | Token

_KEYWORDS = ("rule", "op", "monoid", "match", "then", "let", "where", "test", "stays")
_SECTIONS = ("state", "identity", "element", "combine", "finish")
# What the parser may have been waiting for, in the user's words, most telling first.
_EXPECTED = (
    ("NAME", "a name"),
    ("_BECOMES", "`=>`"),
    ("EQUAL", "`=`"),
    ("RPAR", "`)`"),
    ("RSQB", "`]`"),
    ("COMMA", "`,`"),
    ("THEN", "`then`"),
    ("RULE", "`rule`"),
    ("OP", "`op`"),
    ("MONOID", "`monoid`"),
)


def parse_tree(source: Source) -> Tree[Token]:
    """The syntax tree of a rule file. Raises InputError at the first fault."""
    try:
        return _parser().parse(source.text)  # pyright: ignore[reportUnknownMemberType]
    except UnexpectedInput as error:
        raise InputError([_syntax_error(source, error)]) from None


def span_of(source: Source, node: Node) -> Span:
    """The place of a node; one that spans lines is shown by its first line."""
    if isinstance(node, Token):
        return Span(source, node.line or 1, node.column or 1, max(1, len(node)))
    meta = node.meta
    length = meta.end_column - meta.column if meta.end_line == meta.line else len(source.line(meta.line)) - meta.column
    return Span(source, meta.line, meta.column, max(1, length))


def documentation_above(source: Source, line: int) -> str:
    """The comment lines directly above a line, without their marks."""
    found: list[str] = []
    while line > 1 and source.line(line - 1).lstrip().startswith("#"):
        line -= 1
        found.insert(0, source.line(line).lstrip().removeprefix("#").strip())
    return "\n".join(found)


@cache
def _parser() -> Lark:
    grammar = (resource_directory("grammar") / "rules.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", propagate_positions=True, maybe_placeholders=True)


def _syntax_error(source: Source, error: UnexpectedInput) -> Diagnostic:
    if isinstance(error, UnexpectedCharacters):
        shown = source.line(error.line)[error.column - 1 : error.column]
        message = "a quoted text ends on its line" if shown == '"' else f"unexpected `{shown}`"
        return Diagnostic("syntax", message, Span(source, error.line, error.column))
    assert isinstance(error, UnexpectedToken)
    token = cast("Token", error.token)  # pyright: ignore[reportUnknownMemberType]
    wanted = _wanted(set(error.accepts or error.expected))
    end = _end_before(source, token)
    if end is not None:
        # What is missing belongs at the end of the line before, not under the word that comes next.
        what = "the file ends" if token.type == "$END" else "the line ends"
        return Diagnostic("syntax", f"{what} too early{wanted}", end)
    hint = did_you_mean(str(token), (*_KEYWORDS, *_SECTIONS)) if token.type == "NAME" else ""
    return Diagnostic("syntax", f"unexpected `{token}`{wanted}", span_of(source, token), hint)


def _end_before(source: Source, token: Token) -> Span | None:
    """The end of what stands on the lines before a token that begins its line; None where one does not."""
    last = token.line or 1
    if token.type == "$END":
        last = source.text.count("\n") + 2
    elif source.line(last)[: (token.column or 1) - 1].strip():
        return None
    for line in range(last - 1, 0, -1):
        content = _COMMENT.sub("", source.line(line)).rstrip()
        if content:
            return Span(source, line, len(content) + 1)
    return None


def _wanted(expected: set[str]) -> str:
    words = [word for terminal, word in _EXPECTED if terminal in expected]
    if "NUMBER" in expected:
        words = ["an expression"]
    return f"; {' or '.join(words[:3])} is expected here" if words else ""
