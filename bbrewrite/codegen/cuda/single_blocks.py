"""Loops that have one iteration for the extents that were planned for, taken away.

An index whose extent fits into one block has that one block always: its loops become their bodies, and lists over it
single blocks. The kernel then holds for extents up to the block size, which its launcher checks.
"""

from __future__ import annotations

from dataclasses import replace

from bbrewrite.core.indices import IndexTable
from bbrewrite.core.terms import Local, Term, rewrite_bottom_up
from bbrewrite.plan.kernel import Kernel, Let, LocalBlock, Loop, Statement, Store, Update


def without_single_loops(kernel: Kernel) -> tuple[Kernel, tuple[str, ...]]:
    """The kernel without such loops, and their indices."""
    grid = frozenset(kernel.grid)
    single = tuple(i.name for i in kernel.indices if i.name not in grid and _is_single(kernel.indices, i.name))
    return replace(kernel, body=_spliced(kernel.body, frozenset(single))), single


def _is_single(indices: IndexTable, name: str) -> bool:
    extent, block = indices.extent(name), indices[name].block
    return extent is not None and block is not None and extent <= block


def _spliced(body: tuple[Statement, ...], single: frozenset[str]) -> tuple[Statement, ...]:
    result: list[Statement] = []
    for statement in body:
        match statement:
            case Loop(index, inner):
                spliced = _spliced(inner, single)
                result += spliced if index in single else (replace(statement, body=spliced),)
            case Let(target, expression):
                result.append(Let(_block(target, single), _term(expression, single)))
            case Update(target, expression):
                result.append(Update(_block(target, single), _term(expression, single)))
            case Store(tensor, expression):
                result.append(Store(tensor, _term(expression, single)))
            case _:
                result.append(statement)
    return tuple(result)


def _block(block: LocalBlock, single: frozenset[str]) -> LocalBlock:
    return replace(block, list_indices=tuple(index for index in block.list_indices if index not in single))


def _term(term: Term, single: frozenset[str]) -> Term:
    def change(node: Term) -> Term:
        if not isinstance(node, Local):
            return node
        return Local(node.name, tuple(index for index in node.indices if index not in single))

    return rewrite_bottom_up(term, change)
