"""Calls a compiled program with NumPy arrays.

Dense arrays are passed as they are, without a copy; calls do not hold Python's global lock, and several threads may
call one object at the same time. How the library was made is not known here.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bbrewrite.runtime.signature import Argument, Signature

type Array = npt.NDArray[Any]


@dataclass(frozen=True)
class _Layout:
    """What depends on extents alone: the shape of every argument by name, and sets of buffers that no call is using."""

    shapes: Mapping[str, tuple[int, ...]]
    idle: list[list[Array]]


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
        # Of the latest call's extents only: programs are called with the same ones again, or with ever new ones.
        self._layouts: dict[tuple[int, ...], _Layout] = {}

    def run(
        self,
        arrays: Mapping[str, Array],
        extents: Mapping[str, int],
        threads: int,
        out: Mapping[str, Array] | None = None,
    ) -> dict[str, Array]:
        """The outputs by name.

        `arrays` gives inputs and weights, `extents` the extents of root indices, `out` arrays to write outputs to:
        dense, of the output's type and shape, and apart from all inputs. Raises ValueError where one does not fit.
        """
        if threads < 1:
            raise ValueError(f"the number of threads must be at least 1, not {threads}")
        try:
            sizes = tuple([extents[index] for index in self.signature.extents])
        except KeyError as missing:
            raise ValueError(f"the extent of {missing.args[0]} was not given") from None
        layout = self._layouts.get(sizes) or self._laid_out(sizes, extents)
        passed: list[Array] = []
        for argument in self.signature.inputs:
            if argument.name not in arrays:
                raise ValueError(f"no array was given for {argument.name}")
            passed.append(_dense(argument, arrays[argument.name], layout.shapes[argument.name]))
        outputs = {
            argument.name: _output(argument, layout.shapes[argument.name], out, passed)
            for argument in self.signature.outputs
        }
        buffers = self._borrow(layout)
        # The order of arguments is inputs, outputs, buffers.
        pointers = [array.__array_interface__["data"][0] for array in (*passed, *outputs.values(), *buffers)]
        try:
            self._function(*pointers, *sizes, threads)
        finally:
            layout.idle.append(buffers)
        return outputs

    def _laid_out(self, sizes: tuple[int, ...], extents: Mapping[str, int]) -> _Layout:
        shapes = {
            argument.name: tuple(extents[axis] for axis in argument.axes) for argument in self.signature.arguments
        }
        layout = _Layout(shapes, [])
        self._layouts = {sizes: layout}
        return layout

    def _borrow(self, layout: _Layout) -> list[Array]:
        """A set of buffers that no other call uses meanwhile."""
        try:
            return layout.idle.pop()
        except IndexError:
            return [np.empty(layout.shapes[buffer.name], buffer.numpy_type) for buffer in self.signature.buffers]


def _dense(argument: Argument, array: Array, shape: tuple[int, ...]) -> Array:
    if array.shape != shape:
        raise ValueError(f"{argument.name} has shape {array.shape}, but {shape} is needed")
    if array.dtype != argument.numpy_type:
        needed = argument.numpy_type
        raise ValueError(f"{argument.name} is of type {array.dtype}, but {needed} is needed: convert it with astype")
    return array if array.flags.c_contiguous else np.ascontiguousarray(array).reshape(shape)


def _output(
    argument: Argument, shape: tuple[int, ...], out: Mapping[str, Array] | None, inputs: Sequence[Array]
) -> Array:
    kind = argument.numpy_type
    array = out.get(argument.name) if out else None
    if array is None:
        return np.empty(shape, kind)
    if array.shape != shape or array.dtype != kind or not array.flags.c_contiguous or not array.flags.writeable:
        raise ValueError(f"the array for {argument.name} must be dense and writable, {kind} of shape {shape}")
    if any(np.may_share_memory(array, given) for given in inputs):
        raise ValueError(f"the array for {argument.name} overlaps an input")
    return array


def default_threads() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
