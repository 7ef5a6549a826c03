"""Loads that need no copy: a local block that only holds a block of a tensor, used straight from global memory.

A copy pays where a loop inside uses the block again and again, so a load is dropped only when all its uses stand in
the same list of statements. This is an optimisation; a kernel means the same without it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from bbrewrite.codegen.access import is_row_contiguous
from bbrewrite.core.terms import Local, Read, Term, rewrite_bottom_up, walk
from bbrewrite.plan.kernel import Barrier, Kernel, Let, Loop, Merge, Statement, Store, Update, walk_statements


def without_views(kernel: Kernel) -> Kernel:
    """The kernel with such loads replaced by reads where they are used."""
    assigned = Counter(s.target.name for s in walk_statements(kernel.body) if isinstance(s, Let | Update))
    return replace(kernel, body=_in_list(kernel, kernel.body, assigned))


def _in_list(kernel: Kernel, body: tuple[Statement, ...], assigned: Counter[str]) -> tuple[Statement, ...]:
    used_inside = {
        leaf.name
        for statement in body
        if isinstance(statement, Loop)
        for inner in walk_statements(statement.body)
        if isinstance(inner, Let | Update | Store)
        for leaf in walk(inner.expression)
        if isinstance(leaf, Local)
    }
    views: dict[Term, Read] = {}
    result: list[Statement] = []
    for statement in body:
        match statement:
            case Loop(_, inner):
                result.append(replace(statement, body=_in_list(kernel, inner, assigned)))
            case Let(target, Read() as read) if (
                assigned[target.name] == 1
                and target.name not in used_inside
                and _is_view(kernel, target.list_indices, read)
            ):
                views[Local(target.name)] = read
            case Let(target, expression):
                result.append(Let(target, _substituted(expression, views)))
            case Update(target, expression):
                result.append(Update(target, _substituted(expression, views)))
            case Store(tensor, expression):
                result.append(Store(tensor, _substituted(expression, views)))
            case Merge() | Barrier():
                result.append(statement)
    return tuple(result)


def _is_view(kernel: Kernel, list_indices: tuple[str, ...], read: Read) -> bool:
    tensor = next(tensor for tensor in (*kernel.reads, *kernel.writes) if tensor.name == read.tensor)
    return (
        not list_indices
        and tensor not in kernel.writes
        and tensor.element is tensor.element.compute_type
        and tensor.element.is_float
        and is_row_contiguous(read, tensor, kernel.indices)
    )


def _substituted(term: Term, views: dict[Term, Read]) -> Term:
    return rewrite_bottom_up(term, lambda node: views.get(node, node))
