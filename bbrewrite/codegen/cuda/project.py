"""The source files of a CUDA program to take away: kernels and launcher, header, block operators, and a build file.

They build without this project. Writing them to a directory is the caller's business.
"""

from __future__ import annotations

from collections.abc import Iterable

from bbrewrite.codegen.cpp.project import c_argument, described, equalities
from bbrewrite.codegen.cuda.program import CudaSource, print_cuda
from bbrewrite.codegen.names import identifier
from bbrewrite.core.indices import EqualExtents
from bbrewrite.core.operators import OperatorTable
from bbrewrite.plan.kernel import KernelProgram
from bbrewrite.plan.target import Gpu
from bbrewrite.resources import resource_directory

_CMAKE = """\
cmake_minimum_required(VERSION 3.18)
# Before the project, which would set what nvcc takes by default.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES {architecture})
endif()
project({name} LANGUAGES CXX CUDA)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

add_library({name} SHARED {name}.cu)
target_compile_features({name} PRIVATE cuda_std_17)
target_compile_options({name} PRIVATE -fmad=false)
target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
"""


def cuda_project_files(
    program: KernelProgram, table: OperatorTable, gpu: Gpu, equal_extents: Iterable[EqualExtents] = ()
) -> dict[str, str]:
    """The files by name. Raises BlockTypeError, and DoesNotFit.

    `equal_extents` are those of the program before planning, for the header to tell.
    """
    source = print_cuda(program, table, gpu)
    name = identifier(program.name)
    headers = sorted((resource_directory("targets") / "cuda").glob("*.cuh"))
    architecture = gpu.architecture.removeprefix("sm_")
    return {
        f"{name}.cu": source.text,
        f"{name}.h": _header(program, source, equal_extents),
        **{path.name: path.read_text(encoding="utf-8") for path in headers},
        "CMakeLists.txt": _CMAKE.format(name=name, architecture=architecture),
    }


def _header(program: KernelProgram, source: CudaSource, equal_extents: Iterable[EqualExtents]) -> str:
    """The declaration of the launcher for C and C++, with what each argument is."""
    entry = source.entry
    guard = f"{identifier(program.name).upper()}_H"
    arguments = [*(c_argument(tensor, name) for tensor, name in entry.tensor_arguments)]
    arguments += [f"int64_t {name}" for _, name in entry.extent_arguments] + ["cudaStream_t stream"]
    limits = {root: limit for kernel in source.kernels for root, limit in sorted(kernel.limits, reverse=True)}
    count = len(source.kernels)
    lines = [f"/* The program {program.name}, computed by {count} kernel{'s' if count != 1 else ''} on a GPU.", " *"]
    lines += [f" *   {name}: {described(program, tensor)}" for tensor, name in entry.tensor_arguments]
    looped = {root for kernel in source.kernels for root in kernel.looped}
    for root, name in entry.extent_arguments:
        most = f", at most {limits[root]}" if root in limits else ""
        usual = program.indices.extent(root)
        usually = f", usually {usual}" if usual is not None else ""
        lines.append(f" *   {name}: the extent of {root}{usually}; at least {1 if root in looped else 0}{most}")
    lines += [
        " *   stream: where the kernels are launched, one after another; the call does not wait for them",
        " *",
        *equalities(program, entry, equal_extents),
        " * All arrays are in the device's memory, dense and row-major; copies are fast where arrays and rows begin at",
        " * multiples of 16 bytes. Outputs and intermediate memory must not overlap any other array. Other extents",
        " * are refused with cudaErrorInvalidValue. */",
    ]
    declaration = f"cudaError_t {entry.name}(\n    " + ",\n    ".join(arguments) + ");"
    return f"""\
#ifndef {guard}
#define {guard}

#include <cuda_runtime.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

{chr(10).join(lines)}
{declaration}

#ifdef __cplusplus
}}
#endif

#endif
"""
