"""The share of blocks that masks let loops pass over when arrays are given: documents, and whatever tensors hold.

What follows from positions and extents alone is in a plan's cost already (`Plan.skipped_share`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from bbrewrite.plan.kernel import Kernel, KernelProgram, Loop, Statement
from bbrewrite.plan.masks.block_extremes import Array
from bbrewrite.plan.masks.visited_share import NarrowedLoop, visited_share


def skipped_blocks(program: KernelProgram, extents: Mapping[str, int], arrays: Mapping[str, Array]) -> float | None:
    """The share of the blocks of narrowed loops that are not visited; None where no mask depends on the arrays.

    `extents` are those of root indices.
    """
    if 0 in extents.values():
        return None
    known = {**arrays, **{part.tensor.name: arrays[part.whole.name][part.positions] for part in program.slices}}
    visited, in_all = 0.0, 0
    depends = False
    for kernel in program.kernels:
        indices = kernel.indices.with_extents(extents)
        every = {index.name: indices.extent(index.name) or 0 for index in indices}
        blocks = {index.name: index.block or 1 for index in indices}
        for loops in _narrowed_loops(kernel):
            *_, loop = loops
            count = prod(-(-every[name] // blocks[name]) for name in {*loop.scope, loop.index})
            visited += count * visited_share(loops, blocks, every, arrays=known)
            in_all += count
            depends = depends or any(read.tensor in known for read in loop.bounds.reads)
    return 1 - visited / in_all if depends else None


def _narrowed_loops(kernel: Kernel) -> Iterator[tuple[NarrowedLoop, ...]]:
    """Every narrowed loop, after those around it."""

    def inside(
        body: tuple[Statement, ...], scope: frozenset[str], around: tuple[NarrowedLoop, ...]
    ) -> Iterator[tuple[NarrowedLoop, ...]]:
        for statement in body:
            if isinstance(statement, Loop):
                loops = around
                if statement.bounds is not None:
                    loops = (*around, NarrowedLoop(statement.index, statement.bounds, scope))
                    yield loops
                yield from inside(statement.body, scope | {statement.index}, loops)

    return inside(kernel.body, frozenset(kernel.grid), ())
