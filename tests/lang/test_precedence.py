"""Precedences against Python's, which are the same for these operators."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator

import pytest

from bbrewrite.core.arrays import ArrayExpression, Call, Element, Literal
from bbrewrite.lang.diagnostics import InputError
from bbrewrite.lang.format_array import print_array_expression

from .texts import TABLE, array_program

_HEAD = "program p\ninput a, b, c : f32\n"
_NAMES = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide", ast.Pow: "power",
    ast.Lt: "less", ast.LtE: "less_equal", ast.Gt: "greater", ast.GtE: "greater_equal", ast.Eq: "equal",
    ast.NotEq: "not_equal", ast.And: "and", ast.Or: "or", ast.USub: "negate", ast.Not: "not",
}  # fmt: skip


def _number(draw: random.Random, depth: int) -> str:
    """Text of a number, bracketed at random."""
    if depth == 0:
        return draw.choice(["a", "b", "c", "2", "0.5"])
    match draw.randrange(4):
        case 0:
            return f"-{_number(draw, depth - 1)}"
        case 1:
            return f"({_number(draw, depth - 1)} {draw.choice('+-*/')} {_number(draw, depth - 1)})"
        case _:
            return f"{_number(draw, depth - 1)} {draw.choice('+-*/^')} {_number(draw, depth - 1)}"


def _truth(draw: random.Random, depth: int) -> str:
    """Text of a truth value."""
    if depth == 0:
        return f"{_number(draw, 1)} {draw.choice(['<', '<=', '>', '>=', '==', '!='])} {_number(draw, 1)}"
    match draw.randrange(4):
        case 0:
            return f"not {_truth(draw, depth - 1)}"
        case 1:
            return f"({_truth(draw, depth - 1)} {draw.choice(['and', 'or'])} {_truth(draw, depth - 1)})"
        case _:
            return f"{_truth(draw, depth - 1)} {draw.choice(['and', 'or'])} {_truth(draw, depth - 1)}"


def _from_python(node: ast.expr) -> ArrayExpression:
    match node:
        case ast.Constant(value):
            assert isinstance(value, int | float)
            return Literal(float(value))
        case ast.Name(name):
            return Element(name)
        case ast.UnaryOp(ast.USub(), ast.Constant(value)):
            assert isinstance(value, int | float)
            return Literal(-float(value))
        case ast.UnaryOp(operator, operand):
            return Call(_NAMES[type(operator)], (_from_python(operand),))
        case ast.BinOp(left, operator, right):
            return Call(_NAMES[type(operator)], (_from_python(left), _from_python(right)))
        case ast.Compare(left, [operator], [right]):
            return Call(_NAMES[type(operator)], (_from_python(left), _from_python(right)))
        case ast.BoolOp(operator, [first, *others]):
            found = _from_python(first)
            for other in others:
                found = Call(_NAMES[type(operator)], (found, _from_python(other)))
            return found
        case _:
            raise AssertionError(ast.dump(node))


def _parsed(text: str) -> ArrayExpression:
    return array_program(f"{_HEAD}output O = {text}\n").definitions[0].expression


def _parsed_or_none(text: str) -> ArrayExpression | None:
    try:
        return _parsed(text)
    except InputError:
        return None


def _without_a_pair_of_brackets(text: str) -> Iterator[str]:
    opened: list[int] = []
    for position, character in enumerate(text):
        if character == "(":
            opened.append(position)
        elif character == ")":
            start = opened.pop()
            yield text[:start] + text[start + 1 : position] + text[position + 1 :]


@pytest.mark.parametrize("seed", range(200))
def test_precedence_is_pythons(seed: int) -> None:
    draw = random.Random(seed)
    text = _truth(draw, 3) if seed % 2 else _number(draw, 4)
    expected = _from_python(ast.parse(text.replace("^", "**"), mode="eval").body)
    assert _parsed(text) == expected
    printed = print_array_expression(expected, TABLE)
    assert _parsed(printed) == expected
    for shorter in _without_a_pair_of_brackets(printed):
        assert _parsed_or_none(shorter) != expected


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("-(a^2)", "-a^2"),
        ("(-a)^2", "(-a)^2"),
        ("a^(b^c)", "a^b^c"),
        ("(a^b)^c", "(a^b)^c"),
        ("a^(-b)", "a^-b"),
        ("(a - b) - c", "a - b - c"),
        ("a - (b - c)", "a - (b - c)"),
        ("a / (b * c)", "a / (b * c)"),
        ("a * (-b)", "a * -b"),
        ("(-a) * b", "-a * b"),
        ("-(a * b)", "-(a * b)"),
        ("where((not (a < b)) and (b < c or c < a), a, b)", "where(not a < b and (b < c or c < a), a, b)"),
        ("where((a < b) == (b < c), a, b)", "where((a < b) == (b < c), a, b)"),
    ],
)
def test_fewest_brackets(text: str, printed: str) -> None:
    assert print_array_expression(_parsed(text), TABLE) == printed
