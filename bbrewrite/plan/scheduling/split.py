"""Kernels that all processors run together, sharing out the iterations of one loop, instead of cells of a grid.

A loop over blocks of outputs is shared out where some work does not depend on it: every processor then does that once,
and not once for each cell. A reduction is split where outputs alone offer too little parallel work: each processor has
accumulators of its own, after a barrier these are merged where they are used, and the loops that store results are
shared out too. What comes before the shared loop every processor does for itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bbrewrite.core.terms import Local, Read, Term, rewrite_bottom_up, walk
from bbrewrite.plan.kernel import Barrier, Let, LocalBlock, Loop, Merge, Statement, Store, Update, walk_statements


def split_reduction(
    body: tuple[Statement, ...], index: str, accumulators: Mapping[str, str]
) -> tuple[Statement, ...] | None:
    """The nest with its outermost loop over `index` shared out, or None where that cannot be done.

    `accumulators` gives the monoid of each accumulator of one component; states of several components cannot be
    merged block by block.
    """
    at = next((k for k, item in enumerate(body) if isinstance(item, Loop) and item.index == index), None)
    if at is None:
        return _split_inside(body, index, accumulators)
    loop = body[at]
    assert isinstance(loop, Loop)
    inside = {s.target.name: s.target for s in walk_statements(loop.body) if isinstance(s, Let | Update)}
    after = body[at + 1 :]
    used = {name for statement in walk_statements(after) for name in _names(statement)} & inside.keys()
    if not used <= accumulators.keys() or not all(_may_follow(statement) for statement in after):
        return None
    merging = _Merging({name: inside[name] for name in used}, accumulators)
    finish = merging.block(tuple(_shared_out(statement) for statement in after), ())
    return (*body[:at], replace(loop, shared=True), Barrier(), *finish, Barrier())


def share_out(body: tuple[Statement, ...], index: str) -> tuple[Statement, ...] | None:
    """The nest with all loops over an index of all outputs shared out, or None where masks narrow one of them.

    Every processor has the same share of each, so that what it keeps for its blocks is there where it is used.
    """
    loops = [s for s in walk_statements(body) if isinstance(s, Loop) and s.index == index]
    if not loops or any(loop.bounds is not None for loop in loops):
        return None

    def shared(statement: Statement) -> Statement:
        if not isinstance(statement, Loop):
            return statement
        return replace(statement, body=tuple(map(shared, statement.body)), shared=statement.index == index)

    return tuple(map(shared, body))


def repeats_work_along(body: tuple[Statement, ...], index: str) -> bool:
    """Whether a nest computes anything but numbers that is the same for all blocks of an index of its grid."""
    dependent: set[str] = set()
    statements = [s for s in walk_statements(body) if isinstance(s, Let | Update)]
    changed = True
    while changed:
        found = {s.target.name for s in statements if index in s.expression.free or not dependent.isdisjoint(_names(s))}
        changed = not found <= dependent
        dependent |= found
    return any(
        s.target.name not in dependent and s.target.type.axes and not isinstance(s.expression, Read) for s in statements
    )


def _split_inside(
    body: tuple[Statement, ...], index: str, accumulators: Mapping[str, str]
) -> tuple[Statement, ...] | None:
    """The same inside the last loop of a block: all processors go through it together."""
    if not body or not isinstance(body[-1], Loop):
        return None
    loop = body[-1]
    inner = split_reduction(loop.body, index, accumulators)
    return None if inner is None else (*body[:-1], replace(loop, body=inner))


def _may_follow(statement: Statement) -> bool:
    """Whether a statement after the reduction leaves nothing for others that only one processor would have."""
    return isinstance(statement, Let | Store) or (
        isinstance(statement, Loop)
        and all(not isinstance(inner, Update) for inner in walk_statements(statement.body))
        and all(not inner.target.list_indices for inner in walk_statements(statement.body) if isinstance(inner, Let))
    )


def _shared_out(statement: Statement) -> Statement:
    return replace(statement, shared=True) if isinstance(statement, Loop) else statement


def _names(statement: Statement) -> set[str]:
    if isinstance(statement, Let | Update | Store):
        return {term.name for term in walk(statement.expression) if isinstance(term, Local)}
    return set()


class _Merging:
    """Puts a merge of each accumulator before its first use in the block where all its list indices have loops."""

    def __init__(self, sources: Mapping[str, LocalBlock], monoids: Mapping[str, str]) -> None:
        self._sources = sources
        self._monoids = monoids

    def block(self, body: tuple[Statement, ...], loops: tuple[str, ...]) -> tuple[Statement, ...]:
        merged: list[Statement] = []
        done: set[str] = set()
        for statement in body:
            inside = (statement,) if not isinstance(statement, Loop) else tuple(walk_statements((statement,)))
            for name in sorted({name for inner in inside for name in _names(inner)} & self._sources.keys()):
                if name not in done and self._merges_in(name, loops):
                    done.add(name)
                    source = self._sources[name]
                    merged.append(Merge(LocalBlock(_merged(name), source.type), source, self._monoids[name]))
            merged.append(self._changed(statement, loops))
        return tuple(merged)

    def _merges_in(self, name: str, loops: tuple[str, ...]) -> bool:
        """Whether this is the outermost block in which one block of the accumulator is meant."""
        wanted = set(self._sources[name].list_indices)
        return wanted <= set(loops) and not wanted <= set(loops[:-1]) if wanted else not loops

    def _changed(self, statement: Statement, loops: tuple[str, ...]) -> Statement:
        match statement:
            case Loop(index, inner):
                return replace(statement, body=self.block(inner, (*loops, index)))
            case Let() | Update() | Store():
                return replace(statement, expression=self._renamed(statement.expression))
            case _:
                return statement

    def _renamed(self, expression: Term) -> Term:
        def change(node: Term) -> Term:
            return Local(_merged(node.name)) if isinstance(node, Local) and node.name in self._sources else node

        return rewrite_bottom_up(expression, change)


def _merged(name: str) -> str:
    return f"{name}_merged"
