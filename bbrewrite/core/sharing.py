"""Names for terms that stand in several places, so that a program heavy with sharing can be read.

Only block terms are named: a list is a definition's business. Nothing is said here of where a value is computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bbrewrite.core.terms import Apply, Local, Reduce, Term, walk

# A term of fewer operators is as readable as its name.
LEAST_OPERATORS = 2


@dataclass(frozen=True)
class SharedTerms:
    """`terms` with named parts as `Local`s; `lets` are these parts, earlier names inside them, `names` in full."""

    terms: tuple[Term, ...]
    lets: Mapping[str, Term]
    names: Mapping[str, Term]


def share_terms(terms: Sequence[Term], taken: set[str]) -> SharedTerms:
    """Names every part of at least LEAST_OPERATORS operators that stands in several places."""
    uses: dict[Term, int] = {}
    order: list[Term] = []
    for term in terms:
        for part in walk(term):
            if part not in uses:
                uses[part] = 0
                order.append(part)
                for child in part.children:
                    uses[child] += 1
    sizes: dict[Term, int] = {}
    lets: dict[str, Term] = {}
    names: dict[str, Term] = {}
    changed: dict[Term, Term] = {}
    number = 0
    for part in order:
        is_operator = isinstance(part, Apply | Reduce)
        sizes[part] = sum(sizes[child] for child in part.children) + (1 if is_operator else 0)
        rewritten = part.with_children(tuple(changed[child] for child in part.children))
        if is_operator and uses[part] > 1 and sizes[part] >= LEAST_OPERATORS:
            number += 1
            while f"t{number}" in taken:
                number += 1
            lets[f"t{number}"], names[f"t{number}"] = rewritten, part
            rewritten = Local(f"t{number}")
            sizes[part] = 0
        changed[part] = rewritten
    return SharedTerms(tuple(changed[term] for term in terms), lets, names)
