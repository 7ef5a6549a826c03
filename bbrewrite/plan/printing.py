"""Prints kernel programs for reading: one kernel after another, loops indented. Nothing parses this text."""

from __future__ import annotations

from collections.abc import Iterator

from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.printing import index_lines, input_lines, print_tensor, print_term
from bbrewrite.core.programs import Tensor
from bbrewrite.plan.kernel import Barrier, Kernel, KernelProgram, Let, LocalBlock, Loop, Merge, Statement, Store, Update
from bbrewrite.plan.masks.bounds_text import print_bounds

_INDENT = "    "


def print_kernel_program(program: KernelProgram, table: OperatorTable) -> str:
    """The kernels in the order in which they run, after the tensors they share."""
    lines = [f"kernel program {program.name}", *index_lines(program.indices), *input_lines(program.inputs, ())]
    lines += [_tensor("buffer", tensor) for tensor in program.buffers]
    lines += [_tensor("output", tensor) for tensor in program.outputs]
    for kernel in program.kernels:
        lines += ["", *_kernel(kernel, table)]
    return "\n".join(lines) + "\n"


def print_kernels(program: KernelProgram, table: OperatorTable) -> str:
    """The kernels alone, after the buffers between them: for where the program's own declarations are to be seen."""
    parts = ["".join(f"{_tensor('buffer', tensor)}\n" for tensor in program.buffers)] if program.buffers else []
    parts += [print_kernel(kernel, table) for kernel in program.kernels]
    return "\n".join(parts)


def print_kernel(kernel: Kernel, table: OperatorTable) -> str:
    """One kernel: its grid, block sizes and statements."""
    return "\n".join(_kernel(kernel, table)) + "\n"


def _kernel(kernel: Kernel, table: OperatorTable) -> Iterator[str]:
    grid = " by all processors together" if kernel.is_split else ""
    grid += f" parallel over {', '.join(kernel.grid)}" if kernel.grid else ""
    yield f"kernel {kernel.name}{grid}:"
    used = [index for index in kernel.indices if index.name in kernel.loops]
    blocks = [
        f"{index.name} whole" if index.name in kernel.whole else f"{index.name} by {index.block}"
        for index in used
        if index.block is not None
    ]
    if blocks:
        yield f"{_INDENT}blocks {', '.join(blocks)}"
    yield from _body(kernel.body, table, _INDENT)


def _body(body: tuple[Statement, ...], table: OperatorTable, indent: str) -> Iterator[str]:
    for statement in body:
        match statement:
            case Let(target, expression):
                yield f"{indent}{_declared(target)} = {print_term(expression, table)}"
            case Update(target, expression):
                yield f"{indent}{_named(target)} := {print_term(expression, table)}"
            case Store(tensor, expression):
                yield f"{indent}store {print_tensor(tensor)} = {print_term(expression, table)}"
            case Merge(target, source, monoid):
                yield f"{indent}{_declared(target)} = merge {monoid} of {_named(source)}"
            case Barrier():
                yield f"{indent}barrier"
            case Loop(index, inner, shared, bounds, share):
                range_text = print_bounds(bounds, table) if bounds else ""
                among = f" shared out among {share}" if share else " shared out" if shared else ""
                yield f"{indent}for {index}{range_text}{among}:"
                yield from _body(inner, table, indent + _INDENT)


def _named(block: LocalBlock) -> str:
    return block.name + (f"[{', '.join(block.list_indices)}]" if block.list_indices else "")


def _declared(block: LocalBlock) -> str:
    element = f" of {block.type.element}" if block.type.element else ""
    return f"let {_named(block)} : {block.type}{element}"


def _tensor(role: str, tensor: Tensor) -> str:
    return f"{role} {print_tensor(tensor)} : {tensor.element}"
