"""Runs a whole generated program without a GPU: each of its kernels, with the launches of the host function.

Arrays are NumPy's, and so are the buffers between kernels. What nvcc made is what runs; nothing here knows what the
program computes.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bbrewrite.codegen.cuda.program import CudaSource
from bbrewrite.core.programs import Tensor
from bbrewrite.emulate.encode import EncodedKernel, encode
from bbrewrite.emulate.machine import Argument, Output, Report, Schedule, launch
from bbrewrite.emulate.ptx import parse_ptx
from bbrewrite.plan.kernel import KernelProgram

type Array = npt.NDArray[Any]


@dataclass(frozen=True)
class EmulatedRun:
    """The outputs by name, and the report of each kernel in order."""

    outputs: dict[str, Array]
    reports: tuple[Report, ...]

    @property
    def faults(self) -> tuple[str, ...]:
        """What was found wrong, in all kernels."""
        return tuple(fault for report in self.reports for fault in report.faults)

    @property
    def global_bytes(self) -> int:
        """The bytes of global memory that were read and written."""
        return sum(int(report.loaded_bytes.sum() + report.stored_bytes.sum()) for report in self.reports)


class EmulatedProgram:
    """A program's kernels, ready to run."""

    def __init__(self, program: KernelProgram, source: CudaSource, ptx: Path | str) -> None:
        text = ptx.read_text(encoding="utf-8") if isinstance(ptx, Path) else ptx
        self.program = program
        self.source = source
        parsed = parse_ptx(text)
        self.kernels: tuple[EncodedKernel, ...] = tuple(encode(parsed[kernel.name]) for kernel in source.kernels)

    def with_kernels(self, kernels: tuple[EncodedKernel, ...]) -> EmulatedProgram:
        """The same program with other code."""
        other = copy(self)
        other.kernels = kernels
        return other

    def run(
        self,
        arrays: Mapping[str, Array],
        extents: Mapping[str, int],
        schedule: Schedule = "greedy",
        seed: int = 0,
    ) -> EmulatedRun:
        """Runs everything. Raises ValueError where the extents do not suit the program, as its launcher would.

        Loops that are shared out are so among as many shares as planned, or as the extents say.
        """
        extents = {**self.program.indices.shares, **extents}
        memory: dict[str, Array] = {}
        for tensor in self.program.inputs:
            memory[tensor.name] = np.ascontiguousarray(arrays[tensor.name], _storage(tensor)).reshape(
                self._shape(tensor, extents)
            )
        written: set[str] = set()
        # Buffers share no memory here, so that a value that is read too late is found missing.
        for tensor in (*self.program.buffers, *self.program.outputs):
            memory[tensor.name] = np.zeros(self._shape(tensor, extents), _storage(tensor))
        for part in self.program.slices:
            memory[part.tensor.name] = np.asarray(memory[part.whole.name][part.positions])
        reports: list[Report] = []
        for kernel, encoded, planned in zip(self.source.kernels, self.kernels, self.program.kernels, strict=True):
            kernel.check(extents)
            own = {tensor.name for tensor in planned.writes}
            # What no kernel has written yet holds no values.
            arguments: list[Argument] = [
                Output(memory[name]) if name in own and name not in written else memory[name] for name in kernel.tensors
            ]
            arguments += [extents[root] for root in kernel.extents]
            reports.append(
                launch(encoded, kernel.blocks(extents), kernel.threads, kernel.shared_bytes, arguments, schedule, seed)
            )
            written |= own
        return EmulatedRun({tensor.name: memory[tensor.name] for tensor in self.program.outputs}, tuple(reports))

    def _shape(self, tensor: Tensor, extents: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(extents[self.program.indices.root(index)] for index in tensor.indices)


def _storage(tensor: Tensor) -> np.dtype[np.generic]:
    return tensor.element.numpy_type
