"""From the text of a rule file to a syntax tree, by `grammar/rules.lark`. Meaning is checked elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import cast

from lark import Lark, Token, Tree

from bbrewrite.core.spans import Source, Span
from bbrewrite.lang.diagnostics import Diagnostic
from bbrewrite.lang.grammars import load_grammar
from bbrewrite.rules.expectations import name_missing

type Node = Tree[Token] | Token

# Later stages walk terms recursively; a person never writes one so deep.
_GREATEST_DEPTH = 150


def parse_text(text: str) -> Tree[Token]:
    """The syntax tree of a rule file's text, an item a child. Raises Lark's UnexpectedInput."""
    return _parser().parse(text)  # pyright: ignore[reportUnknownMemberType]


def rule_tokens(source: Source) -> list[Token]:
    """The tokens of a rule file that parses, keywords told from names by where they stand."""
    return list(_parser().parse_interactive(source.text).exhaust_lexer())  # pyright: ignore[reportUnknownMemberType]


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
    return load_grammar("rules", propagate_positions=True, maybe_placeholders=True)


def faults_of_form(source: Source, item: Tree[Token]) -> Iterator[Diagnostic]:
    """What the grammar cannot say: a name beside its keyword, an indented body, a bound on depth, finite numbers."""
    name = next(child for child in item.children if isinstance(child, Token))
    fault = name_missing(source, name.line or 1)
    if fault is not None:
        yield fault
    elif item.data == "rule":
        yield from _indentation_faults(source, name.line or 1, item.meta.end_line)
    yield from _depth_faults(source, item)


def _indentation_faults(source: Source, first: int, last: int) -> Iterator[Diagnostic]:
    """The first line below a rule's name that is not indented under it."""
    around = _indentation(source.line(first))
    for line in range(first + 1, last + 1):
        content = source.line(line).strip()
        if content and not content.startswith("#") and _indentation(source.line(line)) <= around:
            span = Span(source, line, _indentation(source.line(line)) + 1, len(content))
            hint = "indent every line of the rule's body, by four spaces"
            yield Diagnostic("syntax", "a rule's body is indented under its name", span, hint)
            return


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _depth_faults(source: Source, item: Tree[Token]) -> Iterator[Diagnostic]:
    depth, level = 0, list[Node]([item])
    while level:
        for node in level:
            if isinstance(node, Token) and node.type == "NUMBER" and math.isinf(float(node)):
                yield Diagnostic("out-of-range", f"`{node}` is too large for a number", span_of(source, node))
        nodes = [node for node in level if isinstance(node, Tree)]
        if nodes and depth > _GREATEST_DEPTH:
            message = f"expressions nest more than {_GREATEST_DEPTH} deep here"
            yield Diagnostic("too-deep", message, span_of(source, nodes[0]))
            return
        children = cast("list[list[Node | None]]", [node.children for node in nodes])
        depth, level = depth + 1, [part for parts in children for part in parts if part is not None]  # None is absent
