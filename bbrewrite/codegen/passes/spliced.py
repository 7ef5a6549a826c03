"""Loops that have one iteration taken away: what stood in them stands in the list around them.

Lists over their indices become single blocks. Which loops these are is for others to say.
"""

from __future__ import annotations

from dataclasses import replace

from bbrewrite.core.terms import Local, Term, rewrite_bottom_up
from bbrewrite.plan.kernel import Barrier, Let, LocalBlock, Loop, Merge, Statement, Store, Update


def without_loops(body: tuple[Statement, ...], over: frozenset[str]) -> tuple[Statement, ...]:
    """The statements without loops over these indices, each of which has one block."""

    def outside(indices: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(index for index in indices if index not in over)

    def block(target: LocalBlock) -> LocalBlock:
        return replace(target, list_indices=outside(target.list_indices))

    def leaf(term: Term) -> Term:
        return Local(term.name, outside(term.indices)) if isinstance(term, Local) else term

    result: list[Statement] = []
    for statement in body:
        match statement:
            case Loop(index, inner):
                inside = without_loops(inner, over)
                result += inside if index in over else (replace(statement, body=inside),)
            case Let(target, expression):
                result.append(Let(block(target), rewrite_bottom_up(expression, leaf)))
            case Update(target, expression, combines):
                result.append(Update(block(target), rewrite_bottom_up(expression, leaf), combines))
            case Store(tensor, expression):
                result.append(Store(tensor, rewrite_bottom_up(expression, leaf)))
            case Merge(target, source, monoid):
                result.append(Merge(block(target), block(source), monoid))
            case Barrier():
                result.append(statement)
    return tuple(result)
