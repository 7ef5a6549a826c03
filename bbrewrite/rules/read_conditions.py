"""Reads the conditions behind `where`, each from its syntax tree; what a condition is about is not judged here."""

from __future__ import annotations

from typing import cast

from lark import Token, Tree

from bbrewrite.core.terms import Apply, Local, Number, Size, walk
from bbrewrite.lang.diagnostics import did_you_mean
from bbrewrite.rules.expressions import Expressions
from bbrewrite.rules.rules import FACTS, Comparison, Condition, Fact, IsConst, IsScalar, NotFree, Siblings
from bbrewrite.rules.syntax import Node

_CONDITIONS = (
    "`i not in free(c)`, `a is const`, `a is scalar`, a comparison of numbers and extents, "
    + ", ".join(f"`{fact}(x)`" for fact in FACTS)
    + ", `siblings(x, y)`"
)
_COMPARED = ("add", "subtract", "multiply", "divide", "negate")


def read_condition(reader: Expressions, node: Tree[Token]) -> Condition | None:
    """The condition that a tree spells; None where the reader has noted a fault."""
    if node.data == "not_free":
        return NotFree(reader.index(node.children[0]), reader.term(node.children[1]))
    if node.data == "is_kind":
        return _kind_condition(reader, node)
    (inner,) = node.children
    assert isinstance(inner, Tree)
    if inner.data == "infix":
        symbol = inner.children[1]
        if isinstance(symbol, Token) and symbol.type == "COMPARISON":
            return _comparison(reader, inner)
        if str(symbol) in ("and", "or"):
            hint = (
                "conditions that hold together are separated by commas" if symbol == "and" else "write a rule for each"
            )
            reader.fault("unknown-condition", f"conditions are not joined by `{symbol}`", inner, hint)
            return None
    word = ""
    if inner.data == "call":
        name, *operands = [child for child in cast("list[Node | None]", inner.children) if child is not None]
        word = str(name)
        if word in (*FACTS, "siblings"):
            return _fact(reader, word, operands, inner)
    hint = did_you_mean(word, (*FACTS, "siblings")) if word else ""
    reader.fault("unknown-condition", f"this is no condition; there are {_CONDITIONS}", inner, hint)
    return None


def _fact(reader: Expressions, word: str, operands: list[Node], node: Node) -> Condition | None:
    wanted = 2 if word == "siblings" else 1
    if len(operands) != wanted:
        form = "siblings(x, y)" if word == "siblings" else f"{word}(x)"
        given = len(operands) or "none"
        message = f"`{word}` takes {wanted} operand{'s' * (wanted > 1)}, {given} given"
        reader.fault("wrong-arity", message, node, f"it is written {form}")
        return None
    terms = [reader.term(operand) for operand in operands]
    return Siblings(terms[0], terms[1]) if word == "siblings" else Fact(word, terms[0])


def _kind_condition(reader: Expressions, node: Tree[Token]) -> Condition | None:
    term, word = reader.term(node.children[0]), node.children[1]
    match str(word):
        case "const":
            return IsConst(term)
        case "scalar":
            return IsScalar(term)
        case other:
            hint = did_you_mean(other, ("const", "scalar"))
            message = "a value may be asked whether it `is const` or `is scalar`"
            reader.fault("unknown-condition", message, word, hint)
            return None


def _comparison(reader: Expressions, node: Tree[Token]) -> Condition:
    term = reader.term(node)
    for part in walk(term):
        if part is term or isinstance(part, Number | Local | Size):
            continue
        if not (isinstance(part, Apply) and part.operator in _COMPARED):
            message = "a comparison is of numbers, variables that are numbers, size(i), and + - * / on them"
            reader.fault("comparison", message, node)
            break
    return Comparison(term)
