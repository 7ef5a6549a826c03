"""Blocks that span a whole extent: the loops over them have a single iteration, and are left out.

What stood in loops one after another then stands in one list of statements, whose steps over the same rows can be
merged. A list of such blocks is a single block. The kernel means the same.
"""

from __future__ import annotations

from dataclasses import replace

from bbrewrite.core.terms import Local, Term, rewrite_bottom_up
from bbrewrite.plan.kernel import Barrier, Kernel, Let, LocalBlock, Loop, Merge, Statement, Store, Update


def without_single_iterations(kernel: Kernel) -> Kernel:
    """The kernel without loops over indices along which its blocks are whole."""
    return replace(kernel, body=_spliced(kernel.body, kernel.whole)) if kernel.whole else kernel


def _spliced(body: tuple[Statement, ...], whole: frozenset[str]) -> tuple[Statement, ...]:
    def block(target: LocalBlock) -> LocalBlock:
        return replace(target, list_indices=_outside(target.list_indices, whole))

    def leaf(term: Term) -> Term:
        return Local(term.name, _outside(term.indices, whole)) if isinstance(term, Local) else term

    result: list[Statement] = []
    for statement in body:
        match statement:
            case Loop(index, inner):
                inside = _spliced(inner, whole)
                result += inside if index in whole else (replace(statement, body=inside),)
            case Let(target, expression):
                result.append(Let(block(target), rewrite_bottom_up(expression, leaf)))
            case Update(target, expression):
                result.append(Update(block(target), rewrite_bottom_up(expression, leaf)))
            case Store(tensor, expression):
                result.append(Store(tensor, rewrite_bottom_up(expression, leaf)))
            case Merge(target, source, monoid):
                result.append(Merge(block(target), block(source), monoid))
            case Barrier():
                result.append(statement)
    return tuple(result)


def _outside(indices: tuple[str, ...], whole: frozenset[str]) -> tuple[str, ...]:
    return tuple(index for index in indices if index not in whole)
