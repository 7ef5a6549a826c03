"""How the blocks of a kernel lie in memory: which reads are plain, and which may leave their tensor.

A read is *placed* where every blocked axis of the tensor is addressed by a plain index: its block then starts at a
pointer and its axes have constant strides. Any other read is addressed element by element. Shared by all generators.
"""

from __future__ import annotations

from dataclasses import dataclass

from bbrewrite.core.indices import IndexTable
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Read


@dataclass(frozen=True)
class ReadShape:
    """What is known of a read without extents.

    `axes` gives for each axis of the block the tensor's axis that carries it. `guarded` are the tensor's axes whose
    address may lie outside; a plain index never does, because its extent is the axis's.
    """

    axes: tuple[int, ...]
    guarded: tuple[int, ...]
    placed: bool


def classify(read: Read, indices: IndexTable) -> ReadShape:
    """The shape of a read in a kernel with these indices."""
    axes: list[int] = []
    guarded: list[int] = []
    placed = True
    for axis, address in enumerate(read.addresses):
        blocked = [name for name, _ in address.indices if indices.is_blocked(name)]
        axes += [axis] * len(blocked)
        if address.plain_index is None:
            guarded.append(axis)
            placed = placed and not blocked
    return ReadShape(tuple(axes), tuple(guarded), placed)


def is_row_contiguous(read: Read, tensor: Tensor, indices: IndexTable) -> bool:
    """Whether the block is placed, cannot lie outside, and has its last axis on the tensor's last: rows are dense."""
    shape = classify(read, indices)
    return shape.placed and not shape.guarded and shape.axes[-1:] == (len(tensor.indices) - 1,)
