"""Characters that mean nothing in programs and rules: what they are called, and what may have been meant.

Editors, papers and other languages write with them what is written otherwise here; some look like letters that are.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping

_SPELLINGS = {
    "\N{MULTIPLICATION SIGN}": "*",
    "\N{MIDDLE DOT}": "*",
    "\N{DIVISION SIGN}": "/",
    "\N{LESS-THAN OR EQUAL TO}": "<=",
    "\N{GREATER-THAN OR EQUAL TO}": ">=",
    "\N{NOT EQUAL TO}": "!=",
    "\N{MINUS SIGN}": "-",
    "\N{EN DASH}": "-",
    "\N{SQUARE ROOT}": "sqrt",
    "\N{INFINITY}": "inf",
    "&": "and",
    "|": "or",
    "!": "not",
}


def described(character: str, spellings: Mapping[str, str]) -> tuple[str, str]:
    """What a message calls a character, and a hint or ""; `spellings` are those of one language alone."""
    spelling = {**_SPELLINGS, **spellings}.get(character, "")
    if spelling:
        return f"`{character}`", f"write `{spelling}`"
    shown = f"`{character}`" if character.isprintable() else "the character"
    if not character.isascii() or not character.isprintable():  # it may look like another, or like nothing
        shown += f" U+{ord(character):04X} {unicodedata.name(character, '')}".rstrip()
    plain = unicodedata.normalize("NFKC", character)
    if plain == " ":
        return shown, "write a space"
    if plain.isascii() and plain != character:
        return shown, f"write `{plain}`"
    if character.isalpha():
        return shown, "names are made of the letters A to Z and a to z, digits and `_`"
    return shown, ""
