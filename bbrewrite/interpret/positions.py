"""Where a block lies: the element positions of indices and addresses at a point of the loops.

A point of the loops gives every loop index a number: of a block for a blocked index, of an element for a point
index. Reading takes elements outside a tensor as 0, since only a `where` that does not select them can stand
above such a read in a program that was checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bbrewrite.core.addresses import Address
from bbrewrite.core.indices import IndexTable
from bbrewrite.interpret.scalar_functions import Array

type Point = Mapping[str, int]


class Positions:
    """Element positions for one index table, whose extents are all known."""

    def __init__(self, indices: IndexTable) -> None:
        self._extents = {index.name: _known(indices, index.name) for index in indices}
        self._blocks = {index.name: index.block for index in indices}

    def extent(self, index: str) -> int:
        return self._extents[index]

    def block(self, index: str) -> int | None:
        """The block size, None for a point index."""
        return self._blocks[index]

    def trips(self, index: str) -> int:
        """How often a loop over the index runs."""
        block = self._blocks[index]
        extent = self._extents[index]
        return extent if block is None else -(-extent // block)

    def bounds(self, index: str, point: Point) -> tuple[int, int]:
        """First and past-the-last element of the index's current block (or its single position)."""
        block = self._blocks[index]
        number = point[index]
        return (
            (number, number + 1) if block is None else (number * block, min((number + 1) * block, self.extent(index)))
        )

    def length(self, index: str, point: Point) -> int:
        start, stop = self.bounds(index, point)
        return stop - start

    def values(self, index: str, point: Point) -> Array:
        """The positions as a vector for a blocked index, as a scalar for a point index."""
        start, stop = self.bounds(index, point)
        return np.asarray(start) if self._blocks[index] is None else np.arange(start, stop)

    def address(self, address: Address, point: Point) -> Array:
        """The addressed positions, with one dimension for each blocked index of the address in order."""
        blocked = [name for name, _ in address.indices if self._blocks[name] is not None]
        total = np.asarray(address.offset + sum(c * self._extents[name] for name, c in address.sizes))
        for name, coefficient in address.indices:
            part = coefficient * self.values(name, point)
            if name in blocked:
                axis = blocked.index(name)
                part = part.reshape([-1 if k == axis else 1 for k in range(len(blocked))])
            total = total + part
        return total // address.divisor

    def load(self, array: Array, addresses: Sequence[Address], point: Point) -> Array:
        """The block of an array that the addresses give; 0 for elements outside it."""
        plain = [name for address in addresses if (name := address.plain_index) is not None]
        if len(plain) == len(addresses):
            bounds = (self.bounds(name, point) for name in plain)
            if all(stop <= extent for (_, stop), extent in zip(bounds, array.shape, strict=True)):
                return array[self.window(plain, point)]
        parts = [self.address(address, point) for address in addresses]
        rank = sum(part.ndim for part in parts)
        placed: list[Array] = []
        before = 0
        for part in parts:
            placed.append(part.reshape((1,) * before + part.shape + (1,) * (rank - before - part.ndim)))
            before += part.ndim
        return gather(array, placed)

    def window(self, indices: Sequence[str], point: Point) -> tuple[slice | int, ...]:
        """The part of an array along these indices that belongs to the current blocks."""
        return tuple(
            point[index] if self._blocks[index] is None else slice(*self.bounds(index, point)) for index in indices
        )


def gather(array: Array, positions: Sequence[Array]) -> Array:
    """`array[positions]` for broadcast positions, one for each dimension; 0 for elements outside the array."""
    inside = np.asarray(True)
    for position, extent in zip(positions, array.shape, strict=True):
        inside = inside & (position >= 0) & (position < extent)
    shape = np.broadcast_shapes(*(position.shape for position in positions))
    if array.size == 0:
        return np.zeros(shape, array.dtype)
    clipped = tuple(np.clip(p, 0, extent - 1) for p, extent in zip(positions, array.shape, strict=True))
    found = np.asarray(array[clipped])
    return found if inside.all() else np.where(inside, found, array.dtype.type(0))


def _known(indices: IndexTable, name: str) -> int:
    extent = indices.extent(name)
    if extent is None:
        raise ValueError(f"the extent of {name} is not known")
    return extent
