"""From tokens to syntax trees, a statement at a time.

The grammar is `grammar/program.lark`. After a fault the next statement is parsed all the same, so that one run
reports every faulty statement. What the parser expected is put in words here; its own messages never show.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from typing import cast

from lark import Lark, Token, Tree, UnexpectedToken
from lark.lexer import BasicLexer
from lark.parsers.lalr_interactive_parser import InteractiveParser

from bbrewrite.core.spans import Source
from bbrewrite.lang import syntax
from bbrewrite.lang.diagnostics import Diagnostic
from bbrewrite.lang.expectations import describe_unexpected
from bbrewrite.lang.grammars import load_grammar
from bbrewrite.lang.layout import statements, token_span
from bbrewrite.lang.trees import build_statement

# Later stages walk expressions recursively; a person never writes one so deep.
GREATEST_DEPTH = 150

_DECLARING = ("INDEX", "INPUT", "WEIGHT")


@dataclass(frozen=True)
class Parsed:
    """The statements that could be parsed, the faults of the others, and the names that those would declare."""

    statements: tuple[syntax.Statement, ...]
    faults: tuple[Diagnostic, ...]
    faulty_names: frozenset[str]


def parse_statements(source: Source) -> Parsed:
    """Parses a text, array level or block level."""
    found: list[syntax.Statement] = []
    faults: list[Diagnostic] = []
    faulty_names: set[str] = set()
    repeat: Token | None = None
    cuts = list(statements(source, program_tokens(source.text)))
    for cut, following in zip_longest(cuts, cuts[1:]):
        first = cut.tokens[0]
        if repeat is not None and (first.column or 1) <= (repeat.column or 1):
            found.append(syntax.RepeatEnd(token_span(source, repeat)))
            repeat = None
        outcome = cut.faults or _parse(source, cut.tokens)
        if isinstance(outcome, tuple):
            faults += outcome
            faulty_names |= _declared_names(cut.tokens)
            outcome = _meant_repeat(source, cut.tokens, following.tokens[0] if following else None)
            faulty_names |= {outcome.index.text} if outcome is not None else set()
        if isinstance(outcome, syntax.RepeatStatement) and repeat is None:
            repeat = first
        if outcome is not None:
            found.append(outcome)
    if repeat is not None:
        found.append(syntax.RepeatEnd(token_span(source, repeat)))
    return Parsed(tuple(found), tuple(faults), frozenset(faulty_names))


def _declared_names(tokens: tuple[Token, ...]) -> set[str]:
    """The names that a statement with a fault may have been going to declare: all but those that define one thing."""
    depth = 0
    equals: list[int] = []
    for place, token in enumerate(tokens):
        depth += token.type.startswith("LEFT_") - token.type.startswith("RIGHT_")
        if token.type == "EQUALS" and depth == 0:
            equals.append(place)
    declaring = tokens[: equals[0]] if len(equals) == 1 and tokens[0].type not in _DECLARING else tokens
    return {token.value for token in declaring if token.type == "NAME"}


def _meant_repeat(source: Source, tokens: tuple[Token, ...], following: Token | None) -> syntax.RepeatStatement | None:
    """The `repeat` that a statement with a fault was to be: what stands under it is not at fault for that."""
    first = tokens[0]
    is_body = following is not None and following.type == "CARRY" and (following.column or 1) > (first.column or 1)
    if first.type != "REPEAT" and not is_body:
        return None
    name = next((token for token in tokens[1:] if token.type == "NAME"), first)
    return syntax.RepeatStatement(syntax.Word(name.value, token_span(source, name)), token_span(source, first))


@cache
def _grammar() -> Lark:
    grammar = load_grammar("program", lexer="basic", start=["statement", "layout"])
    # Without it every call of `lex` makes a lexer, which takes longer than to use one.
    grammar.lexer = BasicLexer(grammar.lexer_conf)
    return grammar


def program_tokens(text: str) -> Iterator[Token]:
    """The tokens of a text, newlines among them."""
    return _grammar().lex(text)  # pyright: ignore[reportUnknownMemberType]


def _fed(tokens: list[Token]) -> InteractiveParser:
    parser = _grammar().parse_interactive(start="statement")  # pyright: ignore[reportUnknownMemberType]
    for token in tokens:
        parser.feed_token(token)
    return parser


def _parse(source: Source, tokens: tuple[Token, ...]) -> syntax.Statement | tuple[Diagnostic]:
    parser = _fed([])
    end = Token("$END", "", line=tokens[-1].line, column=(tokens[-1].column or 1) + len(tokens[-1].value))
    tree: Tree[Token] | None = None
    for position, token in enumerate((*tokens, end)):
        try:
            tree = parser.feed_token(token)
        except UnexpectedToken:
            # Before it noticed, the parser may have reduced; what it would have taken shows in a fresh one.
            accepted = frozenset(cast(set[str], _fed(list(tokens[:position])).accepts()))
            return (describe_unexpected(source, tokens[:position], token, accepted),)
    assert tree is not None
    statement = build_statement(source, tree)
    return _too_deep(statement) or statement


def _too_deep(statement: syntax.Statement) -> tuple[Diagnostic] | None:
    match statement:
        case (
            syntax.DefinitionStatement(expression=body)
            | syntax.LetStatement(expression=body)
            | syntax.CarryStatement(expression=body)
            | syntax.NextStatement(expression=body)
            | syntax.DefStatement(body=body)
        ):
            if syntax.depth(body) <= GREATEST_DEPTH:
                return None
            message = f"expressions nest more than {GREATEST_DEPTH} deep here"
            return (Diagnostic("too-deep", message, body.span, "give a part of it a definition of its own"),)
        case _:
            return None
