"""The least and the greatest number in each block of an array, for conditions on what tensors hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from bbrewrite.core.terms import Read

type Array = npt.NDArray[Any]


def extreme_of_read(
    read: Read, greatest: bool, array: Array, blocks: Mapping[str, int], numbers: Mapping[str, Any]
) -> Any:
    """The extreme of a read's blocks, for the blocks of indices in `numbers`; along other indices, of all of them.

    The read is at plain indices; `numbers` are arrays that broadcast, and so is the result.
    """
    over = np.maximum if greatest else np.minimum
    found: Array = array.astype(np.int64)
    chosen: list[Any] = []
    for axis, address in enumerate(read.addresses):
        name = address.plain_index
        assert name is not None
        starts = range(0, array.shape[axis], blocks[name] if name in numbers else array.shape[axis])
        found = over.reduceat(found, starts, axis=axis)
        chosen.append(numbers.get(name, 0))
    return found[tuple(chosen)]
