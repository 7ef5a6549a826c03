"""Calls a compiled program with NumPy arrays.

Dense arrays are passed as they are, without a copy; calls do not hold Python's global lock, and several threads may
call one object at the same time. How the library was made is not known here.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bbrewrite.limits import MOST_THREADS, checked_threads
from bbrewrite.runtime.signature import Argument, Signature

if TYPE_CHECKING:
    import numpy.typing as npt

type Array = npt.NDArray[Any]

_CACHE_LINE = 64
_MEMORY = ctypes.c_char * 0  # at whose address an array begins


class _Place(NamedTuple):
    """What an argument must be for given extents, found once for them: a small program takes no longer than that."""

    argument: Argument
    shape: tuple[int, ...]
    numpy_type: np.dtype[np.generic]
    is_packed: bool


class _Layout(NamedTuple):
    """What depends on extents alone, and sets of buffers' memory that no call is using."""

    inputs: tuple[_Place, ...]
    outputs: tuple[_Place, ...]
    buffers: tuple[_Place, ...]
    idle: list[list[Array]]


class PackedWeight(NamedTuple):
    """A weight as `CompiledProgram.prepare` packed it, of use where its shape is the same."""

    memory: Array
    shape: tuple[int, ...]


class CompiledProgram:
    """A program in machine code. Memory for its buffers is kept from one call to the next."""

    def __init__(self, signature: Signature, library: Path) -> None:
        self.signature = signature
        self.library = library
        function = ctypes.CDLL(str(library))[signature.entry]
        function.restype = None
        function.argtypes = (
            [ctypes.c_void_p] * len(signature.arguments) + [ctypes.c_int64] * len(signature.extents) + [ctypes.c_int]
        )
        self._function = function
        self._preparations = {
            argument.name: self._preparation(argument.preparation)
            for argument in signature.inputs
            if argument.preparation
        }
        # Of the latest call's extents only: programs are called with the same ones again, or with ever new ones.
        self._layouts: dict[tuple[int, ...], _Layout] = {}

    def _preparation(self, name: str) -> Callable[..., int]:
        function = ctypes.CDLL(str(self.library))[name]
        function.restype = ctypes.c_size_t
        function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int]
        return function

    def prepare(self, arrays: Mapping[str, Array], threads: int) -> dict[str, Array | PackedWeight]:
        """Arrays as calls of `run` take them: weights that the program wants packed are packed, once for all calls.

        Raises ValueError where such an array is not of the weight's type and rank.
        """
        threads = checked_threads(threads)
        ready: dict[str, Array | PackedWeight] = dict(arrays)
        for argument in self.signature.inputs:
            if not argument.preparation or argument.name not in arrays:
                continue
            array = arrays[argument.name]
            if array.ndim != len(argument.axes):
                raise ValueError(
                    f"{argument.name}[{', '.join(argument.axes)}] was given an array of shape {array.shape}"
                )
            source = _dense(argument, array, array.shape, argument.numpy_type)
            pack = self._preparations[argument.name]
            memory = _aligned_memory(pack(source.ctypes.data, None, *array.shape, threads))
            pack(source.ctypes.data, memory.ctypes.data, *array.shape, threads)
            ready[argument.name] = PackedWeight(memory, array.shape)
        return ready

    def run(
        self,
        arrays: Mapping[str, Array | PackedWeight],
        extents: Mapping[str, int],
        threads: int,
        out: Mapping[str, Array] | None = None,
    ) -> dict[str, Array]:
        """The outputs by name.

        `arrays` gives inputs and weights, those that the program wants packed as `prepare` made them; `extents` the
        extents of root indices, `out` arrays to write outputs to: dense, of the output's type and shape, and apart from
        all inputs. Raises ValueError where one does not fit, and for fewer than 1 or more than 1024 threads.
        """
        threads = checked_threads(threads)
        try:
            sizes = tuple([extents[index] for index in self.signature.extents])
        except KeyError as missing:
            raise ValueError(f"the extent of {missing.args[0]} was not given") from None
        layout = self._layouts.get(sizes) or self._laid_out(sizes, extents)
        # Memory is held until the call ends, since what was no dense array is passed as a copy.
        held: list[Array] = []
        pointers: list[int] = []
        for place in layout.inputs:
            array = _input(place, arrays)
            held.append(array)
            pointers.append(_address(array))
        outputs: dict[str, Array] = {}
        for place in layout.outputs:
            name = place.argument.name
            array = (
                np.empty(place.shape, place.numpy_type)
                if out is None
                else output_memory(place.argument, place.shape, out, held)
            )
            outputs[name] = array
            pointers.append(_address(array))
        buffers = self._borrow(layout)
        # The order of arguments is inputs, outputs, buffers.
        for array in buffers:
            pointers.append(_address(array))
        try:
            self._function(*pointers, *sizes, threads)
        finally:
            layout.idle.append(buffers)
        return outputs

    def _laid_out(self, sizes: tuple[int, ...], extents: Mapping[str, int]) -> _Layout:
        inputs, outputs, buffers = (
            tuple(_place(argument, extents) for argument in arguments)
            for arguments in (self.signature.inputs, self.signature.outputs, self.signature.buffers)
        )
        layout = _Layout(inputs, outputs, buffers, [])
        self._layouts = {sizes: layout}
        return layout

    def _borrow(self, layout: _Layout) -> list[Array]:
        """A set of buffers that no other call uses meanwhile."""
        try:
            return layout.idle.pop()
        except IndexError:
            return [np.empty(place.shape, place.numpy_type) for place in layout.buffers]


