"""From the text of a rule file to a syntax tree, by `grammar/rules.lark`. Meaning is checked elsewhere."""

from __future__ import annotations

from functools import cache

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from bbrewrite.core.spans import Source, Span
from bbrewrite.lang.diagnostics import Diagnostic, InputError, did_you_mean
from bbrewrite.resources import resource_directory

type Node = Tree[Token] | Token

_KEYWORDS = ("rule", "op", "monoid", "match", "then", "let", "where", "test", "stays")
_SECTIONS = ("state", "identity", "element", "combine", "finish")
# What the parser may have been waiting for, in the user's words, most telling first.
_EXPECTED = (
    ("NAME", "a name"),
    ("NUMBER", "an expression"),
    ("_BECOMES", "`=>`"),
    ("EQUAL", "`=`"),
    ("RPAR", "`)`"),
    ("RSQB", "`]`"),
    ("COMMA", "`,`"),
    ("THEN", "`then`"),
    ("RULE", "`rule`"),
)


def parse_tree(source: Source) -> Tree[Token]:
    """The syntax tree of a rule file. Raises InputError at the first fault."""
    try:
        return _parser().parse(source.text)
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
    match error:
        case UnexpectedCharacters():
            span = Span(source, error.line, error.column)
            shown = source.line(error.line)[error.column - 1 : error.column]
            if shown == '"':
                return Diagnostic("syntax", "a quoted text ends on its line", span)
            if shown.isalnum() or shown == "_":
                return _unexpected_word(source, error)
            return Diagnostic("syntax", f"unexpected `{shown}`{_wanted(error.allowed)}", span)
        case UnexpectedToken(token=token):
            return _unexpected_token(source, error, token)
        case _:
            return Diagnostic("syntax", "this is no rule file", Span(source, 1, 1))


def _unexpected_word(source: Source, error: UnexpectedCharacters) -> Diagnostic:
    """A word where the lexer knows of no word: a keyword misspelled, or something left out before it."""
    rest = source.line(error.line)[error.column - 1 :]
    length = next((i for i, c in enumerate(rest) if not (c.isalnum() or c == "_")), len(rest))
    word = rest[:length]
    span = Span(source, error.line, error.column, length)
    hint = did_you_mean(word, (*_KEYWORDS, *_SECTIONS))
    return Diagnostic("syntax", f"unexpected `{word}`{_wanted(error.allowed)}", span, hint)


def _unexpected_token(source: Source, error: UnexpectedToken, token: Token) -> Diagnostic:
    wanted = _wanted(error.accepts or error.expected)
    previous = next((t for t in reversed(error.token_history or []) if t is not None), None)
    ended = token.type == "$END"
    if (ended or (previous is not None and previous.line != token.line)) and previous is not None:
        # What is missing belongs at the end of the line before, not under the word that comes next.
        assert previous.end_line is not None and previous.end_column is not None
        span = Span(source, previous.end_line, previous.end_column)
        what = "the file ends" if ended else "the line ends"
        return Diagnostic("syntax", f"{what} too early{wanted}", span)
    if ended:
        return Diagnostic("syntax", f"the file ends too early{wanted}", Span(source, 1, 1))
    hint = did_you_mean(str(token), (*_KEYWORDS, *_SECTIONS)) if token.type == "NAME" else ""
    return Diagnostic("syntax", f"unexpected `{token}`{wanted}", span_of(source, token), hint)


def _wanted(expected: object) -> str:
    names: set[str] = set(expected) if isinstance(expected, set | frozenset | list) else set()  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    words = [word for terminal, word in _EXPECTED if terminal in names]
    if "an expression" in words:
        words = ["an expression"]
    return f"; {' or '.join(words[:3])} is expected here" if words else ""
