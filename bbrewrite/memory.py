"""Whether a run fits in memory: asked before anything is allocated, so that the system need not kill the process.

An estimate from extents and element types alone; the arrays themselves are made elsewhere.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from bbrewrite.core.indices import IndexTable
from bbrewrite.core.programs import BlockProgram, Tensor
from bbrewrite.lang.diagnostics import Diagnostic, InputError, counted

# The float64 reference keeps every value twice for a moment: as a result and as an operand of what follows.
_REFERENCE_BYTES = 16


def check_memory(program: BlockProgram, extents: Mapping[str, int]) -> None:
    """Raises InputError where the arrays of a run, buffers and reference included, exceed the free memory."""
    needed = run_bytes(program, extents)
    free = free_bytes()
    if needed > free:
        message = (
            f"a run of these extents needs about {needed / 2**30:.1f} GiB of memory and {free / 2**30:.1f} are free"
        )
        largest = max(program.tensors.values(), key=lambda tensor: _elements(tensor, program.indices, extents))
        shape = ", ".join(f"{index} = {extents[program.indices.root(index)]}" for index in largest.indices)
        hint = f"the largest array is {largest.name}[{shape}]; give smaller extents by --size"
        raise InputError([Diagnostic("memory", message, hint=hint)])


def check_local_memory(local_bytes: int, threads: int) -> None:
    """Raises InputError where the local blocks of a kernel, held by every thread, exceed the free memory."""
    needed, free = local_bytes * threads, free_bytes()
    if needed > free:
        message = (
            f"with these block sizes {counted(threads, 'thread')} need about {needed / 2**30:.1f} GiB of local memory"
            f" and {free / 2**30:.1f} are free"
        )
        hint = "give smaller block sizes, or none: they are then chosen"
        raise InputError([Diagnostic("memory", message, hint=hint)])


def run_bytes(program: BlockProgram, extents: Mapping[str, int]) -> int:
    """Bytes of inputs, the unfused program's buffers, outputs twice (unfused and fused), and the reference."""
    definitions = [definition.tensor for definition in program.definitions]

    def total(tensors: Iterable[Tensor], more_bytes: int) -> int:
        return sum(
            _elements(tensor, program.indices, extents) * (tensor.element.size_bytes + more_bytes) for tensor in tensors
        )

    return total(program.inputs, _REFERENCE_BYTES) + total(definitions, _REFERENCE_BYTES) + total(program.outputs, 0)


def free_bytes() -> int:
    """Memory that can be had without swapping; all of it where the system does not say what is free."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _elements(tensor: Tensor, indices: IndexTable, extents: Mapping[str, int]) -> int:
    return math.prod(extents[indices.root(index)] for index in tensor.indices)
