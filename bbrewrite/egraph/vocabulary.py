"""How terms are spelled in egglog: one constructor for each head, over one sort `Term`.

An index is a number (its bit in the masks of the `free` analysis), a block of an input is a quoted read. The
spelling goes both ways: `spelling` for terms and rule patterns, `head` for rows of the frozen e-graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple

from bbrewrite.core.addresses import Address, index_address
from bbrewrite.core.terms import (
    Apply,
    At,
    Cast,
    Component,
    IndexValue,
    Loaded,
    Local,
    Map,
    Number,
    Pair,
    Read,
    Reduce,
    Size,
    Stored,
    Term,
)

_PLACEHOLDER = Local("")


class Constructor(NamedTuple):
    """An egglog constructor: `attributes` are the sorts of its leading arguments, then `operands` terms follow.

    `binds` tells that the only index attribute is bound in the operands; other index attributes are free.
    """

    name: str
    attributes: tuple[str, ...]
    operands: int
    binds: bool = False

    @property
    def declaration(self) -> str:
        return f"(constructor {self.name} ({' '.join((*self.attributes, *('Term',) * self.operands))}) Term)"


INDEX, FLOAT, TEXT = "i64", "f64", "String"

# The heads without a name of their own; operators and monoids are spelled `op-NAME` and `reduce-NAME`.
NUMBER = Constructor("Number", (FLOAT,), 0)
SIZE = Constructor("Size", (INDEX,), 0)
POSITION = Constructor("Position", (INDEX,), 0)
READ = Constructor("Read", (TEXT,), 0)
MAP = Constructor("Map", (INDEX,), 1, binds=True)
AT = Constructor("At", (INDEX,), 1)
AT_ADDRESS = Constructor("AtAddress", (TEXT,), 1)  # a read at an expression, which no pattern matches
STORED = Constructor("Stored", (), 1)
LOADED = Constructor("Loaded", (), 1)
PAIR = Constructor("Pair", (), 2)
FIRST = Constructor("First", (), 1)
SECOND = Constructor("Second", (), 1)
ROUND = Constructor("Round", (TEXT,), 1)  # a cast between floats; a value kept local may skip it
CONVERT = Constructor("Convert", (TEXT,), 1)  # any other cast; it is always done

STRUCTURE = (*(NUMBER, SIZE, POSITION, READ, MAP, AT, AT_ADDRESS, STORED, LOADED, PAIR, FIRST, SECOND, ROUND, CONVERT),)


def constructor_of(term: Term, is_rounding: bool = True) -> Constructor:
    """The constructor of a term's head; `is_rounding` tells the two kinds of cast apart."""
    match term:
        case Apply(operator, operands, indices):
            return _of_operator(operator, len(indices), len(operands))
        case Reduce(monoid, _, operands):
            return _of_monoid(monoid, len(operands))
        case At(_, address):
            return AT if address.plain_index else AT_ADDRESS
        case Component(position, _):
            return SECOND if position else FIRST
        case Cast():
            return ROUND if is_rounding else CONVERT
        case Number():
            return NUMBER
        case Size():
            return SIZE
        case IndexValue():
            return POSITION
        case Read():
            return READ
        case Map():
            return MAP
        case Stored():
            return STORED
        case Loaded():
            return LOADED
        case Pair():
            return PAIR
        case _:
            raise AssertionError(term)


@cache
def _of_operator(name: str, indices: int, operands: int) -> Constructor:
    return Constructor(f"op-{name}", (INDEX,) * indices, operands)


@cache
def _of_monoid(name: str, operands: int) -> Constructor:
    return Constructor(f"reduce-{name}", (INDEX,), operands, binds=True)


def attributes_of(term: Term, index: Callable[[str], str]) -> list[str]:
    """The spelled attributes of a term's head; `index` spells an index."""
    match term:
        case Apply(_, _, indices):  # most terms are
            return [index(name) for name in indices]
        case Number(value):
            return [spelled_number(value)]
        case Size(name) | IndexValue(name) | Map(name, _) | Reduce(_, name, _):
            return [index(name)]
        case At(_, address):
            plain = address.plain_index
            return [index(plain) if plain else f'"{address}"']
        case Read():
            return [f'"{read_text(term)}"']
        case Cast(element, _):
            return [f'"{element}"']
        case _:
            return []


def spelled_number(value: float) -> str:
    """A float as egglog reads it."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return repr(float(value))


def read_text(read: Read) -> str:
    """A read as written: the key under which the frozen e-graph finds it again."""
    return f"{read.tensor}[{', '.join(map(str, read.addresses))}]" if read.addresses else read.tensor


def placeholder_head(
    name: str, values: tuple[object, ...], reads: Mapping[str, Read], addresses: Mapping[str, Address], operands: int
) -> Term:
    """The head that a constructor's name and attribute values spell; indices are given by name."""
    blank = (_PLACEHOLDER,) * operands
    texts = tuple(str(value) for value in values)
    if name.startswith("op-"):
        return Apply(name.removeprefix("op-"), blank, texts)
    if name.startswith("reduce-"):
        return Reduce(name.removeprefix("reduce-"), texts[0], blank)
    match name:
        case "Number":
            assert isinstance(values[0], float)
            return Number(values[0])
        case "Size":
            return Size(texts[0])
        case "Position":
            return IndexValue(texts[0])
        case "Read":
            return reads[texts[0]]
        case "Map":
            return Map(texts[0], _PLACEHOLDER)
        case "At":
            return At(_PLACEHOLDER, index_address(texts[0]))
        case "AtAddress":
            return At(_PLACEHOLDER, addresses[texts[0]])
        case "Stored":
            return Stored(_PLACEHOLDER)
        case "Loaded":
            return Loaded(_PLACEHOLDER)
        case "Pair":
            return Pair(_PLACEHOLDER, _PLACEHOLDER)
        case "First" | "Second":
            return Component(int(name == "Second"), _PLACEHOLDER)
        case "Round" | "Convert":
            return Cast(texts[0], _PLACEHOLDER)
        case _:
            raise AssertionError(name)
