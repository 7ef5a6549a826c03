"""A GPU for tests: the driver's calls on memory of this process, with kernels run by the emulator.

It stands for the module of cuda-python. What is called is noted, in order; freed memory is no longer there.
"""

from __future__ import annotations

import ctypes
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import numpy as np

from bbrewrite.emulate.encode import encode
from bbrewrite.emulate.machine import Argument, launch
from bbrewrite.emulate.ptx import parse_ptx
from bbrewrite.runtime.dlpack import DlpackTensor
from bbrewrite.runtime.gpu import Device


class EmulatedDriver:
    """See the module text. `calls` are the names of functions with the stream that they were given."""

    CUfunction_attribute = SimpleNamespace(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=0)
    CUdevice_attribute = SimpleNamespace(
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR=8, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR=0
    )

    def __init__(self) -> None:
        self.memory: dict[int, np.ndarray] = {}
        self.calls: list[tuple[str, int]] = []
        self.context_depth = 0

    def device(self) -> Device:
        """The GPU as `find_gpu` finds it."""
        return Device(self, "emulated GPU", "sm_80", "context")

    def hold(self, array: np.ndarray) -> int:
        """Makes an array memory of the GPU."""
        self.memory[array.ctypes.data] = array
        return array.ctypes.data

    def cuInit(self, flags: int) -> tuple[int]:
        return (0,)

    def cuDeviceGetCount(self) -> tuple[int, int]:
        return (0, 1)

    def cuDeviceGet(self, number: int) -> tuple[int, int]:
        return (0, number)

    def cuDeviceGetName(self, length: int, number: int) -> tuple[int, bytes]:
        return (0, b"emulated GPU".ljust(length, b"\0"))

    def cuDeviceGetAttribute(self, attribute: int, number: int) -> tuple[int, int]:
        return (0, attribute)

    def cuDevicePrimaryCtxRetain(self, number: int) -> tuple[int, str]:
        return (0, "context")

    def cuCtxSetCurrent(self, context: str) -> tuple[int]:
        return self.cuCtxPushCurrent(context)

    def cuCtxPushCurrent(self, context: str) -> tuple[int]:
        assert context == "context"
        self.context_depth += 1
        return (0,)

    def cuCtxPopCurrent(self) -> tuple[int, str]:
        self.context_depth -= 1
        return (0, "context")

    def cuModuleLoadData(self, ptx: bytes) -> tuple[int, Any]:
        return (0, parse_ptx(ptx.rstrip(b"\0").decode()))

    def cuModuleGetFunction(self, module: Any, name: bytes) -> tuple[int, Any]:
        return (0, encode(module[name.decode()]))

    def cuFuncSetAttribute(self, *_: Any) -> tuple[int]:
        return (0,)

    def cuMemAlloc(self, size: int) -> tuple[int, int]:
        return self.cuMemAllocAsync(size, 0)

    def cuMemFree(self, pointer: int) -> tuple[int]:
        return self.cuMemFreeAsync(pointer, 0)

    def cuMemAllocAsync(self, size: int, stream: int) -> tuple[int, int]:
        self.calls.append(("alloc", stream))
        # Memory that nobody has written holds what was there before.
        return (0, self.hold(np.full(size, 0xFF, np.uint8)))

    def cuMemFreeAsync(self, pointer: int, stream: int) -> tuple[int]:
        self.calls.append(("free", stream))
        del self.memory[pointer]
        return (0,)

    def cuStreamSynchronize(self, stream: int) -> tuple[int]:
        self.calls.append(("synchronise", stream))
        return (0,)

    def cuMemcpyHtoDAsync(self, to: int, source: int, size: int, stream: int) -> tuple[int]:
        self.calls.append(("copy", stream))
        ctypes.memmove(to, source, size)
        return (0,)

    def cuMemcpyHtoD(self, to: int, source: int, size: int) -> tuple[int]:
        ctypes.memmove(to, source, size)
        return (0,)

    def cuMemcpyDtoH(self, to: int, source: int, size: int) -> tuple[int]:
        ctypes.memmove(to, source, size)
        return (0,)

    def cuEventCreate(self, flags: int) -> tuple[int, SimpleNamespace]:
        return (0, SimpleNamespace(time=None))

    def cuEventRecord(self, event: SimpleNamespace, stream: int) -> tuple[int]:
        event.time = perf_counter()
        return (0,)

    def cuEventSynchronize(self, event: SimpleNamespace) -> tuple[int]:
        assert event.time is not None
        return (0,)

    def cuEventElapsedTime(self, start: SimpleNamespace, end: SimpleNamespace) -> tuple[int, float]:
        return (0, 1000 * (end.time - start.time))

    def cuLaunchKernel(self, function: Any, *rest: Any) -> tuple[int]:
        blocks, _, _, threads, _, _, shared, stream, (values, types), _ = rest
        assert self.context_depth == 1
        self.calls.append(("launch", stream))
        arguments: list[Argument] = []
        for value, kind in zip(values, types, strict=True):
            arguments.append(self._from(value) if kind is ctypes.c_void_p else int(value))
        report = launch(function, blocks, threads, shared, arguments)
        assert report.ok, report.faults
        return (0,)

    def _from(self, pointer: int) -> np.ndarray:
        """The memory that begins at an address: a tensor may be a part of another."""
        for start, array in self.memory.items():
            if start <= pointer < start + max(1, array.nbytes):
                return array.reshape(-1).view(np.uint8)[pointer - start :]
        raise AssertionError(f"no memory at {pointer:x}")


class DeviceArray:
    """An array of a library whose memory the GPU holds. `streams` are those that consumers told it."""

    def __init__(
        self, driver: EmulatedDriver, array: np.ndarray, device: tuple[int, int] = (2, 0), code: int | None = None
    ) -> None:
        base = array if array.base is None else array.base
        driver.hold(base if isinstance(base, np.ndarray) else array)
        self.array = array
        self.streams: list[int] = []
        self._device = device
        codes = {"f": 2, "i": 0, "b": 6}
        kind = codes.get(array.dtype.kind, 4) if code is None else code
        self._shape = (ctypes.c_int64 * max(1, array.ndim))(*array.shape)
        self._strides = (ctypes.c_int64 * max(1, array.ndim))(*(s // array.itemsize for s in array.strides))
        tensor = DlpackTensor()
        # Where the array begins is told in two parts.
        tensor.data, tensor.byte_offset = array.ctypes.data - 8, 8
        (tensor.device_type, tensor.device_id), tensor.ndim = device, array.ndim
        tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes = kind, 8 * array.itemsize, 1
        tensor.shape = ctypes.cast(self._shape, ctypes.POINTER(ctypes.c_int64))
        tensor.strides = ctypes.cast(self._strides, ctypes.POINTER(ctypes.c_int64))
        self._tensor = tensor

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device

    def __dlpack__(self, stream: int | None = None) -> Any:
        assert stream != 0, "the protocol has no stream 0"
        if stream is not None:
            self.streams.append(stream)
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return make(ctypes.addressof(self._tensor), b"dltensor", None)