def _place(argument: Argument, extents: Mapping[str, int]) -> _Place:
    shape = tuple(extents[axis] for axis in argument.axes)
    return _Place(argument, shape, argument.numpy_type, bool(argument.preparation))


def _input(place: _Place, arrays: Mapping[str, Array | PackedWeight]) -> Array:
    """The memory that is passed for an argument."""
    name = place.argument.name
    given = arrays.get(name)
    if given is None:
        raise ValueError(f"no array was given for {name}")
    if isinstance(given, PackedWeight):
        if not place.is_packed:
            raise ValueError(f"{name} must be given as an array")
        if given.shape != place.shape:
            raise ValueError(f"{name} was packed for shape {given.shape}, but {place.shape} is needed")
        return given.memory
    if place.is_packed:
        raise ValueError(f"{name} must be given as `prepare` packs it")
    return _dense(place.argument, given, place.shape, place.numpy_type)


def _aligned_memory(size: int) -> Array:
    """Uninitialised bytes that begin at a cache line."""
    memory = np.empty(size + _CACHE_LINE, np.uint8)
    start = -memory.ctypes.data % _CACHE_LINE
    return memory[start : start + size]


def _dense(argument: Argument, array: Array, shape: tuple[int, ...], needed: np.dtype[np.generic]) -> Array:
    if array.shape != shape:
        raise ValueError(f"{argument.name} has shape {array.shape}, but {shape} is needed")
    if array.dtype != needed:
        raise ValueError(f"{argument.name} is of type {array.dtype}, but {needed} is needed: convert it with astype")
    return array if array.flags.c_contiguous else np.ascontiguousarray(array).reshape(shape)


def output_memory(
    argument: Argument, shape: tuple[int, ...], out: Mapping[str, Array] | None, inputs: Iterable[Array]
) -> Array:
    """The array to write an output to: the one given, or a new one. Raises ValueError where it does not fit."""
    kind = argument.numpy_type
    array = out.get(argument.name) if out else None
    if array is None:
        return np.empty(shape, kind)
    flags = array.flags
    if array.shape != shape or array.dtype != kind or not flags.c_contiguous or not flags.writeable:
        raise ValueError(f"the array for {argument.name} must be dense and writable, {kind} of shape {shape}")
    for given in inputs:
        if np.may_share_memory(array, given):
            raise ValueError(f"the array for {argument.name} overlaps an input")
    return array


def _address(array: Array) -> int:
    """Where an array's memory begins, found in the quickest way that there is for the array."""
    try:
        return ctypes.addressof(_MEMORY.from_buffer(array))
    except (TypeError, ValueError):  # read-only, or of a type that buffers do not have
        return array.__array_interface__["data"][0]


def default_threads() -> int:
    """The processors that this process may use, up to the most threads that may be asked for."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(count, MOST_THREADS)
