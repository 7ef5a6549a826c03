"""Compiles a request for a GPU: the way through the stages that `DeviceProgram` takes where nothing is remembered."""

from __future__ import annotations

import shutil
from pathlib import Path

from bbrewrite.api.record import CompileRequest, Record
from bbrewrite.api.stages import planned_program, record_of
from bbrewrite.codegen.cuda.launches import Launches
from bbrewrite.codegen.cuda.program import print_cuda
from bbrewrite.cuda_pipeline import fitting
from bbrewrite.plan.target import gpu_target
from bbrewrite.runtime.nvcc import find_nvcc


def compile_for_cuda(request: CompileRequest, target_name: str, tf32: bool, ptx: Path) -> tuple[Record, Launches]:
    """Plans, generates and compiles; what nvcc makes is written to the path.

    Raises InputError, and CompilerMissing for want of nvcc.
    """
    target = gpu_target(target_name, tf32)
    assert target.gpu is not None
    planned = planned_program(request, target)
    with fitting():
        source = print_cuda(planned.kernels, planned.fusion.request.rules.table, target.gpu)
    shutil.copyfile(find_nvcc().ptx(source.text), ptx)
    return record_of(planned, source.entry), source.launches
