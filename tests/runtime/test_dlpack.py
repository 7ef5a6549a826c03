"""Arrays of other libraries: the same memory, of every type, from the first version of the protocol on."""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from bbrewrite.runtime.dlpack import DlpackTensor, from_dlpack


class Exporter:
    """An array as a library shows it that knows the protocol's first version only."""

    def __init__(self, array: np.ndarray, device: int = 1) -> None:
        self.array = array
        self.device = device

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self.device, 0)

    def __dlpack__(self) -> Any:
        return self.array.__dlpack__()


class Managed(ctypes.Structure):
    """`DLManagedTensor`; without a deleter nothing happens when a consumer is done."""

    _fields_ = (("tensor", DlpackTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


# A consumer may look at it for as long as its array lives.
LENT: list[Managed] = []


class BfloatExporter(Exporter):
    """Numbers of two bytes shown as bfloat16, which NumPy's own exporter does not know; some of its readers do."""

    def __init__(self, array: np.ndarray, dense: bool, code: int = 4) -> None:
        super().__init__(array)
        self.code = code
        shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        strides = (ctypes.c_int64 * array.ndim)(*(step // 2 for step in array.strides))
        self.managed = Managed()
        LENT.append(self.managed)
        tensor = self.managed.tensor
        tensor.data = array.ctypes.data - 4
        tensor.byte_offset = 4
        tensor.device_type, tensor.ndim = 1, array.ndim
        tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes = code, 16, 1
        tensor.shape = ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64))
        tensor.strides = None if dense else ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64))

    def __dlpack__(self, **options: Any) -> Any:
        if options:
            raise TypeError("only the first version")
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return make(ctypes.addressof(self.managed), b"dltensor", None)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16, np.int32, np.bool_])
def test_memory_is_shared(kind: Any) -> None:
    array = np.arange(24).reshape(4, 6).astype(kind)
    for shown in (array, array[:, ::2], array.T):
        found = from_dlpack(Exporter(shown))
        assert found.dtype == shown.dtype
        assert found.ctypes.data == shown.ctypes.data
        np.testing.assert_array_equal(found, shown)


def test_memory_can_be_written() -> None:
    array = np.zeros((2, 3), np.float32)
    from_dlpack(Exporter(array), for_writing=True)[:, 1] = 7
    np.testing.assert_array_equal(array, [[0, 7, 0], [0, 7, 0]])


@pytest.mark.parametrize("dense", [True, False])
def test_memory_of_bfloat16_can_be_written(dense: bool) -> None:
    array = np.zeros((2, 4), ml_dtypes.bfloat16)
    shown = array if dense else array[:, ::2]
    found = from_dlpack(BfloatExporter(shown, dense), for_writing=True)
    assert found.dtype == ml_dtypes.bfloat16
    found[1] = 7
    np.testing.assert_array_equal(shown, np.array([[0], [7]]) * np.ones(shown.shape[1]))


@pytest.mark.parametrize("dense", [True, False])
def test_bfloat16(dense: bool) -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4).astype(ml_dtypes.bfloat16)
    shown = array if dense else array[:, ::2]
    found = from_dlpack(BfloatExporter(shown, dense))
    assert found.dtype == ml_dtypes.bfloat16
    assert found.ctypes.data == array.ctypes.data
    np.testing.assert_array_equal(found, shown)


def test_what_is_not_taken() -> None:
    with pytest.raises(ValueError, match="another device"):
        from_dlpack(Exporter(np.zeros(2), device=2))
    with pytest.raises(ValueError, match="type 9 of 16 bits"):
        from_dlpack(BfloatExporter(np.zeros(2, ml_dtypes.bfloat16), True, code=9))
