"""Prints kernel programs as C++20 with OpenMP: a function for each kernel and one `extern "C"` entry point a program.

Extents are arguments, block sizes are constants. Tensors are dense, row-major arrays. The text needs the header
`bb.hpp` and nothing else of this project.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bbrewrite.codegen.functions import FunctionPrinter
from bbrewrite.codegen.kernels import KernelFunction, print_kernel
from bbrewrite.codegen.names import Names
from bbrewrite.codegen.text import Writer, signature, storage_type
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Tensor
from bbrewrite.plan.kernel import KernelProgram

_PRELUDE = """\
#include "bb.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

static inline int64_t bb_blocks(int64_t size, int64_t block) { return (size + block - 1) / block; }
static inline size_t bb_aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }
static inline bool bb_inside(int64_t place, int64_t size) { return (place >= 0) & (place < size); }
"""


@dataclass(frozen=True)
class EntryPoint:
    """How a program's C function is called: pointers to `tensors`, then `extents` (root indices), then the threads."""

    name: str
    tensors: tuple[Tensor, ...]  # inputs and weights, outputs, buffers
    extents: tuple[str, ...]
    declaration: str  # without the semicolon


@dataclass(frozen=True)
class Source:
    """A C++ translation unit, and the entry point of each of its programs."""

    text: str
    entry_points: tuple[EntryPoint, ...]


def print_programs(programs: Sequence[KernelProgram], table: OperatorTable) -> Source:
    """One translation unit for several programs. Raises BlockTypeError for an ill-typed kernel."""
    names = Names(frozenset({"bb_blocks", "bb_aligned", "bb_inside"}))
    entry_names = [names.fresh(program.name) for program in programs]
    functions = FunctionPrinter(table, names)
    kernels = [[print_kernel(kernel, table, functions, names) for kernel in program.kernels] for program in programs]
    points = [entry_point(program, name) for program, name in zip(programs, entry_names, strict=True)]
    parts = [_PRELUDE, *functions.definitions]
    for program, printed, point in zip(programs, kernels, points, strict=True):
        parts += [function.text for function in printed]
        parts.append(_entry_text(program, printed, point))
    return Source("\n".join(parts), tuple(points))


def entry_point(program: KernelProgram, name: str) -> EntryPoint:
    """The C function of a program."""
    tensors = (*program.inputs, *program.outputs, *program.buffers)
    extents = tuple(index.name for index in program.indices if not index.same_as)
    names = _argument_names(program, tensors, extents)
    constant = len(program.inputs)
    taken = [
        f"{'const ' if position < constant else ''}{storage_type(tensor.element)}* {names[tensor.name]}"
        for position, tensor in enumerate(tensors)
    ]
    taken += [f"int64_t {names[_size(extent)]}" for extent in extents] + ["int threads"]
    return EntryPoint(name, tensors, extents, signature(f"void {name}", taken))


def _argument_names(program: KernelProgram, tensors: Sequence[Tensor], extents: Sequence[str]) -> dict[str, str]:
    """C names of an entry point's arguments, which must not hide the kernels that it calls."""
    names = Names(frozenset({"threads", *(f"kernel_{kernel.name}" for kernel in program.kernels)}))
    found = {tensor.name: names.fresh(tensor.name) for tensor in tensors}
    return found | {_size(extent): names.fresh(_size(extent)) for extent in extents}


def _size(index: str) -> str:
    return f"size_{index}"


def _entry_text(program: KernelProgram, kernels: Sequence[KernelFunction], point: EntryPoint) -> str:
    names = _argument_names(program, point.tensors, point.extents)
    writer = Writer()
    with writer.block(f'extern "C" {point.declaration}'):
        for kernel, function in zip(program.kernels, kernels, strict=True):
            passed = [names[tensor] for tensor in function.tensors] + [names[_size(name)] for name in function.extents]
            passed += ["threads"] if kernel.grid else []
            writer.line(f"{function.name}({', '.join(passed)});")
    return writer.text
