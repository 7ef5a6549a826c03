"""Uses views (`plan/nests/views.py`) straight from global memory, where their rows are dense: their loads are left out.

This is an optimisation; a kernel means the same without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bbrewrite.codegen.access import is_row_contiguous
from bbrewrite.core.terms import Local, Read, Term, rewrite_bottom_up
from bbrewrite.plan.kernel import Barrier, Kernel, Let, Loop, Merge, Statement, Store, Update
from bbrewrite.plan.nests.views import views


def without_views(kernel: Kernel) -> Kernel:
    """The kernel with such loads replaced by reads where they are used."""
    tensors = {tensor.name: tensor for tensor in (*kernel.reads, *kernel.writes)}
    written = {tensor.name for tensor in kernel.writes}
    found = {
        name: read
        for name, read in views(kernel.body, tensors).items()
        if read.tensor not in written and is_row_contiguous(read, tensors[read.tensor], kernel.indices)
    }
    return replace(kernel, body=with_reads(kernel.body, found)) if found else kernel


def with_reads(body: tuple[Statement, ...], found: Mapping[str, Read]) -> tuple[Statement, ...]:
    """The statements with these local blocks read where they are used, and not made."""

    def leaf(term: Term) -> Term:
        return found.get(term.name, term) if isinstance(term, Local) else term

    result: list[Statement] = []
    for statement in body:
        match statement:
            case Loop(_, inner):
                inside = with_reads(inner, found)
                result += (replace(statement, body=inside),) if inside else ()
            case Let(target) if target.name in found:
                pass
            case Let(target, expression):
                result.append(Let(target, rewrite_bottom_up(expression, leaf)))
            case Update(target, expression, combines):
                result.append(Update(target, rewrite_bottom_up(expression, leaf), combines))
            case Store(tensor, expression):
                result.append(Store(tensor, rewrite_bottom_up(expression, leaf)))
            case Merge() | Barrier():
                result.append(statement)
    return tuple(result)
