"""Which indices are loops over blocks and which are loops over single positions.

A block has at most two axes, so at most two blocked indices may stand in one reference or on the left of one
definition. The others become point loops: first those that act as batch indices (on every factor of a sum of
products and on its result), last those that products of matrices need, and of equals the leftmost. An index that only
shifts an address (a convolution's taps) is a point loop too, and so is one that no loop runs over. Sizes are starting
values, the user's stay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from bbrewrite.core.arrays import ArrayDefinition, ArrayExpression, ArrayProgram, Element, Fold
from bbrewrite.core.indices import Index, IndexTable
from bbrewrite.core.spans import Span
from bbrewrite.lang.diagnostics import Diagnostic, InputError
from bbrewrite.lower.array_expressions import bound_indices, children, walk

DEFAULT_BLOCK = 64
_MAXIMAL_AXES = 2


def choose_blocking(program: ArrayProgram) -> IndexTable:
    """The index table with a block size, or None for a point loop, on every index.

    The program holds no library calls. InputError where the user's block sizes leave a reference more than two
    blocked axes.
    """
    loops = {name for d in program.definitions for name in (*d.tensor.indices, *_bound(d.expression))}
    taps = {name for d in program.definitions for name in _taps(d.expression)}
    points = {i.name for i in program.indices if i.block is None and (i.name in taps or i.name not in loops)}
    batch_likeness = _batch_likeness(program)
    for names, span in _references(program.definitions):
        blocked = [name for name in dict.fromkeys(names) if name not in points]
        while len(blocked) > _MAXIMAL_AXES:
            free = [name for name in blocked if not _is_fixed(program, name)]
            if not free:
                raise InputError([_too_many_blocks(blocked, span)])
            chosen = max(free, key=lambda name: batch_likeness[name])  # the leftmost of equals
            blocked.remove(chosen)
            points.add(chosen)
    return IndexTable.of([_with_block(program.indices, index, index.name in points) for index in program.indices])


def _with_block(indices: IndexTable, index: Index, is_point: bool) -> Index:
    if is_point or index.block is not None:
        return replace(index, block_is_fixed=index.block is not None)
    extent = indices.extent(index.name)
    return replace(index, block=DEFAULT_BLOCK if extent is None else max(1, min(DEFAULT_BLOCK, extent)))


def _is_fixed(program: ArrayProgram, name: str) -> bool:
    return program.indices[name].block is not None


def _references(definitions: tuple[ArrayDefinition, ...]) -> Iterator[tuple[tuple[str, ...], Span | None]]:
    for definition in definitions:
        yield definition.tensor.indices, definition.span
        for expression in walk(definition.expression):
            if isinstance(expression, Element):
                yield _names(expression), expression.span or definition.span


def _names(element: Element) -> tuple[str, ...]:
    return tuple(name for address in element.addresses for name, _ in address.indices)


def _bound(expression: ArrayExpression) -> Iterator[str]:
    for inner in walk(expression):
        yield from bound_indices(inner)


def _taps(expression: ArrayExpression, bound: frozenset[str] = frozenset()) -> Iterator[str]:
    """Reduced indices that stand in one address beside an index that is not reduced."""
    if isinstance(expression, Element):
        for address in expression.addresses:
            if not address.index_names <= bound:
                yield from sorted(address.index_names & bound)
    inner = bound | frozenset(expression.indices) if isinstance(expression, Fold) else bound
    for child in children(expression):
        yield from _taps(child, inner)


def _batch_likeness(program: ArrayProgram) -> Counter[str]:
    """For each index: sums over several references where it is on all of them and stays, less those that need it.

    A product of matrices needs one row index, one column index and one that is reduced: of the indices that stand on
    the same references the longest, or the last of those.
    """
    score: Counter[str] = Counter()
    for definition in program.definitions:
        for fold in walk(definition.expression):
            if not isinstance(fold, Fold):
                continue
            reads = list(dict.fromkeys(_names(e) for e in walk(fold.body) if isinstance(e, Element) and e.addresses))
            if len(reads) < 2:
                continue
            alike: dict[tuple[bool, ...], list[str]] = {}
            for name in dict.fromkeys(name for names in reads for name in names):
                alike.setdefault((name in fold.indices, *(name in names for names in reads)), []).append(name)
            score.update(alike.pop((False, *(True for _ in reads)), []))
            score.subtract(max(reversed(names), key=partial(_length, program.indices)) for names in alike.values())
    return score


def _length(indices: IndexTable, name: str) -> int:
    """The extent of an index, 0 where it is open."""
    return indices.extent(name) or 0


def _too_many_blocks(names: list[str], span: Span | None) -> Diagnostic:
    shown = ", ".join(names)
    return Diagnostic(
        "too-many-blocked-axes",
        f"{shown} all have block sizes, but a block has at most two axes",
        span,
        "remove one of them from the `block` line",
    )
