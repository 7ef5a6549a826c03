"""Runs generated CUDA programs on a GPU: loads PTX by the driver, launches kernels, times them by events.

The driver's interface is that of cuda-python, which the extra `gpu` installs. Arrays on the device are used where they
lie, on the stream that they belong to; NumPy arrays are copied there and back. Without a GPU only the order of the
driver's calls can be tested.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bbrewrite.codegen.cuda.launches import Launches, Memory

type Array = npt.NDArray[Any]

HOW_TO_RUN_ON_A_GPU = (
    "Install the driver's interface with pip install 'bbrewrite[gpu]' on a machine with an NVIDIA GPU, or run with"
    " --emulate, which needs no GPU."
)


class GpuMissing(Exception):
    """No GPU that can be used; the message says what was missing."""


class GpuFailed(Exception):
    """The driver reported an error."""


@dataclass(frozen=True)
class Device:
    """A GPU: `driver` is the module of cuda-python, `architecture` such as `sm_90`, `number` the driver's.

    `context` is the one that all libraries of a process share.
    """

    driver: Any
    name: str
    architecture: str
    context: Any = None
    number: int = 0

    @property
    def target_name(self) -> str:
        """The newest target that programs are planned for and that this GPU can run."""
        return "sm_90" if int(self.architecture.removeprefix("sm_")) >= 90 else "sm_80"

    @contextmanager
    def current(self) -> Generator[None]:
        """The context in which calls of this thread act on this GPU."""
        self.call("cuCtxPushCurrent", self.context)
        try:
            yield
        finally:
            self.call("cuCtxPopCurrent")

    def call(self, function: str, *arguments: Any) -> Any:
        """Calls the driver. Raises GpuFailed where it reports an error."""
        status, *results = getattr(self.driver, function)(*arguments)
        if int(status) != 0:
            raise GpuFailed(f"{function}: {status}")
        return results[0] if len(results) == 1 else tuple(results)


def find_gpu() -> Device:
    """The first GPU. Raises GpuMissing."""
    try:
        driver: Any = importlib.import_module("cuda.bindings.driver")
    except ImportError:
        raise GpuMissing(f"cuda-python is not installed. {HOW_TO_RUN_ON_A_GPU}") from None
    try:
        status = int(driver.cuInit(0)[0])
        count = int(driver.cuDeviceGetCount()[1]) if status == 0 else 0
    except RuntimeError:  # without the driver's library
        status, count = -1, 0
    if status != 0 or count == 0:
        raise GpuMissing(f"No GPU was found. {HOW_TO_RUN_ON_A_GPU}")
    device = Device(driver, "", "")
    number = device.call("cuDeviceGet", 0)
    context = device.call("cuDevicePrimaryCtxRetain", number)
    device.call("cuCtxSetCurrent", context)
    attribute = driver.CUdevice_attribute
    major, minor = (
        device.call(
            "cuDeviceGetAttribute", getattr(attribute, f"CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_{part}"), number
        )
        for part in ("MAJOR", "MINOR")
    )
    name = device.call("cuDeviceGetName", 256, number).decode().rstrip("\0")
    return Device(driver, name, f"sm_{major}{minor}", context)


class GpuProgram:
    """A program loaded on a device."""

    def __init__(self, device: Device, launches: Launches, ptx: Path) -> None:
        self._device = device
        self._launches = launches
        # The driver translates PTX for the GPU at hand, whatever it is.
        module = device.call("cuModuleLoadData", ptx.read_bytes() + b"\0")
        attribute = device.driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self._functions: list[Any] = []
        for kernel in launches.kernels:
            function = device.call("cuModuleGetFunction", module, kernel.name.encode())
            device.call("cuFuncSetAttribute", function, attribute, kernel.shared_bytes)
            self._functions.append(function)

    def launch(self, places: Mapping[str, int], extents: Mapping[str, int], stream: int = 0) -> None:
        """Launches every kernel on arrays at these addresses of the device, buffers among them."""
        extents = self._with_shares(extents)
        places = {**places, **self._parts(places, extents)}
        for kernel in self._launches.kernels:
            kernel.check(extents)
        for kernel, function in zip(self._launches.kernels, self._functions, strict=True):
            values = (*(places[name] for name in kernel.tensors), *(extents[root] for root in kernel.extents))
            types = (*(ctypes.c_void_p for _ in kernel.tensors), *(ctypes.c_int64 for _ in kernel.extents))
            blocks = kernel.blocks(extents)
            if blocks == 0:
                continue
            shape = (blocks, 1, 1, kernel.threads, 1, 1)
            self._device.call("cuLaunchKernel", function, *shape, kernel.shared_bytes, stream, (values, types), 0)

    def call(self, places: Mapping[str, int], extents: Mapping[str, int], stream: int) -> None:
        """Launches every kernel on inputs and outputs at these addresses. Memory for buffers is taken and given back in
        the order of the stream, so that calls on several streams, or of several threads, do not meet in it.
        """
        extents = self._with_shares(extents)
        owned: dict[str, int] = {}
        try:
            for buffer in self._launches.buffers:
                owned[buffer.name] = int(self._device.call("cuMemAllocAsync", buffer.size_bytes(extents), stream))
            self.launch({**places, **owned}, extents, stream)
        finally:
            for memory in owned.values():
                self._device.call("cuMemFreeAsync", memory, stream)

    def run(
        self, arrays: Mapping[str, Array], extents: Mapping[str, int], most_runs: int = 1
    ) -> tuple[dict[str, Array], tuple[float, ...]]:
        """The outputs as NumPy arrays, and the milliseconds of each run by the device's own clock."""
        extents = self._with_shares(extents)
        owned: list[Any] = []
        places: dict[str, int] = {}
        try:
            for memory in (*self._launches.inputs, *self._launches.buffers, *self._launches.outputs):
                places[memory.name] = self._placed(memory, arrays.get(memory.name), extents, owned)
            self.launch(places, extents)
            times = tuple(self._timed(places, extents) for _ in range(most_runs))
            outputs: dict[str, Array] = {}
            for memory in self._launches.outputs:
                outputs[memory.name] = np.empty(memory.shape(extents), memory.element.numpy_type)
                host = outputs[memory.name]
                self._device.call("cuMemcpyDtoH", host.ctypes.data, places[memory.name], host.nbytes)
            return outputs, times
        finally:
            for memory in owned:
                self._device.call("cuMemFree", memory)

    def _with_shares(self, extents: Mapping[str, int]) -> dict[str, int]:
        return {**extents, **dict(self._launches.shares)}

    def _parts(self, places: Mapping[str, int], extents: Mapping[str, int]) -> dict[str, int]:
        """The addresses of tensors that lie in the memory of others."""
        return {part.name: places[part.whole.name] + part.offset(extents) for part in self._launches.parts}

    def _timed(self, places: Mapping[str, int], extents: Mapping[str, int]) -> float:
        start, end = self._device.call("cuEventCreate", 0), self._device.call("cuEventCreate", 0)
        self._device.call("cuEventRecord", start, 0)
        self.launch(places, extents)
        self._device.call("cuEventRecord", end, 0)
        self._device.call("cuEventSynchronize", end)
        return float(self._device.call("cuEventElapsedTime", start, end))

    def _placed(self, memory: Memory, given: Array | None, extents: Mapping[str, int], owned: list[Any]) -> int:
        """The address of new memory on the device, with the values of an array where one is given."""
        place = self._device.call("cuMemAlloc", memory.size_bytes(extents))
        owned.append(place)
        if given is not None:
            host: Array = np.ascontiguousarray(given, memory.element.numpy_type)
            self._device.call("cuMemcpyHtoD", place, host.ctypes.data, host.nbytes)
        return int(place)
