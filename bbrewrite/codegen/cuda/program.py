"""Prints kernel programs as CUDA C++: a kernel for each launch, and one host function a program that launches them.

The host function of `attention` is `bb_attention`; it takes pointers to device memory and extents, and launches on a
stream. Block sizes are constants. Tensors are dense, row-major arrays. The text needs the headers `bb*.cuh` and nothing
else of this project.
"""

from __future__ import annotations

from dataclasses import dataclass

from bbrewrite.codegen.cpp.program import EntryPoint, entry_point
from bbrewrite.codegen.cuda.kernels import print_kernel
from bbrewrite.codegen.cuda.launches import KernelLaunch, Launches, Memory, Part
from bbrewrite.codegen.functions import FunctionPrinter
from bbrewrite.codegen.names import Names
from bbrewrite.codegen.text import Writer, signature, storage_type
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Role, Tensor
from bbrewrite.plan.kernel import KernelProgram
from bbrewrite.plan.lifetimes import owned_buffers, shared_memory
from bbrewrite.plan.target import Gpu

_PRELUDE = """\
#include "bb.cuh"

#include <stdint.h>
"""
# What a launcher returns where extents do not suit the program: cudaErrorInvalidValue.
_REFUSED = "cudaErrorInvalidValue"


@dataclass(frozen=True)
class CudaSource:
    """A CUDA translation unit: its kernels and how they are launched, and the host function."""

    text: str
    launches: Launches
    entry: EntryPoint

    @property
    def kernels(self) -> tuple[KernelLaunch, ...]:
        """The launches of kernels, in order."""
        return self.launches.kernels


def print_cuda(program: KernelProgram, table: OperatorTable, gpu: Gpu) -> CudaSource:
    """The translation unit of a program. Raises BlockTypeError for an ill-typed kernel, and DoesNotFit."""
    names = Names(frozenset({"bb_blocks", "bb_inside", "bb_count", "stream", "threadIdx", "blockIdx", "warpSize"}))
    name = names.fresh(f"bb_{program.name}")
    functions = FunctionPrinter(table, names)
    kernels = tuple(print_kernel(kernel, table, functions, names, gpu) for kernel in program.kernels)
    launches = _launches(program, tuple(kernel.launch for kernel in kernels))
    entry = entry_point(program, name, frozenset({"stream", "error", *(kernel.name for kernel in launches.kernels)}))
    parts = [
        _PRELUDE,
        *functions.definitions,
        *(kernel.text for kernel in kernels),
        _launcher(launches, entry),
    ]
    return CudaSource("\n".join(parts), launches, entry)


def _launches(program: KernelProgram, kernels: tuple[KernelLaunch, ...]) -> Launches:
    def memory(tensor: Tensor) -> Memory:
        return Memory(tensor.name, tensor.element, tuple(map(program.indices.root, tensor.indices)))

    shared = [Part(name, memory(buffer)) for name, buffer in shared_memory(program).items() if name != buffer.name]
    slices = [Part(part.tensor.name, memory(part.whole), part.positions) for part in program.slices]
    return Launches(
        kernels,
        tuple(map(memory, program.inputs)),
        tuple(map(memory, owned_buffers(program))),
        tuple(map(memory, program.outputs)),
        (*shared, *slices),
        tuple(program.indices.shares.items()),
    )


def launcher_declaration(entry: EntryPoint) -> str:
    """The C++ declaration of the host function, without the semicolon."""
    taken: list[str] = []
    for tensor, name in entry.tensor_arguments:
        constant = "const " if tensor.role in (Role.INPUT, Role.WEIGHT) else ""
        taken.append(f"{constant}{storage_type(tensor.element)}* {name}")
    taken += [f"int64_t {name}" for _, name in entry.extent_arguments] + ["cudaStream_t stream"]
    return signature(f'extern "C" cudaError_t {entry.name}', taken)


def _launcher(launches: Launches, entry: EntryPoint) -> str:
    kernels = launches.kernels
    extents = {**dict(entry.extent_arguments), **{name: str(extent) for name, extent in launches.shares}}
    writer = Writer()
    writer.line("// Launches the kernels one after another on a stream; one that has nothing to write is left out.")
    with writer.block(launcher_declaration(entry)):
        looped = {root for kernel in kernels for root in kernel.looped}
        tests = [f"{name} < {1 if root in looped else 0}" for root, name in entry.extent_arguments]
        limits = {(root, limit) for kernel in kernels for root, limit in kernel.limits}
        tests += [f"{extents[root]} > {limit}" for root, limit in sorted(limits)]
        if tests:
            writer.line(f"if ({' || '.join(tests)}) return {_REFUSED};")
        writer.line("cudaError_t error = cudaSuccess;")
        for kernel in kernels:
            blocks = " * ".join(f"bb_blocks({extents[root]}, {block})" for root, block in kernel.grid) or "1"
            passed = [entry.pointers[name] for name in kernel.tensors] + [extents[name] for name in kernel.extents]
            attribute = "cudaFuncAttributeMaxDynamicSharedMemorySize"
            writer.line(f"error = cudaFuncSetAttribute({kernel.name}, {attribute}, {kernel.shared_bytes});")
            writer.line("if (error != cudaSuccess) return error;")
            launch = f"{kernel.name}<<<unsigned({blocks}), {kernel.threads}, {kernel.shared_bytes}, stream>>>"
            # A launch without blocks would be refused.
            given = dict(entry.extent_arguments)
            tests = [f"{given[root]} > 0" for root in dict.fromkeys(root for root, _ in kernel.grid) if root in given]
            condition = f"if ({' && '.join(tests)}) " if tests else ""
            writer.line(f"{condition}{launch}({', '.join(passed)});")
            writer.line("error = cudaGetLastError();")
            writer.line("if (error != cudaSuccess) return error;")
        writer.line("return error;")
    return writer.text
