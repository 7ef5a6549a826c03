"""The stages for the target `cuda`: planned for a GPU, printed as CUDA, compiled by nvcc, and run.

Where there is a GPU the program runs there and is timed by its clock. Elsewhere what nvcc made is emulated, with every
check, at extents that an emulator can manage; planning is for the extents that were asked for in any case. The error
that rounding excuses is that of the unfused program in NumPy, which knows nothing of how kernels are printed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy.typing as npt

from bbrewrite.codegen.cuda.kernels import DoesNotFit
from bbrewrite.codegen.cuda.program import CudaSource, print_cuda
from bbrewrite.codegen.cuda.project import cuda_project_files
from bbrewrite.core.arrays import ArrayProgram
from bbrewrite.emulate.program import EmulatedProgram
from bbrewrite.fusion import Fusion, fuse
from bbrewrite.inputs import draw_inputs
from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.lang.diagnostics import Diagnostic, InputError
from bbrewrite.lower.bounds import check_bounds
from bbrewrite.memory import check_memory
from bbrewrite.pipeline import Prepared, RunResult
from bbrewrite.plan.kernel import KernelProgram
from bbrewrite.plan.target import Target
from bbrewrite.request import Request
from bbrewrite.runtime.gpu import Device, GpuMissing, GpuProgram, find_gpu
from bbrewrite.runtime.nvcc import Nvcc, find_nvcc
from bbrewrite.timing import timed
from bbrewrite.verify.compare import ALLOWANCES, TF32_ALLOWANCES, compare_outputs, hold_nan
from bbrewrite.verify.exact import evaluate_exactly

type Array = npt.NDArray[Any]

# Extents that take the emulator seconds, not hours: more than two blocks, the last one not whole.
_SMALL_BLOCKED, _SMALL_POINTS = 150, 2
_DEVICE_RUNS = 20


class EmulationFault(Exception):
    """A generated kernel does what no kernel may: a fault of the generator."""


def cuda_files(request: Request, target: Target) -> dict[str, str]:
    """The source files of the fused program to take away. Raises InputError where its blocks do not fit."""
    assert target.gpu is not None
    fusion = fuse(request, target)
    with fitting():
        return cuda_project_files(fusion.fused.kernels, request.rules.table, target.gpu, request.program.equal_extents)


def run_cuda(
    request: Request, target: Target, emulate: bool, seed: int, step: Callable[[str], None] = lambda _: None
) -> RunResult:
    """Fuses, compiles and runs, and compares with the reference.

    Raises InputError; CompilerMissing for want of nvcc, also of g++ where the program is emulated.
    """
    device = None if emulate else _device()
    step("saturating and planning")
    fusion = fuse(request, target)
    compiler = find_nvcc()
    run_on = request.extents if device else small_extents(request)
    check_memory(request.blocks, run_on)
    arrays = draw_inputs(request.program, run_on, seed, request.given)
    step("evaluating the reference")
    reference = evaluate_exactly(request.program, arrays, run_on, request.rules.table)
    step("compiling")
    (unfused, fused), paths, codegen_ms, compile_ms = _compiled(fusion, target, compiler)
    step("running on the GPU" if device else "emulating")
    outputs: list[dict[str, Array]] = []
    times: list[tuple[float, ...]] = []
    plain = run_kernels(fusion.unfused.kernels, arrays, run_on, request.rules.table)
    for program, source, ptx in (unfused, fused):
        if source.launches.loops_over_nothing(run_on):
            # Over nothing, a program means what it means unfused.
            found, durations = plain, (0.0,)
        elif device:
            found, durations = GpuProgram(device, source.launches, ptx).run(arrays, run_on, _DEVICE_RUNS)
        else:
            found, duration = timed(partial(_emulated, EmulatedProgram(program, source, ptx), arrays, run_on))
            durations = (duration,)
        outputs.append(found)
        times.append(durations)
    elements = {tensor.name: tensor.element for tensor in request.blocks.outputs}
    is_tf32 = target.gpu is not None and target.gpu.tf32
    allowances = TF32_ALLOWANCES if is_tf32 else ALLOWANCES
    definitions = [definition.tensor for definition in request.blocks.definitions]
    comparison = compare_outputs(
        elements, outputs[1], plain, reference, hold_nan(arrays.values()), allowances, definitions
    )
    prepared = Prepared(lambda: outputs[0], lambda: outputs[1], codegen_ms, compile_ms, paths)
    emulated = None if device else run_on
    return RunResult(fusion, "cuda", prepared, outputs[1], comparison, times[0], times[1], emulated, is_tf32)


def small_extents(request: Request) -> dict[str, int]:
    """The extents at which a program is emulated: those of given arrays, or small ones that its reads allow."""
    indices = request.blocks.indices
    if request.given:
        return dict(request.extents)
    blocked = {indices.root(index.name) for index in indices if index.block is not None}
    cut = {root: min(extent, _SMALL_BLOCKED) if root in blocked else extent for root, extent in request.extents.items()}
    fewer = {root: extent if root in blocked else min(extent, _SMALL_POINTS) for root, extent in cut.items()}
    return next(extents for extents in (fewer, cut, dict(request.extents)) if _allowed(request, extents))


def _allowed(request: Request, extents: Mapping[str, int]) -> bool:
    if not isinstance(request.program, ArrayProgram):
        return extents == request.extents
    indices = request.program.indices.with_extents(extents)
    try:
        check_bounds(replace(request.program, indices=indices), extents, request.rules.table)
    except InputError:
        return False
    return True


def _device() -> Device | None:
    try:
        return find_gpu()
    except GpuMissing:
        return None


def _compiled(
    fusion: Fusion, target: Target, compiler: Nvcc
) -> tuple[list[tuple[KernelProgram, CudaSource, Path]], tuple[Path, ...], float, float]:
    """The unfused and the fused program with their PTX, its sources' paths, and how long that took."""
    assert target.gpu is not None
    programs = (fusion.unfused.kernels, fusion.fused.kernels)
    table, gpu = fusion.request.rules.table, target.gpu
    with fitting():
        sources, codegen_ms = timed(lambda: [print_cuda(program, table, gpu) for program in programs])
    ptx, compile_ms = timed(lambda: [compiler.ptx(source.text) for source in sources])
    forms = list(zip(programs, sources, ptx, strict=True))
    return forms, tuple(path.with_name("kernels.cu") for path in ptx), codegen_ms, compile_ms


@contextmanager
def fitting() -> Generator[None]:
    """Blocks that do not fit are the choice of the user, who is told."""
    try:
        yield
    except DoesNotFit as fault:
        raise InputError([Diagnostic("block-size", str(fault), hint="choose smaller blocks with --block")]) from None


def _emulated(program: EmulatedProgram, arrays: Mapping[str, Array], extents: Mapping[str, int]) -> dict[str, Array]:
    run = program.run(arrays, extents)
    if run.faults:
        raise EmulationFault("\n".join(run.faults))
    return run.outputs
