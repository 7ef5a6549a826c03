"""Puts into words what a statement needed where something else stood."""

from __future__ import annotations

from collections.abc import Sequence

from lark import Token

from bbrewrite.core.spans import Source
from bbrewrite.lang.diagnostics import Diagnostic, did_you_mean
from bbrewrite.lang.layout import token_span

_INFIX = frozenset({"INFIX", "MINUS", "COMPARISON", "AND", "OR"})
_KEYWORDS = (
    *("program", "index", "block", "input", "weight", "output", "assume", "def", "let"),
    *("repeat", "carry", "next"),
)
_STARTS = frozenset(word.upper() for word in _KEYWORDS)
_WORDS = _STARTS | {"NAME", "MAP", "REDUCE", "BY", "AND", "OR", "NOT"}
_VALUE = frozenset({"NUMBER", "NAME", "LEFT_BRACKET"})
_SHOWN = {
    "NAME": "a name",
    "NUMBER": "a number",
    "COMMA": "`,`",
    "COLON": "`:`",
    "EQUALS": "`=`",
    "LEFT_BRACKET": "`(`",
    "RIGHT_BRACKET": "`)`",
    "LEFT_SQUARE": "`[`",
    "RIGHT_SQUARE": "`]`",
    "$END": "the end of the statement",
}


def describe_unexpected(source: Source, before: Sequence[Token], token: Token, accepted: frozenset[str]) -> Diagnostic:
    """A message for the first token that does not fit; `before` are the statement's tokens that did."""
    if _begins_with_unknown_word(before, token):
        return _unknown_word(source, before[0])
    span = token_span(source, token)
    previous = before[-1] if before else None
    found = "the statement ends" if token.type == "$END" else f"unexpected `{token.value}`"
    after = f" after `{previous.value}`" if previous else ""
    message, hint = _explain(before, token, accepted)
    if not message:
        message = f"{found}{after}; expected {_in_words(accepted)}"
    return Diagnostic("syntax", message, span, hint)


def _begins_with_unknown_word(before: Sequence[Token], token: Token) -> bool:
    """Whether two words begin the statement, or a word and a number, and the first is no keyword."""
    return len(before) == 1 and before[0].type == "NAME" and token.type in _WORDS | {"NUMBER"}


def _unknown_word(source: Source, word: Token) -> Diagnostic:
    hint = "this is a rule file: the program comes last, as in `bbrewrite run rules/ program.bb`"
    is_rule = word.value in ("rule", "op", "monoid")
    hint = hint if is_rule else did_you_mean(word.value, _KEYWORDS)
    return Diagnostic("syntax", f"no statement begins with `{word.value}`", token_span(source, word), hint)


def _explain(before: Sequence[Token], token: Token, accepted: frozenset[str]) -> tuple[str, str]:
    """A message ("" for the general one) and a hint for well-known slips."""
    if not before:
        return _explain_start(token)
    previous = before[-1]
    wants_value = accepted >= _VALUE
    if token.type == "COMPARISON" and "AND" in accepted:
        return "comparisons do not chain", "write `a < b and b < c`"
    if token.type == "EQUALS" and (wants_value or "INFIX" in accepted) and previous.type not in _INFIX:
        return "`=` names a definition; it does not compare", "write `==` to compare"
    if token.type == "EQUALS" and wants_value:
        return f"there is no operator `{previous.value}=`", ""
    if token == "*" and previous == "/":
        return "there is no operator `/*`", "`#` starts a comment"
    if token == previous == "*":
        return "there is no operator `**`", "a power is written `^`"
    if token == previous == "/":
        return "there is no operator `//`", "`/` inside an index bracket is floor division; elsewhere use `floor`"
    if token == "+" and wants_value:
        return "there is no unary `+`", "leave it out"
    if token.type == "NOT" and wants_value:
        return "`not` binds looser than this operator", "put brackets around it: `(not x)`"
    if token.type in ("MAP", "REDUCE") and wants_value:
        return f"`{token.value}` cannot follow an operator directly", "put brackets around it"
    if _names_indices(before, accepted):
        return "", "only names of indices stand in these brackets"
    if token.type in _WORDS | {"NUMBER"} and "INFIX" in accepted:
        return f"an operator is missing between `{previous.value}` and `{token.value}`", ""
    if token.type in _WORDS and token.type not in ("NAME", "NOT", "MAP", "REDUCE") and "NAME" in accepted:
        return f"`{token.value}` is a word of the language and cannot be a name here", ""
    return "", did_you_mean(previous.value, _KEYWORDS) if len(before) == 1 and previous.type == "NAME" else ""


def _names_indices(before: Sequence[Token], accepted: frozenset[str]) -> bool:
    """Whether the brackets behind a declared or defined name are being read."""
    is_open = sum((token.type == "LEFT_SQUARE") - (token.type == "RIGHT_SQUARE") for token in before) > 0
    return is_open and accepted in (frozenset({"NAME"}), frozenset({"COMMA", "RIGHT_SQUARE"}))


def _explain_start(token: Token) -> tuple[str, str]:
    if token == "/":
        return (
            "a statement cannot begin with `/`",
            "`#` starts a comment; to go on from the line before, end that with `/`",
        )
    if token.type in _INFIX:
        return f"a statement cannot begin with `{token.value}`", "to go on from the line before, end that one with it"
    if token.type in ("MAP", "REDUCE"):
        return f"a statement cannot begin with `{token.value}`", "give the list a name: `S = map m: ...`"
    return f"a statement cannot begin with `{token.value}`", "a statement is a declaration or a definition `x = ...`"


def _in_words(accepted: frozenset[str]) -> str:
    parts: list[str] = []
    rest = set(accepted) - {"BY"}  # said where block programs are explained; seldom what was meant
    if rest >= _VALUE:
        parts.append("a value")
        rest -= _VALUE | {"MINUS", "NOT", "MAP", "REDUCE"}
    if rest & _INFIX:
        parts.append("an operator")
        rest -= _INFIX
    parts += [_SHOWN.get(name, f"`{name.lower()}`") for name in sorted(rest - {"$END"})]
    if "$END" in rest:
        parts.append(_SHOWN["$END"])
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} or {parts[-1]}"
