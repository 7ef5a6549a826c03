"""Arrays of other libraries as NumPy arrays over the same memory, by the DLPack protocol.

NumPy reads every type itself, bfloat16 where ml_dtypes has told it how; elsewhere a capsule of that type is read here,
by the layout that the protocol fixes (dlpack.h, `DLManagedTensor`). Nothing is copied.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from bbrewrite.core.elements import Element

type Array = npt.NDArray[Any]

_CPU, _PINNED = 1, 3  # device types whose memory this process reads
_BFLOAT = 4  # the type code


class _DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class DlpackTensor(ctypes.Structure):
    """`DLTensor`, the first member of `DLManagedTensor`."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Memory:
    """Memory as NumPy's array interface tells it; `owner` keeps it alive."""

    def __init__(
        self, owner: object, address: int, shape: tuple[int, ...], strides: tuple[int, ...], kind: str
    ) -> None:
        self._owner = owner
        self.__array_interface__ = {
            "version": 3,
            "typestr": kind,
            "data": (address, False),
            "shape": shape,
            "strides": strides,
        }


def from_dlpack(value: Any, for_writing: bool = False) -> Array:
    """A NumPy array over the memory of an object with `__dlpack__`.

    The protocol's first version does not tell whether memory may be written, and NumPy then takes it as read-only;
    `for_writing` trusts the caller instead. Raises ValueError where the memory is not on the CPU, or of no known type.
    """
    if value.__dlpack_device__()[0] not in (_CPU, _PINNED):
        raise ValueError("the array is on another device; this program runs on the CPU")
    try:
        array = np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError):
        return _from_bfloat(value.__dlpack__())
    if for_writing and not array.flags.writeable:
        address = array.__array_interface__["data"][0]
        memory = _Memory(array, address, array.shape, array.strides, array.dtype.str)
        return np.asarray(memory).view(array.dtype)  # of types that are not its own NumPy tells the size alone
    return array


def tensor_of(capsule: object) -> DlpackTensor:
    """What a capsule of the protocol's first version holds."""
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return ctypes.cast(pointer_of(capsule, b"dltensor"), ctypes.POINTER(DlpackTensor)).contents


def _from_bfloat(capsule: object) -> Array:
    tensor = tensor_of(capsule)
    if (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes) != (_BFLOAT, 16, 1):
        raise ValueError(f"arrays of DLPack's type {tensor.dtype.code} of {tensor.dtype.bits} bits are not taken")
    shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
    if tensor.strides:
        strides = tuple(2 * tensor.strides[axis] for axis in range(tensor.ndim))
    else:
        strides = tuple(2 * math.prod(shape[axis + 1 :]) for axis in range(tensor.ndim))
    address = (tensor.data or 0) + tensor.byte_offset
    return np.asarray(_Memory(capsule, address, shape, strides, "<u2")).view(Element.BF16.numpy_type)
