"""Loops that have one iteration for the extents that were planned for, taken away.

An index whose extent fits into one block has that one block always: its loops become their bodies, and lists over it
single blocks. The kernel then holds for extents up to the block size, which its launcher checks.
"""

from __future__ import annotations

from dataclasses import replace

from bbrewrite.codegen.passes.spliced import without_loops
from bbrewrite.core.indices import IndexTable
from bbrewrite.plan.kernel import Kernel


def without_single_loops(kernel: Kernel) -> tuple[Kernel, tuple[str, ...]]:
    """The kernel without such loops, and their indices."""
    grid = frozenset(kernel.grid)
    single = tuple(i.name for i in kernel.indices if i.name not in grid and _is_single(kernel.indices, i.name))
    return replace(kernel, body=without_loops(kernel.body, frozenset(single))), single


def _is_single(indices: IndexTable, name: str) -> bool:
    extent, block = indices.extent(name), indices[name].block
    return extent is not None and block is not None and extent <= block
