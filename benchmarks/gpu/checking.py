"""Are kernels on the GPU right, and what they are in the emulator?

The emulator's reading of PTX is a risk that all its tests share; this is where a GPU has the last word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bbrewrite.codegen.cuda.program import CudaSource, print_cuda
from bbrewrite.core.spans import Source
from bbrewrite.emulate.program import EmulatedProgram
from bbrewrite.fusion import Fusion, fuse
from bbrewrite.inputs import draw_inputs
from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.lang.programs import parse_program
from bbrewrite.plan.target import gpu_target
from bbrewrite.request import make_request
from bbrewrite.resources import resource_directory
from bbrewrite.rules.load import load_rules
from bbrewrite.runtime.gpu import Device, GpuProgram
from bbrewrite.runtime.nvcc import find_nvcc
from bbrewrite.verify.exact import evaluate_exactly
from benchmarks.gpu.programs import CheckedProgram

# Rounding differs where a value is kept local instead of stored, so that a program's own error may be smaller.
_LEAST_ERRORS = {"bf16": 2**-9, "f16": 2**-12, "f32": 2**-20}

type Outputs = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Checked:
    """Errors against float64: on the GPU, emulated (None where it was not), and those of the definitions one by one."""

    gpu_error: float
    emulator_error: float | None
    own_error: float
    faults: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Twice the error of the program as it is written is right, and so is what the emulator finds."""
        return not self.faults and self.gpu_error <= 2 * self.own_error

    @property
    def text(self) -> str:
        emulated = "" if self.emulator_error is None else f", emulated {self.emulator_error:.1e}"
        return "; ".join(
            [f"error {self.gpu_error:.1e}{emulated}, of its definitions {self.own_error:.1e}", *self.faults]
        )


def compiled(target_name: str, text: str) -> tuple[Fusion, CudaSource, Path]:
    """A program planned for a GPU, printed, and what nvcc makes of it."""
    rules = load_rules(resource_directory("rules"))
    request = make_request(parse_program(Source("benchmark", text), rules.table), rules)
    target = gpu_target(target_name)
    assert target.gpu is not None
    fusion = fuse(request, target)
    source = print_cuda(fusion.fused.kernels, rules.table, target.gpu)
    return fusion, source, find_nvcc().ptx(source.text)


def check(device: Device, checked: CheckedProgram) -> Checked:
    """A program on the GPU, and if it is small in the emulator, on the same arrays."""
    fusion, source, ptx = compiled(device.target_name, checked.text)
    request, program, table = fusion.request, fusion.fused.kernels, fusion.request.rules.table
    extents = {root: min(extent, checked.most.get(root, extent)) for root, extent in request.extents.items()}
    arrays = draw_inputs(request.program, extents, 0, request.given)
    exact = evaluate_exactly(request.program, arrays, extents, table)
    own = max(_error(run_kernels(fusion.unfused.kernels, arrays, extents, table), exact), _LEAST_ERRORS[checked.kind])
    found, _ = GpuProgram(device, source.launches, ptx).run(arrays, extents)
    if not checked.is_small:
        return Checked(_error(found, exact), None, own, ())
    emulated = EmulatedProgram(program, source, ptx).run(arrays, extents)
    return Checked(_error(found, exact), _error(emulated.outputs, exact), own, emulated.faults)


def _error(outputs: Outputs, exact: Outputs) -> float:
    """The largest of the outputs' relative errors, in the root of the mean square."""

    def error(found: npt.NDArray[Any], right: npt.NDArray[Any]) -> float:
        difference = found.astype(np.float64) - right
        return float(np.sqrt(np.mean(difference**2)) / (np.sqrt(np.mean(right**2)) or 1.0))

    return max(error(values, exact[name]) for name, values in outputs.items())
