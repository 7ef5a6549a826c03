"""Values of block terms that compute in local memory: leaves, block operators and casts.

The executors of block programs and of kernels share this file; loops, lists and statements are theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from bbrewrite.core.elements import Element
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Apply, Cast, IndexValue, Number, Read, Size, Term
from bbrewrite.core.types import BlockType, Typing
from bbrewrite.interpret.block_operators import apply_operator
from bbrewrite.interpret.positions import Point, Positions
from bbrewrite.interpret.scalar_functions import Array, compute_dtype, convert


class BlockTerms:
    """Evaluates one term whose operands are already values.

    `memory` holds the arrays in global memory by tensor name, in storage types; it may grow meanwhile.
    `locals` gives the types of `Local` leaves.
    """

    def __init__(
        self,
        table: OperatorTable,
        indices: IndexTable,
        tensors: Mapping[str, Tensor],
        memory: Mapping[str, Array],
        locals: Mapping[str, BlockType] | None = None,
    ) -> None:
        self.positions = Positions(indices)
        self.typing = Typing(table, indices, tensors, locals)
        self._table = table
        self._tensors = tensors
        self._memory = memory

    def value(self, term: Term, point: Point, operand: Callable[[Term], Array]) -> Array:
        """The block at a point of the loops; `operand` evaluates children."""
        match term:
            case Number(number):
                return np.asarray(number)
            case Size(index):
                return np.asarray(self.positions.extent(index))
            case IndexValue(index):
                return self.positions.values(index, point)
            case Read(tensor, addresses):
                block = np.asarray(self.positions.load(self._memory[tensor], addresses, point))
                return block.astype(compute_dtype(self._tensors[tensor].element), copy=False)
            case Cast(element, value):
                return convert(operand(value), Element(element))
            case Apply(name, operands, indices):
                values = [operand(child) for child in operands]
                elements = [self.typing.block(child).element for child in operands]
                lengths = tuple(self.positions.length(index, point) for index in indices)
                return apply_operator(self._table, self._table.operators[name], values, elements, lengths)
            case _:
                raise AssertionError(term)

    def shape(self, axes: tuple[str, ...], point: Point) -> tuple[int, ...]:
        """The shape of a block along these axes."""
        return tuple(self.positions.length(axis, point) for axis in axes)


def store(array: Array, window: tuple[slice | int, ...], block: Array) -> None:
    """Writes a block into an array, rounded to its storage type; a scalar fills the window.

    The window has one dimension for each axis of the block, in its order.
    """
    assert block.ndim in (0, sum(isinstance(part, slice) for part in window))
    array[window] = block.astype(array.dtype)


def storage_of(tensor: Tensor, positions: Positions) -> Array:
    """A new array for a tensor."""
    return np.zeros([positions.extent(index) for index in tensor.indices], tensor.element.numpy_type)
