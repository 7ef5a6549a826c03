"""Compiled programs: built once, loaded, and called with NumPy arrays.

Arrays that are dense and of the right type are passed as they are. Calls do not hold Python's global lock.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bbrewrite.codegen.cpp import EntryPoint, Source, print_programs
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Tensor
from bbrewrite.plan.kernel import KernelProgram
from bbrewrite.resources import resource_directory
from bbrewrite.runtime.cache import cached_product, content_key
from bbrewrite.runtime.compiler import Compiler, find_compiler

type Array = npt.NDArray[Any]

_LIBRARY = "library.so"
_SOURCE = "kernels.cpp"


class CompiledProgram:
    """A program in machine code.

    It keeps the program's buffers between calls, so calls of one object from several threads take turns.
    """

    def __init__(self, program: KernelProgram, entry: EntryPoint, library: Path) -> None:
        self.program = program
        self.library = library
        self._entry = entry
        function = ctypes.CDLL(str(library))[entry.name]
        function.restype = None
        function.argtypes = (
            [ctypes.c_void_p] * len(entry.tensor_arguments)
            + [ctypes.c_int64] * len(entry.extent_arguments)
            + [ctypes.c_int]
        )
        self._function = function
        self._turn = threading.Lock()
        self._buffers: dict[tuple[tuple[str, int], ...], dict[str, Array]] = {}

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
        passed: dict[str, Array] = {}
        for tensor in self.program.inputs:
            if tensor.name not in arrays:
                raise ValueError(f"no array was given for {tensor.name}")
            passed[tensor.name] = _dense(tensor, np.asarray(arrays[tensor.name]), self._shape(tensor, extents))
        inputs = list(passed.values())
        outputs = {tensor.name: self._output(tensor, extents, out or {}, inputs) for tensor in self.program.outputs}
        passed |= outputs | self._buffers_for(extents)
        pointers = [passed[tensor.name].ctypes.data for tensor, _ in self._entry.tensor_arguments]
        with self._turn:
            self._function(*pointers, *(extents[index] for index, _ in self._entry.extent_arguments), threads)
        return outputs

    def _shape(self, tensor: Tensor, extents: Mapping[str, int]) -> tuple[int, ...]:
        roots = [self.program.indices.root(index) for index in tensor.indices]
        missing = [root for root in roots if root not in extents]
        if missing:
            raise ValueError(f"the extent of {missing[0]} was not given")
        return tuple(extents[root] for root in roots)

    def _output(
        self, tensor: Tensor, extents: Mapping[str, int], out: Mapping[str, Array], inputs: Sequence[Array]
    ) -> Array:
        shape, kind = self._shape(tensor, extents), tensor.element.numpy_type
        array = out.get(tensor.name)
        if array is None:
            return np.empty(shape, kind)
        if array.shape != shape or array.dtype != kind or not array.flags.c_contiguous or not array.flags.writeable:
            raise ValueError(f"the array for {tensor.name} must be dense and writable, {kind} of shape {shape}")
        if any(np.may_share_memory(array, given) for given in inputs):
            raise ValueError(f"the array for {tensor.name} overlaps an input")
        return array

    def _buffers_for(self, extents: Mapping[str, int]) -> dict[str, Array]:
        """The intermediate lists, allocated once for each combination of extents."""
        key = tuple((index, extents[index]) for index, _ in self._entry.extent_arguments)
        if key not in self._buffers:
            self._buffers = {
                key: {t.name: np.empty(self._shape(t, extents), t.element.numpy_type) for t in self.program.buffers}
            }
        return self._buffers[key]


def compile_program(
    program: KernelProgram,
    table: OperatorTable,
    compiler: Compiler | None = None,
    fallback: KernelProgram | None = None,
) -> CompiledProgram:
    """Generates, builds (or finds built) and loads a program. Raises CompilerMissing.

    `fallback` is its unfused form, which is used where an extent is 0.
    """
    return compile_programs([program], table, compiler, fallback)[0]


def compile_programs(
    programs: Sequence[KernelProgram],
    table: OperatorTable,
    compiler: Compiler | None = None,
    fallback: KernelProgram | None = None,
) -> list[CompiledProgram]:
    """The same for several programs of one meaning in one library; of any meanings where there is no fallback."""
    source = print_programs(programs, table, fallback)
    library = build(source, compiler or find_compiler())
    return [
        CompiledProgram(program, entry, library) for program, entry in zip(programs, source.entry_points, strict=True)
    ]


def build(source: Source, compiler: Compiler, extra: Sequence[str] = ()) -> Path:
    """The shared library made from generated source, from the cache where it has been built before.

    `extra` are more compiler options. Raises CompilationFailed.
    """
    headers = resource_directory("targets") / "cpp"
    texts = [path.read_text(encoding="utf-8") for path in sorted(headers.glob("*.hpp"))]
    key = content_key(compiler.fingerprint, *extra, *texts, source.text)

    def make(directory: Path) -> None:
        path = directory / _SOURCE
        path.write_text(source.text, encoding="utf-8")
        compiler.build_library(path, directory / _LIBRARY, headers, extra)

    return cached_product(key, _LIBRARY, make)


def _dense(tensor: Tensor, array: Array, shape: tuple[int, ...]) -> Array:
    if array.shape != shape:
        raise ValueError(f"{tensor.name} has shape {array.shape}, but {shape} is needed")
    return np.ascontiguousarray(array, tensor.element.numpy_type).reshape(shape)
