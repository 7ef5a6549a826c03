"""How many warps a kernel's blocks of threads have, and where its tiles lie in their shared memory.

The sizes are those of the templates in `bb_blocks.cuh` and `bb_reduce.cuh`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from bbrewrite.codegen.cuda.steps import Assign, GpuKernel, Scratch, Tile, walk_steps
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.programs import Tensor

STRIP_ROWS = 16
GROUP_COLUMNS = 8
WARP_SIZE = 32
MOST_WARPS = 4
_UNIT = 16


@dataclass(frozen=True)
class SharedMemory:
    """The first byte of each tile, ring, list and scratch memory by name, and how many bytes there are in all."""

    offsets: Mapping[str, int]
    size_bytes: int


def list_length(indices: IndexTable, index: str) -> int:
    """How many blocks, or positions, of an index a list has room for: those of the extents that were planned for."""
    extent = indices.extent(index) or 1
    return -(-extent // (indices[index].block or 1))


def warps_of(kernel: GpuKernel, indices: IndexTable) -> int:
    """One warp for each strip of rows of the largest block, as far as that goes."""
    targets = [step.target for step in walk_steps(kernel.steps) if isinstance(step, Assign)]
    axes = [block.type.axes for block in kernel.blocks]
    axes += [tuple(filter(indices.is_blocked, t.indices)) for t in targets if isinstance(t, Tensor)]
    rows = max((indices[own[0]].block or 1 for own in axes if own), default=1)
    return max(1, min(MOST_WARPS, -(-rows // STRIP_ROWS)))


def lay_out(kernel: GpuKernel, indices: IndexTable, warps: int) -> SharedMemory:
    """Tiles one after another, in the order of their making."""
    offsets: dict[str, int] = {}
    size = 0
    for item in (*kernel.tiles, *kernel.scratch):
        offsets[item.name] = size
        if isinstance(item, Tile):
            size += _tile_bytes(item, indices, item.name in kernel.wide_tiles)
        else:
            size += _scratch_bytes(item, indices, warps)
    return SharedMemory(offsets, size)


def _tile_bytes(tile: Tile, indices: IndexTable, is_wide: bool) -> int:
    """The bytes of a tile with all its copies, or of a list of tiles: whole fragments, and padding in each row."""
    spans = [_rounded(indices[axis].block or 1) for axis in tile.axes]
    count = tile.copies * prod(list_length(indices, index) for index in tile.list_indices)
    padding = row_padding(tile.element.size_bytes, is_wide) if len(spans) == 2 else 0
    return count * prod(spans[:-1]) * (spans[-1] * tile.element.size_bytes + padding)


def row_padding(element_bytes: int, is_wide: bool) -> int:
    """The bytes that each row of a matrix has beyond its entries, so that what a warp reads lies in different banks."""
    return max(16, GROUP_COLUMNS * element_bytes) if is_wide else 16


def _scratch_bytes(scratch: Scratch, indices: IndexTable, warps: int) -> int:
    columns = (indices[scratch.columns].block or 1) if scratch.columns else 1
    return warps * _rounded(columns) * scratch.element.size_bytes


def _rounded(span: int) -> int:
    return -(-span // _UNIT) * _UNIT
