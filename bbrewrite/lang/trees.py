"""From the parser's trees to syntax trees. The walk is iterative, so that no depth of brackets is too deep."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lark import Token, Tree

from bbrewrite.core.spans import Source, Span
from bbrewrite.lang import syntax
from bbrewrite.lang.layout import token_span


def build_statement(source: Source, tree: Tree[Token]) -> syntax.Statement:
    """The statement for a tree of the grammar's rule `statement`."""
    build = _Builder(source)
    done: dict[int, Any] = {}
    for node in tree.iter_subtrees():
        parts = [done[id(child)] if isinstance(child, Tree) else child for child in node.children]
        done[id(node)] = getattr(build, node.data)(*parts)
    return done[id(tree)]


class _Builder:
    """One method a rule of the grammar, with the rule's parts as arguments; absent optional parts are None."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def _span(self, token: Token) -> Span:
        return token_span(self._source, token)

    def _word(self, token: Token) -> syntax.Word:
        return syntax.Word(token.value, self._span(token))

    # Statements

    def program_header(self, keyword: Token, name: Token) -> syntax.Statement:
        return syntax.HeaderStatement(self._word(name), False, self._span(keyword))

    def block_program_header(self, keyword: Token, _program: Token, name: Token) -> syntax.Statement:
        return syntax.HeaderStatement(self._word(name), True, self._span(keyword))

    def index_statement(self, keyword: Token, *items: syntax.IndexItem) -> syntax.Statement:
        return syntax.IndexStatement(items, self._span(keyword))

    def index_item(
        self, name: Token, extent: syntax.ExtentSyntax | None, _by: Token | None, block: syntax.ExtentSyntax | None
    ) -> syntax.IndexItem:
        return syntax.IndexItem(self._word(name), extent, block)

    def extent(self, *parts: Token | None) -> syntax.ExtentSyntax:
        value = parts[-1]
        assert value is not None
        if value.type == "NAME":
            return syntax.ExtentSyntax(value.value, self._span(value))
        sign = -1 if parts[0] is not None and parts[0].type == "MINUS" else 1
        # Kept exact: an extent of many digits must not pass through a float.
        number = int(value.value) if value.value.isdecimal() else float(value.value)
        return syntax.ExtentSyntax(sign * number, self._span(value))

    def block_statement(self, keyword: Token, *items: syntax.IndexItem) -> syntax.Statement:
        return syntax.BlockStatement(items, self._span(keyword))

    def block_item(self, name: Token, size: syntax.ExtentSyntax) -> syntax.IndexItem:
        return syntax.IndexItem(self._word(name), None, size)

    def input_statement(self, keyword: Token, *items: syntax.Declared) -> syntax.Statement:
        return syntax.InputStatement(keyword.type == "WEIGHT", items, self._span(keyword))

    def declared(self, name: Token, indices: tuple[syntax.Word, ...] | None, element: Token | None) -> syntax.Declared:
        return syntax.Declared(self._word(name), indices or (), self._word(element) if element else None)

    def names(self, *names: Token) -> tuple[syntax.Word, ...]:
        return tuple(self._word(name) for name in names)

    def assume_statement(self, keyword: Token, *facts: tuple[syntax.Word, syntax.Word]) -> syntax.Statement:
        return syntax.AssumeStatement(facts, self._span(keyword))

    def fact(self, fact: Token, tensor: Token) -> tuple[syntax.Word, syntax.Word]:
        return (self._word(fact), self._word(tensor))

    def def_statement(
        self,
        keyword: Token,
        name: Token,
        indices: tuple[syntax.Word, ...] | None,
        parameters: tuple[syntax.Word, ...],
        body: syntax.Expression,
    ) -> syntax.Statement:
        return syntax.DefStatement(self._word(name), indices or (), parameters, body, self._span(keyword))

    def let_statement(self, keyword: Token, name: Token, expression: syntax.Expression) -> syntax.Statement:
        return syntax.LetStatement(self._word(name), expression, self._span(keyword))

    def repeat_statement(self, keyword: Token, index: Token) -> syntax.Statement:
        return syntax.RepeatStatement(self._word(index), self._span(keyword))

    def carry_statement(
        self,
        keyword: Token,
        name: Token,
        indices: tuple[syntax.Word, ...] | None,
        element: Token | None,
        expression: syntax.Expression,
    ) -> syntax.Statement:
        declared = self._word(element) if element else None
        return syntax.CarryStatement(self._word(name), indices or (), declared, expression, self._span(keyword))

    def next_statement(
        self, keyword: Token, name: Token, indices: tuple[syntax.Word, ...] | None, expression: syntax.Expression
    ) -> syntax.Statement:
        return syntax.NextStatement(self._word(name), indices or (), expression, self._span(keyword))

    def definition(
        self,
        output: Token | None,
        name: Token,
        indices: tuple[syntax.Word, ...] | None,
        element: Token | None,
        expression: syntax.Expression,
    ) -> syntax.Statement:
        declared = self._word(element) if element else None
        return syntax.DefinitionStatement(
            self._word(name), indices or (), declared, expression, output is not None, self._span(name)
        )

    # Expressions

    def number(self, token: Token) -> syntax.Expression:
        return syntax.NumberSyntax(float(token.value), self._span(token))

    def name(self, token: Token) -> syntax.Expression:
        return syntax.NameSyntax(token.value, self._span(token))

    def bracketed(self, inner: syntax.Expression) -> syntax.Expression:
        return replace(inner, bare=False) if isinstance(inner, syntax.NumberSyntax) else inner

    def infix(self, left: syntax.Expression, operator: Token, right: syntax.Expression) -> syntax.Expression:
        return syntax.Operation(operator.value, (left, right), self._span(operator))

    def prefix(self, operator: Token, operand: syntax.Expression) -> syntax.Expression:
        span = self._span(operator)
        if operator.type == "MINUS" and isinstance(operand, syntax.NumberSyntax) and operand.bare:
            return syntax.NumberSyntax(-operand.value, _joined(span, operand.span), bare=False)
        return syntax.Operation(operator.value, (operand,), span)

    def indexed(self, base: syntax.Expression, *addresses: syntax.Expression) -> syntax.Expression:
        return syntax.Indexed(base, addresses, base.span)

    def keyword(self, name: Token, value: syntax.Expression) -> syntax.Keyword:
        return syntax.Keyword(self._word(name), value)

    def call(self, callee: syntax.Expression, *parts: syntax.Expression | syntax.Keyword) -> syntax.Expression:
        arguments: list[syntax.Expression] = []
        keywords: list[syntax.Keyword] = []
        for part in parts:
            if isinstance(part, syntax.Keyword):
                keywords.append(part)
            else:
                arguments.append(part)
        return syntax.CallSyntax(callee, tuple(arguments), tuple(keywords), callee.span)

    def map(self, keyword: Token, index: Token, body: syntax.Expression) -> syntax.Expression:
        return syntax.MapSyntax(self._word(index), body, self._span(keyword))

    def reduce(self, keyword: Token, monoid: Token, index: Token, *operands: syntax.Expression) -> syntax.Expression:
        return syntax.ReduceSyntax(self._word(monoid), self._word(index), operands, self._span(keyword))


def _joined(first: Span, second: Span) -> Span:
    """A span from the first to the end of the second, where both are on one line."""
    if first.line != second.line:
        return second
    return first._replace(length=second.column + second.length - first.column)
