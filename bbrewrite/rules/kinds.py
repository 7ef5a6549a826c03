"""Kinds of the values in a rule: matrix, vector, scalar, list or pair. Which of them each operator takes and gives.

A set of kinds says what a value may still be: a rule stays generic where several remain (`row_scale` takes vectors
too). How the kinds of a whole rule follow from these is in `inference.py`. Extents are not judged: a pattern has none.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache

from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.spans import Span
from bbrewrite.core.terms import Apply, At, Cast, Component, Loaded, Map, Number, Pair, Reduce, Size, Stored, Term

type Kinds = frozenset[str]
type Choice = tuple[str, ...]  # one way to use an operator: the kinds of its operands, and that of its result

_BY_RANK = ("scalar", "vector", "matrix")
_PLURAL = {"matrix": "matrices", "vector": "vectors", "scalar": "scalars", "list": "lists", "pair": "pairs"}
BLOCKS: Kinds = frozenset(_BY_RANK)
SCALAR: Kinds = frozenset({"scalar"})
LISTS: Kinds = frozenset({"list"})
PAIRS: Kinds = frozenset({"pair"})
ANY: Kinds = BLOCKS | LISTS | PAIRS


@dataclass(frozen=True)
class Use:
    """An operand where it is written: `parent` is the term whose operand at `position` it is."""

    parent: Term
    position: int
    span: Span

    @property
    def operand(self) -> Term:
        return self.parent.children[self.position]


SPREADS: tuple[Choice, ...] = tuple((kind, wide) for wide in _BY_RANK for kind in dict.fromkeys(("scalar", wide)))
"""The ways to spread a value over a block."""


def choices(term: Apply, table: OperatorTable) -> tuple[Choice, ...]:
    """The ways to use an operator."""
    operator = table.operators[term.operator]
    if operator.is_elementwise:
        return _elementwise_choices(operator.arity)
    return tuple(
        tuple(_BY_RANK[len(letters)] for letters in (*signature.operands, signature.result))
        for signature in operator.signatures
    )


@cache
def _elementwise_choices(arity: int) -> tuple[Choice, ...]:
    return tuple(
        (*kinds, max(kinds, key=_BY_RANK.index))
        for kinds in itertools.product(_BY_RANK, repeat=arity)
        if len({kind for kind in kinds if kind != "scalar"}) <= 1
    )


def given(term: Term, table: OperatorTable) -> Kinds:
    """The kinds that a term can have whatever its operands are."""
    match term:
        case Number() | Size():
            return SCALAR
        case Map() | Stored():
            return LISTS
        case Pair():
            return PAIRS | LISTS
        case Apply():
            return frozenset(choice[-1] for choice in choices(term, table))
        case Reduce() | Loaded() | Cast():
            return BLOCKS
        case _:
            return ANY


def taken(parent: Term, position: int, table: OperatorTable) -> Kinds:
    """The kinds that a term takes as an operand whatever the others are."""
    match parent:
        case At() | Loaded():
            return LISTS
        case Component():
            return PAIRS | LISTS
        case Apply():
            return frozenset(choice[position] for choice in choices(parent, table))
        case Reduce() | Cast() | Stored():
            return BLOCKS
        case _:
            return ANY


def in_words(kinds: Kinds) -> str:
    """`a matrix or a vector`."""
    return " or ".join(f"a {kind}" for kind in _PLURAL if kind in kinds)


def named(kinds: Kinds, plural: bool = False) -> str:
    """`matrix or vector`; a block is any of matrix, vector and scalar, a value anything."""
    ending = "s" if plural else ""
    if kinds == ANY:
        return f"value{ending}"
    words = [_PLURAL[kind] if plural else kind for kind in _PLURAL if kind in kinds]
    if kinds >= BLOCKS:
        words = [f"block{ending}", *words[3:]]
    return " or ".join(words)
