"""The source files of a program to take away: kernels, a C header, the block operators' headers and a build file.

They build without this project. Writing them to a directory is the caller's business.
"""

from __future__ import annotations

from collections.abc import Iterable

from bbrewrite.codegen.cpp.program import EntryPoint, print_programs
from bbrewrite.codegen.names import identifier
from bbrewrite.compiler_options import OPTIONS, OPTIONS_OF_GCC
from bbrewrite.core.elements import Element
from bbrewrite.core.indices import EqualExtents
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Role, Tensor
from bbrewrite.plan.kernel import KernelProgram
from bbrewrite.resources import resource_directory

_CMAKE = """\
cmake_minimum_required(VERSION 3.16)
project({name} LANGUAGES CXX)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
find_package(OpenMP REQUIRED COMPONENTS CXX)

add_library({name} SHARED {name}.cpp)
target_compile_features({name} PRIVATE cxx_std_20)
target_compile_options({name} PRIVATE {options}
  {options_of_gcc})
target_link_libraries({name} PRIVATE OpenMP::OpenMP_CXX)
target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
"""
_C_TYPES = {
    Element.BOOL: ("uint8_t", "truth values, 0 or 1"),
    Element.I32: ("int32_t", "32-bit integers"),
    Element.F16: ("uint16_t", "IEEE half precision numbers, as their bits"),
    Element.BF16: ("uint16_t", "bfloat16 numbers, as their bits"),
    Element.F32: ("float", "single precision numbers"),
    Element.F64: ("double", "double precision numbers"),
}
_ROLES = {
    Role.INPUT: "input",
    Role.WEIGHT: "weight",
    Role.OUTPUT: "output, written",
    Role.BUFFER: "memory for intermediate results, allocated by the caller; its contents do not matter",
}


def project_files(
    program: KernelProgram,
    table: OperatorTable,
    fallback: KernelProgram | None = None,
    equal_extents: Iterable[EqualExtents] = (),
) -> dict[str, str]:
    """The files by name; `fallback` is for extents of 0, see `print_programs`. Raises BlockTypeError.

    `equal_extents` are those of the program before planning, for the header to tell.
    """
    source = print_programs([program], table, fallback)
    (entry,) = source.entry_points
    name = identifier(program.name)
    headers = sorted((resource_directory("targets") / "cpp").glob("*.hpp"))
    return {
        f"{name}.cpp": source.text,
        f"{name}.h": c_header(program, entry, equal_extents),
        **{path.name: path.read_text(encoding="utf-8") for path in headers},
        "CMakeLists.txt": _build_file(name, source.options),
    }


def _build_file(name: str, extra: Iterable[str]) -> str:
    of_gcc = "\n  ".join(f"$<$<CXX_COMPILER_ID:GNU>:{option}>" for option in OPTIONS_OF_GCC)
    return _CMAKE.format(name=name, options=" ".join((*OPTIONS, *extra)), options_of_gcc=of_gcc)


def c_header(program: KernelProgram, entry: EntryPoint, equal_extents: Iterable[EqualExtents] = ()) -> str:
    """The declaration of a program's entry point for C and C++, with what each argument is."""
    guard = f"{identifier(program.name).upper()}_H"
    arguments = [*(c_argument(tensor, name) for tensor, name in entry.tensor_arguments)]
    arguments += [f"int64_t {name}" for _, name in entry.extent_arguments] + ["int threads"]
    lines = [f"/* The program {program.name}, computed by {_counted(len(program.kernels), 'kernel')}.", " *"]
    lines += [f" *   {name}: {described(program, tensor)}" for tensor, name in entry.tensor_arguments]
    for index, name in entry.extent_arguments:
        usual = program.indices.extent(index)
        lines.append(f" *   {name}: the extent of {index}" + (f", usually {usual}" if usual is not None else ""))
    split = any(kernel.is_split for kernel in program.kernels)
    dependence = "sums are rounded differently for different numbers" if split else "the result does not depend on it"
    lines += [
        f" *   threads: how many threads to use, at least 1; {dependence}",
        " *",
        *equalities(program, entry, equal_extents),
        " * Arrays are dense and row-major. Outputs and intermediate memory must not overlap any other array. */",
    ]
    declaration = f"void {entry.name}(\n    " + ",\n    ".join(arguments) + ");"
    return f"""\
#ifndef {guard}
#define {guard}

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


def equalities(program: KernelProgram, entry: EntryPoint, equal_extents: Iterable[EqualExtents]) -> list[str]:
    """The lines of a header's comment that tell which extents must be equal; none where none must."""
    arguments = dict(entry.extent_arguments)
    roots = [(program.indices.root(read.index), program.indices.root(read.axis)) for read in equal_extents]
    pairs = {tuple(sorted(arguments[root] for root in pair)) for pair in roots if arguments.keys() >= set(pair)}
    if not pairs:
        return []
    return [f" * Extents that must be equal: {', '.join(f'{one} = {other}' for one, other in sorted(pairs))}.", " *"]


def c_argument(tensor: Tensor, name: str) -> str:
    """A tensor as an argument of a C function."""
    constant = "const " if tensor.role in (Role.INPUT, Role.WEIGHT) else ""
    return f"{constant}{_C_TYPES[tensor.element][0]}* {name}"


def described(program: KernelProgram, tensor: Tensor) -> str:
    """What an argument is, for a comment."""
    shares = program.indices.shares
    roots = [str(shares.get(index, program.indices.root(index))) for index in tensor.indices]
    shape = " x ".join(roots) or "a single number"
    return f"{_ROLES[tensor.role]}; {shape}; {_C_TYPES[tensor.element][1]}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
