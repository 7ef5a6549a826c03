"""Puts into words what a rule file needed where something else stood. The parser's own messages never show."""

from __future__ import annotations

import re
from typing import cast

from lark import Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from bbrewrite.core.spans import Source, Span
from bbrewrite.lang.characters import described
from bbrewrite.lang.diagnostics import Diagnostic, did_you_mean

_COMMENT = re.compile(r'(?<!")#[^"\n]*$')
# The last keyword of an item on a line, and whether it ends the line; texts and comments hold none.
_ITEM = re.compile(r'^(?:[^"#]|"[^"]*")*\b(?P<kind>rule|op|monoid)\b(?P<end>\s*(?:#.*)?$)?')
_CLAUSES = ("rule", "op", "monoid", "match", "then", "let", "where", "test")
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
_SPELLINGS = {
    "\N{RIGHTWARDS ARROW}": "=>",
    "\N{RIGHTWARDS DOUBLE ARROW}": "=>",
    "\N{LEFT RIGHT DOUBLE ARROW}": "<=>",
    "{": "(",
    "}": ")",
}
_HINTS = {
    ":": "leave it out: a line or a word ends what stands before",
    ";": "leave it out: a line or a word ends what stands before",
    "'": 'a meaning stands in double quotes: "..."',
}
# Words of other languages, and of the other language here, at the beginning of a line.
_OTHER_WORDS = {
    ("if", "when", "assume", "given", "requires", "provided"): "a condition is written `where ...`",
    ("program", "index", "block", "input", "weight", "output"): (
        "this is a program: rules come first, as in `bbrewrite run rules/ program.bb`"
    ),
}


def syntax_error(source: Source, error: UnexpectedInput) -> Diagnostic:
    """The message for the first place that does not fit."""
    if isinstance(error, UnexpectedCharacters):
        return _unknown_character(source, Span(source, error.line, error.column))
    assert isinstance(error, UnexpectedToken)
    token = cast("Token", error.token)  # pyright: ignore[reportUnknownMemberType]
    wanted = set(error.accepts or error.expected)
    span = Span(source, token.line or 1, token.column or 1, max(1, len(token)))
    if (fault := name_missing(source, span.line)) is not None:
        return fault
    slip = _slip(source, token, wanted)
    if slip is not None:
        message, hint, width = slip
        return Diagnostic("syntax", message, _moved(span, width), hint)
    end = _end_before(source, token)
    if end is not None:
        # What is missing belongs at the end of the line before, not under the word that comes next.
        what = "the file ends" if token.type == "$END" else "the line ends"
        return Diagnostic("syntax", f"{what} too early{_in_words(wanted)}", end)
    hint = did_you_mean(str(token), (*_CLAUSES, "stays", *_SECTIONS)) if token.type == "NAME" else ""
    return Diagnostic("syntax", f"unexpected `{token}`{_in_words(wanted)}", span, hint)


def name_missing(source: Source, line: int) -> Diagnostic | None:
    """The fault of the item to which a line belongs, where the line of its keyword ends without a name."""
    for number in range(line, 0, -1):
        item = _ITEM.match(source.line(number))
        if item is not None:
            if number == line or item["end"] is None:
                return None
            kind = item["kind"]
            message = f"this `{kind}` has no name: the name stands on the line of the word `{kind}`"
            return Diagnostic("syntax", message, Span(source, number, item.start("kind") + 1, len(kind)))
    return None


def _unknown_character(source: Source, span: Span) -> Diagnostic:
    character = source.line(span.line)[span.column - 1 : span.column]
    if character == '"':
        return Diagnostic("syntax", "a quoted text ends on its line", span, 'close it with `"`')
    shown, hint = described(character, _SPELLINGS)
    hint = _HINTS.get(character, hint)
    return Diagnostic("syntax", f"{shown} has no meaning here", span, hint)


def _moved(span: Span, width: int) -> Span:
    """The span, begun `width` characters earlier."""
    return Span(span.source, span.line, span.column - width, span.length + width)


