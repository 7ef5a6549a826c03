"""Arrays of other libraries where they lie, on whatever device: a pointer, a shape and an element type, and no copy.

PyTorch, CuPy and JAX lend their arrays by DLPack. For those that this process can read, `dlpack.py` makes NumPy arrays;
here nothing is read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bbrewrite.core.elements import Element
from bbrewrite.runtime.dlpack import tensor_of

HOST, DEVICE, MANAGED = 1, 2, 13  # DLPack's numbers of device types: memory of a GPU, and such that both can use
LEGACY_STREAM = 1  # DLPack's number of a GPU's default stream
# By type code and bits: signed and unsigned integers, floats, bfloat, truth values.
_ELEMENTS = {
    (0, 32): Element.I32,
    (1, 8): Element.BOOL,
    (2, 16): Element.F16,
    (2, 32): Element.F32,
    (2, 64): Element.F64,
    (4, 16): Element.BF16,
    (6, 8): Element.BOOL,
}


@dataclass(frozen=True)
class LentArray:
    """An array of another library; `element` is None for a type that programs do not have. `owner` keeps it alive."""

    pointer: int
    shape: tuple[int, ...]
    is_dense: bool
    element: Element | None
    device_type: int
    device: int  # its number
    owner: object = field(repr=False)


def borrow(array: Any, stream: int | None = None) -> LentArray:
    """Where an array lies. Raises TypeError for an object that does not offer the protocol.

    An array on a GPU is ready for what is launched on `stream`, where one is given.
    """
    if not hasattr(array, "__dlpack__"):
        raise TypeError(f"a {type(array).__name__} cannot be used where it lies: it has no __dlpack__")
    capsule = array.__dlpack__() if stream is None else array.__dlpack__(stream=stream or LEGACY_STREAM)
    tensor = tensor_of(capsule)
    shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
    dense, distance = True, 1
    for axis in reversed(range(tensor.ndim)):
        # Without strides an array is dense; along an axis of one entry any stride is.
        dense = dense and (not tensor.strides or shape[axis] <= 1 or tensor.strides[axis] == distance)
        distance *= shape[axis]
    kind = tensor.dtype
    element = _ELEMENTS.get((kind.code, kind.bits)) if kind.lanes == 1 else None
    pointer = (tensor.data or 0) + tensor.byte_offset
    return LentArray(pointer, shape, dense or 0 in shape, element, tensor.device_type, tensor.device_id, capsule)
