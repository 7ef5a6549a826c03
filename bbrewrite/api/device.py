"""A compiled program as a function of arrays that lie on a GPU: no copies, launched on the caller's stream.

PyTorch, CuPy and other libraries lend their arrays by DLPack; results are made by the library of the first array, or go
to memory that the caller gives.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from bbrewrite.api.binding import bind, extents_of, memory_given, named_weights
from bbrewrite.api.cuda_form import CudaForm, cuda_form
from bbrewrite.api.program import Runner
from bbrewrite.api.record import CompileRequest
from bbrewrite.assumed_facts import first_exception
from bbrewrite.core.elements import Element
from bbrewrite.runtime.gpu import Device, GpuProgram, find_gpu
from bbrewrite.runtime.lent import DEVICE, MANAGED, LentArray, borrow
from bbrewrite.runtime.signature import Argument

type Array = npt.NDArray[Any]

# What the libraries that make results call their types.
_TYPE_NAMES = {
    Element.F16: "float16",
    Element.BF16: "bfloat16",
    Element.F32: "float32",
    Element.F64: "float64",
    Element.I32: "int32",
    Element.BOOL: "bool",
}


class DeviceProgram:
    """A compiled program: call it with its inputs and weights, in the order of their declaration or by name.

    Arrays must lie on the program's GPU, dense and of the declared types; numbers may be given for scalars. Extents
    come from the arrays; where others than those that were planned for do not suit the kernels, the program is planned
    for these, once. Kernels are launched on `stream` (an address, or a stream of PyTorch or CuPy), by default on the
    current one of the arrays' library, and the call does not wait for them. The result is an array of that library, or
    a tuple of arrays; `out` gives the memory to write to.

    Raises TypeError for a wrong number of arrays, ValueError where an array does not fit or contradicts an `assume`,
    and InputError where extents make a read leave its tensor or differ where a read needs them equal.
    """

    def __init__(self, request: CompileRequest, tf32: bool, weights: Mapping[str, Any] | None = None) -> None:
        self._request = request
        self._tf32 = tf32
        self._weights = weights or {}
        self._device = find_gpu()
        self._planned = cuda_form(request, self._device.target_name, tf32)
        self._forms: list[tuple[CudaForm, GpuProgram]] = [(self._planned, self._loaded(self._planned))]
        signature = self._planned.record.signature
        self._inputs = tuple(argument for argument in signature.inputs if argument.name not in self._weights)
        self._outputs = signature.outputs
        self._turn = threading.Lock()

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The names of inputs and weights, in the order in which they are passed."""
        return tuple(argument.name for argument in self._inputs)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """The names of the outputs, in the order in which they are returned."""
        return tuple(argument.name for argument in self._outputs)

    def with_weights(self, **weights: Any) -> DeviceProgram:
        """The program for these weights, which further calls leave out; all are needed."""
        named_weights(self._planned.record.signature.inputs, weights)
        return DeviceProgram(self._request, self._tf32, weights)

    def __repr__(self) -> str:
        return f"<bbrewrite program on {self._device.name} ({', '.join(self.inputs)}) -> ({', '.join(self.outputs)})>"

    def __call__(self, *arrays: Any, out: Any = None, stream: Any = None, **named: Any) -> Any:
        given = {**bind(self._inputs, arrays, named), **self._weights}
        library = _library_of(given.values())
        launched_on = _stream_of(stream, library)
        with self._device.current(), _Numbers(self._device, launched_on) as numbers:
            lent: dict[str, LentArray] = {}
            for argument in self._planned.record.signature.inputs:
                lent[argument.name] = self._input(argument, given[argument.name], numbers, launched_on)
            shapes = {name: array.shape for name, array in lent.items()}
            extents = extents_of(self._planned.record.signature.inputs, shapes, self._planned.record.extents)
            if self._planned.record.extents_matter:
                from bbrewrite.api.stages import check_extents

                check_extents(self._request, extents, self._planned.record.extents)
            results = self._results(out, extents, library)
            for argument, result in zip(self._outputs, results, strict=True):
                shape = tuple(extents[axis] for axis in argument.axes)
                lent[argument.name] = self._memory(argument, result, shape, lent, launched_on)
            places = {name: array.pointer for name, array in lent.items()}
            form, program = self._form_for(extents)
            if form.launches.loops_over_nothing(extents):
                self._on_host(places, extents, launched_on)
            else:
                program.call(places, extents, launched_on)
        return results[0] if len(results) == 1 else tuple(results)

    def _loaded(self, form: CudaForm) -> GpuProgram:
        with self._device.current():
            return GpuProgram(self._device, form.launches, form.ptx)

    def _form_for(self, extents: Mapping[str, int]) -> tuple[CudaForm, GpuProgram]:
        """Kernels that hold for these extents, planned now where no others do."""
        with self._turn:
            for form, program in self._forms:
                if form.launches.holds_for(extents):
                    return form, program
            sizes = {**self._request.sizes, **extents}
            form = cuda_form(self._request._replace(sizes=sizes), self._device.target_name, self._tf32)
            self._forms.append((form, self._loaded(form)))
            return self._forms[-1]

    # Arrays

    def _input(self, argument: Argument, value: Any, numbers: _Numbers, stream: int) -> LentArray:
        if not argument.axes and isinstance(value, bool | int | float | np.generic):
            return numbers.placed(argument, value)
        array = self._checked(argument, value, stream)
        for fact in argument.facts:
            position = first_exception(fact, self._copied(argument, array, stream))
            if position is not None:
                raise ValueError(f"the program assumes {fact}({argument.name}), but not so at {list(position)}")
        return array

    def _checked(self, argument: Argument, value: Any, stream: int) -> LentArray:
        """An array that kernels can use where it lies."""
        name, needed = argument.name, argument.element
        if not hasattr(value, "__dlpack__"):
            raise ValueError(f"{name} must be an array on a GPU, not {type(value).__name__}")
        kind, number = value.__dlpack_device__()
        if kind not in (DEVICE, MANAGED):
            raise ValueError(f"{name} is not on a GPU: move it there, or compile for the target cpp")
        if number != self._device.number:
            raise ValueError(f"{name} is on GPU {number}, and the program runs on GPU {self._device.number}")
        array = borrow(value, stream)
        if array.element is not needed:
            found = array.element or "a type that programs do not have"
            raise ValueError(f"{name} is of {found}, but {needed} is needed: convert it first")
        if not array.is_dense:
            raise ValueError(f"{name} has gaps between its rows, or is transposed: make it contiguous first")
        return array

    def _memory(
        self, argument: Argument, value: Any, shape: tuple[int, ...], others: Mapping[str, LentArray], stream: int
    ) -> LentArray:
        array = self._checked(argument, value, stream)
        if array.shape != shape:
            raise ValueError(f"the array for {argument.name} has shape {array.shape}, but {shape} is needed")
        for name, other in others.items():
            if _overlap(array, other):
                raise ValueError(f"the array for {argument.name} overlaps that of {name}")
        return array

    def _results(self, out: Any, extents: Mapping[str, int], library: str) -> Sequence[Any]:
        if out is not None:
            return memory_given(out, self.outputs)
        made: list[Any] = []
        for argument in self._outputs:
            shape = tuple(extents[axis] for axis in argument.axes)
            name = _TYPE_NAMES[argument.element]
            module: Any = sys.modules.get(library)
            if library == "torch":
                made.append(module.empty(shape, dtype=getattr(module, name), device=f"cuda:{self._device.number}"))
            elif library == "cupy" and argument.element is not Element.BF16:
                made.append(module.empty(shape, dtype=name))
            else:
                raise TypeError(f"`out` is needed: no array of {name} on the GPU can be made here for {argument.name}")
        return made

    # Over nothing

    @cached_property
    def _unfused(self) -> Runner:
        from bbrewrite.api.stages import plan_for_numpy

        return plan_for_numpy(self._request._replace(fused=False))[1]

    def _on_host(self, places: Mapping[str, int], extents: Mapping[str, int], stream: int) -> None:
        """Reductions over nothing mean what they mean unfused; there is next to nothing to copy."""
        arrays = {
            argument.name: self._host_array(argument, places[argument.name], extents, stream)
            for argument in self._planned.record.signature.inputs
        }
        found = self._unfused.run(arrays, extents, self._request.threads, None)
        for argument in self._outputs:
            host = np.ascontiguousarray(found[argument.name], argument.numpy_type)
            if host.nbytes:
                self._device.call("cuMemcpyHtoD", places[argument.name], host.ctypes.data, host.nbytes)

    def _copied(self, argument: Argument, array: LentArray, stream: int) -> Array:
        host = np.empty(array.shape, argument.numpy_type)
        self._copy_to_host(host, array.pointer, stream)
        return host

    def _host_array(self, argument: Argument, place: int, extents: Mapping[str, int], stream: int) -> Array:
        host = np.empty([extents[axis] for axis in argument.axes], argument.numpy_type)
        self._copy_to_host(host, place, stream)
        return host

    def _copy_to_host(self, host: Array, place: int, stream: int) -> None:
        self._device.call("cuStreamSynchronize", stream)
        if host.nbytes:
            self._device.call("cuMemcpyDtoH", host.ctypes.data, place, host.nbytes)