def _slip(source: Source, token: Token, wanted: set[str]) -> tuple[str, str, int] | None:
    """For a well-known slip its message, a hint, and how many characters before the token it begins."""
    line, column = source.line(token.line or 1), (token.column or 1) - 1
    before, text = line[:column].rstrip(), str(token)
    wants_value = "NUMBER" in wanted
    if text == ">" and line[:column].endswith(("-", "=")):
        return f"there is no arrow `{line[column - 1]}>`", "a rewrite is written `=>`", 1
    if text.startswith("=") and before.endswith("=") and "_BECOMES" not in wanted:
        return "there is no arrow `==>`", "a rewrite is written `=>`", 0
    if text in ("=", "==") and "_BECOMES" in wanted:
        return f"`{text}` rewrites nothing", "a rewrite is written `=>`, one that goes both ways `<=>`", 0
    if text in ("*", "/") and line[:column].endswith(text):
        return f"there is no operator `{text * 2}`", "a power is written `^`" if text == "*" else "", 1
    if text == ":" and re.search(r"\b(map|reduce)\b[^:]*$", before):
        return "loops are written with brackets in rules", "write map(i, x) or reduce(sum, i, x)", 0
    loop = re.search(r"\b(map|reduce)$", before)
    if loop and token.type == "NAME":
        form = "map(i, x)" if loop[1] == "map" else "reduce(sum, i, x)"
        return "loops are written with brackets in rules", f"write {form}", 0
    if before.endswith("not in") and token.type == "NAME":
        return f"`not in {text}` is no condition", f"write `i not in free({text})`", 0
    if token.type == "COMPARISON" and not wants_value and "COMPARISON" not in wanted:
        return "comparisons do not chain", "write `a < b and b < c`", 0
    if text == "+" and wants_value:
        return "there is no unary `+`", "leave it out", 0
    if text == "/" and not before:
        return "no line of a rule file begins with `/`", "`#` starts a comment", 0
    if text in ("-", *_CLAUSES) and re.match(r"\s*(rule|op|monoid)\s+\S+$", before):
        return "a name is one word", "it is made of letters, digits and `_`: `my_rule`", 0
    if token.type == "$END" or wants_value:
        return None
    return _slip_of_words(source, token, before, wanted)


def _slip_of_words(source: Source, token: Token, before: str, wanted: set[str]) -> tuple[str, str, int] | None:
    text = str(token)
    if before == "" and token.type == "NAME":
        near = did_you_mean(text, (*_CLAUSES, *_SECTIONS))
        for words, hint in _OTHER_WORDS.items():
            near = hint if text in words else near
        if near or "RULE" in wanted:
            return f"no line of a rule file begins with `{text}`", near, 0
    if text == "let" and "THEN" in wanted:
        return "`let` stands before its `then`", "write `match ...`, `then ...`, `let ...`", 0
    if text in ("=>", "<=>") and "RULE" in wanted:
        return "a rule has one arrow", "write a rule for each rewrite", 0
    if text == "=>" and "RPAR" in wanted and (opened := _opened_before(source, token)):
        return "`=>` cannot stand inside brackets", f"the `(` in column {opened} is never closed", 0
    if token.type in ("NAME", "NUMBER") and "INFIX" in wanted and before:
        return f"an operator is missing before `{text}`", "", 0
    return None


def _opened_before(source: Source, token: Token) -> int:
    """The column of the last bracket on the token's line that is open where it stands; 0 where there is none."""
    opened: list[int] = []
    for position, character in enumerate(source.line(token.line or 1)[: (token.column or 1) - 1]):
        if character == "(":
            opened.append(position + 1)
        elif character == ")" and opened:
            opened.pop()
    return opened[-1] if opened else 0


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


def _in_words(expected: set[str]) -> str:
    words = [word for terminal, word in _EXPECTED if terminal in expected]
    if "NUMBER" in expected:
        words = ["an expression"]
    return f"; {' or '.join(words[:3])} is expected here" if words else ""
