"""Prints kernel programs as C++20 with OpenMP: a function for each kernel and one `extern "C"` entry point a program.

The entry point of `attention` is `bb_attention`: without the prefix, a program `exp` would be the C library's. Extents
are arguments, block sizes are constants. Tensors are dense, row-major arrays. The text needs the header
`bb.hpp` and nothing else of this project.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bbrewrite.codegen.cpp.copied_weights import without_copied_weights
from bbrewrite.codegen.cpp.kernels import KernelFunction
from bbrewrite.codegen.cpp.prepared import PreparedWeight, prepared_weights
from bbrewrite.codegen.cpp.shared import KernelPrinter
from bbrewrite.codegen.functions import FunctionPrinter
from bbrewrite.codegen.names import Names
from bbrewrite.codegen.text import Writer, signature, storage_type
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Role, Tensor
from bbrewrite.plan.kernel import KernelProgram
from bbrewrite.plan.lifetimes import owned_buffers, shared_memory

_UNROLL_LOOPS = "-funroll-loops"
_UNROLLED = f"// Measured to be faster when compiled with {_UNROLL_LOOPS}.\n\n"
_INCLUDES = """\
#include "bb.hpp"

#include <omp.h>
#include <stddef.h>
#include <stdint.h>
"""
END_OF_KERNELS = "}  // namespace generated\n"
_PRELUDE = """\
[[maybe_unused]] static int64_t bb_blocks(int64_t size, int64_t block) { return (size + block - 1) / block; }
[[maybe_unused]] static size_t bb_aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }
[[maybe_unused]] static bool bb_inside(int64_t place, int64_t size) { return (place >= 0) & (place < size); }
"""


@dataclass(frozen=True)
class EntryPoint:
    """How a program's C function is called: with pointers to tensors, extents of root indices, and the threads.

    In place of each of the `prepared` weights it takes what `preparation(weight)` made of it. Of buffers that share
    memory it takes the first.
    """

    name: str
    tensor_arguments: tuple[tuple[Tensor, str], ...]  # inputs and weights, outputs, buffers, with their C names
    extent_arguments: tuple[tuple[str, str], ...]  # root indices, with their C names
    pointers: Mapping[str, str]  # for every tensor that kernels name, in C, where it begins
    prepared: tuple[PreparedWeight, ...] = ()

    @property
    def declaration(self) -> str:
        """The C++ declaration, without the semicolon."""
        taken: list[str] = []
        for tensor, name in self.tensor_arguments:
            constant = "const " if tensor.role in (Role.INPUT, Role.WEIGHT) else ""
            weight = next((weight for weight in self.prepared if weight.tensor == tensor), None)
            kind = storage_type(weight.element) if weight else storage_type(tensor.element)
            taken.append(f"{constant}{kind}* {name}")
        taken += [f"int64_t {name}" for _, name in self.extent_arguments] + ["int threads"]
        return signature(f"void {self.name}", taken)

    def preparation(self, weight: PreparedWeight) -> str:
        """The C function that packs a weight; it returns how many bytes that takes, also for a null pointer."""
        return f"{self.name}_prepare_{dict(self.tensor_arguments)[weight.tensor]}"


@dataclass(frozen=True)
class Source:
    """A C++ translation unit: what comes before its kernels, these, and what comes after them, where entry points are.

    `options` are the compiler's beyond the usual ones.
    """

    before: str
    kernels: tuple[KernelFunction, ...]
    after: str
    entry_points: tuple[EntryPoint, ...]
    options: tuple[str, ...]

    @property
    def text(self) -> str:
        """The whole unit."""
        return self.around([kernel.text for kernel in self.kernels], self.after)

    def around(self, kernels: Sequence[str], after: str) -> str:
        """A unit with what comes before the kernels, the texts of some, and what is to come after them."""
        return "\n".join([self.before, *kernels, after])


def print_programs(
    programs: Sequence[KernelProgram],
    table: OperatorTable,
    fallback: KernelProgram | None = None,
    prepare: bool = False,
) -> Source:
    """One translation unit for several programs. Raises BlockTypeError for an ill-typed kernel.

    With `prepare`, weights that can be are packed once ahead of calls; there must be no fallback then, since it takes
    weights as they are.

    `fallback` is an unfused form of the programs. Where an extent is 0 they do what it does: moving a factor out of a
    sum over nothing, say, changes the result if the factor is infinite.
    """
    names = Names(frozenset({"bb_blocks", "bb_aligned", "bb_inside"}))
    entry_names = [names.fresh(f"bb_{program.name}") for program in programs]
    functions = FunctionPrinter(table, names)
    assert not (prepare and fallback), "the unfused form takes weights as they are"
    programs = [without_copied_weights(program, table) if prepare else program for program in programs]
    weights = [prepared_weights(program, table) if prepare else () for program in programs]
    printer = KernelPrinter(table, functions, names)
    kernels = [
        [printer.function(kernel, ahead) for kernel in program.kernels]
        for program, ahead in zip(programs, weights, strict=True)
    ]
    if fallback and all(program.kernels == fallback.kernels for program in programs):
        fallback = None
    unfused = [printer.function(kernel) for kernel in fallback.kernels] if fallback else []
    points = [
        replace(entry_point(program, name), prepared=ahead)
        for program, name, ahead in zip(programs, entry_names, weights, strict=True)
    ]
    branch = (fallback, unfused) if fallback else None
    entries = [_entry_text(printed, point, branch) for printed, point in zip(kernels, points, strict=True)]
    entries += [_preparation_text(point, weight) for point in points for weight in point.prepared]
    # Few programs need it, and it takes longer to compile than their kernels may.
    needs_vector = any("std::vector" in text for text in (*(kernel.text for kernel in printer.printed), *entries))
    unrolled = any(program.unrolled for program in programs)
    head = (_UNROLLED if unrolled else "") + _INCLUDES + ("#include <vector>\n" if needs_vector else "")
    # Inside a namespace, functions may be called what functions of the C library are called.
    before = [head, _PRELUDE, "namespace generated {\n", *functions.definitions]
    after = [END_OF_KERNELS, *entries]
    options = (_UNROLL_LOOPS,) if unrolled else ()
    return Source("\n".join(before), tuple(printer.printed), "\n".join(after), tuple(points), options)


def entry_point(program: KernelProgram, name: str, taken: frozenset[str] = frozenset({"threads"})) -> EntryPoint:
    """The C function of a program; arguments are not called what is `taken`."""
    names = Names(taken)
    tensors = tuple((tensor, names.fresh(tensor.name)) for tensor in (*program.inputs, *program.outputs))
    buffers = tuple((buffer, names.fresh(buffer.name)) for buffer in owned_buffers(program))
    extents = tuple(
        (index.name, names.fresh(f"size_{index.name}"))
        for index in program.indices
        if not index.same_as and not index.is_share
    )
    arguments = (*tensors, *buffers)
    pointers = _pointers(program, {tensor.name: argument for tensor, argument in arguments}, dict(extents))
    return EntryPoint(name, arguments, extents, pointers)


def _pointers(program: KernelProgram, memory: Mapping[str, str], extents: Mapping[str, str]) -> dict[str, str]:
    """Where every tensor begins that kernels name, given that of inputs, outputs and buffers with own memory."""
    found = dict(memory)
    for name, buffer in shared_memory(program).items():
        found[name] = memory[buffer.name]
    for part in program.slices:
        sizes = [extents[program.indices.root(index)] for index in part.whole.indices]
        terms = [
            " * ".join([str(position), *sizes[axis + 1 :]]) for axis, position in enumerate(part.positions) if position
        ]
        found[part.tensor.name] = " + ".join([memory[part.whole.name], *terms])
    return found


def _preparation_text(point: EntryPoint, weight: PreparedWeight) -> str:
    writer = Writer()
    rows, columns = ("n", "k") if weight.transposed else ("k", "n")
    kinds = storage_type(weight.tensor.element), storage_type(weight.element)
    parameters = [f"const {kinds[0]}* weight", f"{kinds[1]}* packed", f"int64_t {rows}", f"int64_t {columns}"]
    with writer.block(signature(f'extern "C" size_t {point.preparation(weight)}', [*parameters, "int threads"])):
        function = "prepare_nk" if weight.transposed else "prepare_kn"
        writer.line(f"if (packed) bb::{function}(packed, weight, k, n, {weight.block}, threads);")
        writer.line(f"return bb::prepared_size<{kinds[1]}>(k, n, {weight.block}) * sizeof({kinds[1]});")
    return writer.text


def _entry_text(
    kernels: Sequence[KernelFunction],
    point: EntryPoint,
    fallback: tuple[KernelProgram, Sequence[KernelFunction]] | None,
) -> str:
    tensors = {tensor.name: name for tensor, name in point.tensor_arguments}
    extents = dict(point.extent_arguments)
    called = (*kernels, *(fallback[1] if fallback else ()))
    used = {name for function in called for name in function.extents} if not fallback else set(extents)
    words = {word for pointer in point.pointers.values() for word in pointer.split()}
    used |= {index for index, name in extents.items() if name in words}
    unused = [extents[name] for name in extents if name not in used]
    unused += [] if any(function.takes_threads for function in called) else ["threads"]
    writer = Writer()

    def calls(functions: Sequence[KernelFunction], pointers: Mapping[str, str]) -> None:
        for function in functions:
            passed = [pointers[tensor] for tensor in function.tensors] + [extents[name] for name in function.extents]
            passed += ["threads"] if function.takes_threads else []
            writer.line(f"generated::{function.name}({', '.join(passed)});")

    with writer.block(f'extern "C" {point.declaration}'):
        for name in unused:
            writer.line(f"(void){name};")
        if fallback and extents:
            unfused, functions = fallback
            with writer.block(f"if ({' || '.join(f'{name} == 0' for name in extents.values())})"):
                writer.line("// Over nothing, the program means what it meant before fusion.")
                names = Names(frozenset({"threads", *extents.values(), *tensors.values()}))
                buffers = {buffer.name: names.fresh(buffer.name) for buffer in owned_buffers(unfused)}
                for buffer in owned_buffers(unfused):
                    size = " * ".join(extents[unfused.indices.root(index)] for index in buffer.indices) or "1"
                    writer.line(f"std::vector<{storage_type(buffer.element)}> {buffers[buffer.name]}({size});")
                memory = tensors | {name: f"{variable}.data()" for name, variable in buffers.items()}
                calls(functions, _pointers(unfused, memory, extents))
                writer.line("return;")
        calls(kernels, point.pointers)
    return writer.text