class _Numbers:
    """Memory on the device for numbers that were given as Python's; it is given back in the order of the stream."""

    def __init__(self, device: Device, stream: int) -> None:
        self._device = device
        self._stream = stream
        self._owned: list[int] = []

    def __enter__(self) -> _Numbers:
        return self

    def __exit__(self, *_: object) -> None:
        for memory in self._owned:
            self._device.call("cuMemFreeAsync", memory, self._stream)

    def placed(self, argument: Argument, value: Any) -> LentArray:
        host = np.asarray(value, argument.numpy_type)
        memory = int(self._device.call("cuMemAllocAsync", host.nbytes, self._stream))
        self._owned.append(memory)
        # The driver takes the bytes before it returns: they lie in ordinary memory.
        self._device.call("cuMemcpyHtoDAsync", memory, host.ctypes.data, host.nbytes, self._stream)
        return LentArray(memory, (), True, argument.element, DEVICE, self._device.number, host)


def _library_of(values: Any) -> str:
    """The library of the first array: its package's name."""
    arrays = (value for value in values if hasattr(value, "__dlpack__"))
    return next((type(array).__module__.partition(".")[0] for array in arrays), "")


def _stream_of(stream: Any, library: str) -> int:
    """The driver's handle of a stream; by default of the current one of a library, 0 where it is not known."""
    if stream is None:
        module: Any = sys.modules.get(library)
        if library == "torch":
            return int(module.cuda.current_stream().cuda_stream)
        if library == "cupy":
            return int(module.cuda.get_current_stream().ptr)
        return 0
    if isinstance(stream, int):
        return stream
    for attribute in ("cuda_stream", "ptr"):
        if hasattr(stream, attribute):
            return int(getattr(stream, attribute))
    raise TypeError(f"a {type(stream).__name__} is no stream: give its address, or a stream of PyTorch or CuPy")


def _overlap(one: LentArray, other: LentArray) -> bool:
    def end(array: LentArray) -> int:
        assert array.element is not None
        return array.pointer + prod(array.shape) * array.element.size_bytes

    return one.pointer < end(other) and other.pointer < end(one)
