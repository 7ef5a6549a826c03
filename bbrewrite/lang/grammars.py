"""Loads the grammars of both languages, from a cache of parser tables where there is one.

Building the tables takes longer than parsing a program, so lark keeps them in the user's cache directory, and
makes them anew when the grammar, its options, lark or Python change. Where nothing can be written they are built
each time.
"""

from __future__ import annotations

import os
from operator import itemgetter
from typing import Any, cast

from lark import Lark
from lark.grammar import NonTerminal, Rule

from bbrewrite.lang.operations import Operations
from bbrewrite.resources import cache_directory, resource_directory


def load_grammar(name: str, **options: Any) -> Lark:
    """An LALR parser of `grammar/NAME.lark`; `options` are lark's."""
    text = (resource_directory("grammar") / f"{name}.lark").read_text(encoding="utf-8")
    grammar = Lark(text, parser="lalr", cache=_tables(name), transformer=Operations(), **options)
    # A rule `?a: b | ...` gives a lone `b` as it is. Lark works out its place all the same, and this is what parsing
    # does most: every name passes through all levels of an expression.
    callbacks = cast("dict[Rule, Any]", grammar.parser.parser_conf.callbacks)  # pyright: ignore[reportUnknownMemberType]
    callbacks.update({rule: itemgetter(0) for rule in grammar.rules if _passes_on(rule)})
    return grammar


def _passes_on(rule: Rule) -> bool:
    """Whether a rule is another one by a further name."""
    if len(rule.expansion) != 1 or rule.alias is not None or not rule.options.expand1:
        return False
    (symbol,) = rule.expansion
    return isinstance(symbol, NonTerminal) and not symbol.name.startswith("_")


def _tables(name: str) -> str | bool:
    """The file of a grammar's tables, or False where none can be written."""
    directory = cache_directory() / "grammars"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return str(directory / f"{name}.tables") if os.access(directory, os.W_OK) else False
