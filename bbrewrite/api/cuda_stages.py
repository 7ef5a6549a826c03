"""Compiles a request for a GPU: the way through the stages that `DeviceProgram` takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from bbrewrite.api.record import CompileRequest, Record
from bbrewrite.api.stages import planned_program, record_of
from bbrewrite.codegen.cuda.program import CudaSource, print_cuda
from bbrewrite.core.operators import OperatorTable
from bbrewrite.cuda_pipeline import fitting
from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.plan.kernel import KernelProgram
from bbrewrite.plan.target import gpu_target
from bbrewrite.runtime.nvcc import find_nvcc

type Array = npt.NDArray[Any]


@dataclass(frozen=True)
class CudaForm:
    """A program planned for some extents, printed and compiled; `unfused` is the same without rules."""

    record: Record
    kernels: KernelProgram
    unfused: KernelProgram
    table: OperatorTable
    source: CudaSource
    ptx: Path

    def run_unfused(self, arrays: Mapping[str, Array], extents: Mapping[str, int]) -> dict[str, Array]:
        """The outputs by the NumPy executor."""
        return run_kernels(self.unfused, arrays, extents, self.table)


def plan_for_cuda(request: CompileRequest, architecture: str, tf32: bool) -> CudaForm:
    """Plans, generates and compiles for GPUs of an architecture, or the nearest older one that is known.

    Raises InputError, and CompilerMissing for want of nvcc.
    """
    target = gpu_target("sm_90" if int(architecture.removeprefix("sm_")) >= 90 else "sm_80", tf32)
    assert target.gpu is not None
    planned = planned_program(request, target)
    kernels, unfused, table = planned.kernels, planned.fusion.unfused.kernels, planned.fusion.request.rules.table
    with fitting():
        source = print_cuda(kernels, table, target.gpu)
    record = record_of(planned, source.entry)
    return CudaForm(record, kernels, unfused, table, source, find_nvcc().ptx(source.text))
