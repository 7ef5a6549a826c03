"""Loads the grammars of both languages, from a cache of parser tables where there is one.

Building the tables takes longer than parsing a program, so lark keeps them in the user's cache directory, and
makes them anew when the grammar, its options, lark or Python change. Where nothing can be written they are built
each time.
"""

from __future__ import annotations

import os
from typing import Any

from lark import Lark

from bbrewrite.lang.operations import Operations
from bbrewrite.resources import cache_directory, resource_directory


def load_grammar(name: str, **options: Any) -> Lark:
    """An LALR parser of `grammar/NAME.lark`; `options` are lark's."""
    text = (resource_directory("grammar") / f"{name}.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", cache=_tables(name), transformer=Operations(), **options)


def _tables(name: str) -> str | bool:
    """The file of a grammar's tables, or False where none can be written."""
    directory = cache_directory() / "grammars"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return str(directory / f"{name}.tables") if os.access(directory, os.W_OK) else False
