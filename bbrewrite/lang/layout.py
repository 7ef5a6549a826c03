"""Cuts the tokens of a program into statements.

A newline ends a statement except inside brackets or after an operator, a comma, `=` or `:`. Words such as `index`
are turned back into names where no statement begins. A bracket that is never closed ends where the next line
clearly begins a statement, so that one slip does not hide what follows. Nothing is parsed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lark import Token

from bbrewrite.core.spans import Source, Span
from bbrewrite.lang.characters import described
from bbrewrite.lang.diagnostics import Diagnostic, Related

_CLOSING = {"LEFT_BRACKET": ("RIGHT_BRACKET", ")"), "LEFT_SQUARE": ("RIGHT_SQUARE", "]")}
_CONTINUES = frozenset({"INFIX", "MINUS", "COMPARISON", "AND", "OR", "NOT", "COMMA", "EQUALS", "COLON"})
_STATEMENT_WORDS = frozenset({"PROGRAM", "INDEX", "BLOCK", "INPUT", "WEIGHT", "OUTPUT", "ASSUME", "DEF", "LET"}) | {
    "REPEAT",
    "CARRY",
    "NEXT",
}
_WORDS = _STATEMENT_WORDS | {"NAME", "BY", "MAP", "REDUCE"}
_HINTS = {
    "{": "write `(` or `[`",
    "}": "write `)` or `]`",
    ";": "a statement ends with its line",
    '"': "names stand without quotes",
    "'": "names stand without quotes",
    "@": "a product of matrices is a sum of products: `sum[k](A[m, k] * B[k, n])`",
}


@dataclass(frozen=True)
class Cut:
    """The tokens of one statement; with faults, where it makes no sense to parse it."""

    tokens: tuple[Token, ...]
    faults: tuple[Diagnostic, ...]


def token_span(source: Source, token: Token) -> Span:
    """Where a token stands."""
    return Span(source, token.line or 1, token.column or 1, max(1, len(token.value)))


def statements(source: Source, tokens: Iterable[Token]) -> Iterator[Cut]:
    """The statements of a text in order."""
    for group in _groups(list(tokens)):
        faults = [_unknown(source, token) for token in group if token.type == "UNKNOWN"]
        faults = _joined(faults) or _brackets(source, group)
        yield Cut(tuple(_with_names(group)), tuple(faults))


def _groups(tokens: list[Token]) -> Iterator[list[Token]]:
    """Token lists of statements, without newlines."""
    group: list[Token] = []
    depth = 0
    for position, token in enumerate(tokens):
        if token.type != "NEWLINE":
            depth += (token.type in _CLOSING) - (token.type in ("RIGHT_BRACKET", "RIGHT_SQUARE"))
            depth = max(depth, 0)
            group.append(token)
            continue
        continues = bool(group) and group[-1].type in _CONTINUES
        if continues or depth > 0:
            line = _line_after(tokens, position)
            if not line or not _begins_statement(line, continues and depth == 0):
                continue
        if group:
            yield group
        group, depth = [], 0
    if group:
        yield group


def _line_after(tokens: list[Token], position: int) -> list[Token]:
    """The first tokens of the next line that has any; enough of them to see whether a statement begins."""
    while position < len(tokens) and tokens[position].type == "NEWLINE":
        position += 1
    line: list[Token] = []
    for token in tokens[position : position + 64]:
        if token.type == "NEWLINE":
            break
        line.append(token)
    return line


def _begins_statement(line: list[Token], after_operator: bool) -> bool:
    """Whether a line can only be the beginning of a statement: inside brackets, or after an operator."""
    if len(line) >= 2 and line[0].type in _STATEMENT_WORDS and line[1].type in _WORDS:
        return True
    types = [token.type for token in line]
    if not after_operator and len(line) >= 3 and types[1] == "EQUALS" and types[2] in ("MAP", "REDUCE"):
        return types[0] in _WORDS
    if after_operator or len(line) < 2 or types[0] not in _WORDS or types[1] != "LEFT_SQUARE":
        return False
    if "RIGHT_SQUARE" not in types:
        return False
    after = types.index("RIGHT_SQUARE") + 1
    return after < len(types) and types[after] in ("EQUALS", "COLON")


def _with_names(group: list[Token]) -> Iterator[Token]:
    """The tokens with keywords made names where they are not in a keyword's place."""
    types = [token.type for token in group] + [""]
    for position, token in enumerate(group):
        following = types[position + 1]
        is_keyword = True
        if token.type == "PROGRAM" and position == 1 and types[0] == "BLOCK":
            is_keyword = following in _WORDS
        elif token.type in _STATEMENT_WORDS:
            is_keyword = position == 0 and following not in ("EQUALS", "LEFT_SQUARE", "COLON", "LEFT_BRACKET")
        elif token.type == "BY":
            is_keyword = types[0] == "INDEX" and position > 1 and types[position - 1] not in ("COMMA", "EQUALS")
        elif token.type in ("MAP", "REDUCE"):
            is_keyword = following in _WORDS and position > 0
        yield token if is_keyword else token.update(type="NAME")


def _unknown(source: Source, token: Token) -> Diagnostic:
    shown, hint = described(token.value, {})
    hint = _HINTS.get(token.value, hint)
    return Diagnostic("unknown-character", f"{shown} has no meaning here", token_span(source, token), hint)


def _joined(faults: list[Diagnostic]) -> list[Diagnostic]:
    """One message a run of unknown characters is enough, and one for what a line has several times."""
    kept: list[Diagnostic] = []
    told: set[tuple[str, int]] = set()
    last: Span | None = None
    for fault in faults:
        assert fault.span is not None
        if last is None or (last.line, last.column + 1) != (fault.span.line, fault.span.column):
            kept += [fault] if (fault.message, fault.span.line) not in told else []
            told.add((fault.message, fault.span.line))
        last = fault.span
    return kept


def _brackets(source: Source, group: list[Token]) -> list[Diagnostic]:
    """Brackets that do not pair: at most one message, since what follows the first cannot be trusted."""
    opened: list[Token] = []
    for token in group:
        if token.type in _CLOSING:
            opened.append(token)
        elif token.type in ("RIGHT_BRACKET", "RIGHT_SQUARE"):
            span = token_span(source, token)
            if not opened:
                return [Diagnostic("bracket", f"`{token.value}` closes nothing", span)]
            wanted, text = _CLOSING[opened[-1].type]
            if wanted != token.type:
                related = (Related(token_span(source, opened[-1]), "opened here"),)
                message = f"`{token.value}` cannot close `{opened[-1].value}`"
                return [Diagnostic("bracket", message, span, f"write `{text}`", related)]
            opened.pop()
    if opened:
        return [Diagnostic("bracket", f"`{opened[-1].value}` is never closed", token_span(source, opened[-1]))]
    return []
