"""Are kernels on the GPU what they are in the emulator? First small ones, one block operator each; then whole programs.

The emulator's reading of PTX is a risk that all its tests share; this is where a GPU has the last word.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bbrewrite.codegen.cuda.program import print_cuda
from bbrewrite.core.spans import Source
from bbrewrite.emulate.program import EmulatedProgram
from bbrewrite.inputs import draw_inputs
from bbrewrite.lang.programs import parse_program
from bbrewrite.pipeline import fuse
from bbrewrite.plan.target import gpu_target
from bbrewrite.request import make_request
from bbrewrite.resources import resource_directory
from bbrewrite.rules.load import load_rules
from bbrewrite.runtime.gpu import Device, GpuProgram
from bbrewrite.runtime.nvcc import find_nvcc
from bbrewrite.verify.exact import evaluate_exactly

# One block operator each, at extents with a rest, so that a wrong one is named and not just a wrong program.
CONFORMANCE = {
    "copy": "input A[m, n] : TYPE; output Y[m, n] = A[m, n]",
    "copy of odd rows": "input A[m, o] : TYPE; output Y[m, o] = A[m, o]",
    "row sums": "input A[m, n] : TYPE; output Y[m] = sum[n](A[m, n])",
    "column sums": "input A[m, n] : TYPE; output Y[n] = sum[m](A[m, n])",
    "total": "input A[m, n] : TYPE; output y = max[m, n](A[m, n])",
    "product": "input A[m, k], B[k, n] : TYPE; output Y[m, n] = sum[k](A[m, k] * B[k, n])",
    "product of rows": "input A[m, k], B[n, k] : TYPE; output Y[m, n] = sum[k](A[m, k] * B[n, k])",
    "product of columns": "input A[k, m], B[k, n] : TYPE; output Y[m, n] = sum[k](A[k, m] * B[k, n])",
    "computed left operand": "input A[m, k], B[k, n] : TYPE; output Y[m, n] = sum[k](exp(A[m, k]) * B[k, n])",
    "functions": "input A[m, n] : TYPE; output Y[m, n] = exp(A[m, n]) + tanh(A[m, n]) + erf(A[m, n]) + sin(A[m, n])",
    "masks": "input A[m, n] : TYPE; output Y[m, n] = where(n <= m, A[m, n], 0)",
}
KINDS = ("bf16", "f16", "f32")


def conformance_text(label: str, kind: str) -> str:
    """A conformance program in an element type."""
    statements = CONFORMANCE[label].replace("TYPE", kind).split("; ")
    return "\n".join(["program p", "index m = 70, n = 72, k = 136, o = 37", *statements, ""])


@dataclass(frozen=True)
class Checked:
    """One program in one type: the errors of GPU and emulator against float64, and what the emulator found wrong."""

    label: str
    gpu_error: float
    emulator_error: float
    faults: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.faults and self.gpu_error <= 2 * self.emulator_error + 1e-6


def check_conformance(device: Device) -> Iterator[Checked]:
    """Every block operator in every type."""
    for kind in KINDS:
        for label in CONFORMANCE:
            yield check(device, f"{label} {kind}", conformance_text(label, kind))


def check(device: Device, label: str, text: str) -> Checked:
    """A program on the GPU and in the emulator, on the same arrays."""
    rules = load_rules(resource_directory("rules"))
    request = make_request(parse_program(Source(label, text), rules.table), rules)
    target = gpu_target(device.target_name)
    assert target.gpu is not None
    program = fuse(request, target).fused.kernels
    source = print_cuda(program, rules.table, target.gpu)
    ptx = find_nvcc().ptx(source.text)
    arrays = draw_inputs(request.program, request.extents, 0, request.given)
    exact = evaluate_exactly(request.program, arrays, request.extents, rules.table)
    found, _ = GpuProgram(device, source.launches, ptx).run(arrays, request.extents)
    emulated = EmulatedProgram(program, source, ptx).run(arrays, request.extents)

    def error(outputs: dict[str, np.ndarray]) -> float:
        errors = [np.abs(values.astype(np.float64) - exact[name]).max() for name, values in outputs.items()]
        scales = [max(float(np.abs(exact[name]).max()), 1e-30) for name in outputs]
        return max(float(e) / s for e, s in zip(errors, scales, strict=True))

    return Checked(label, error(found), error(emulated.outputs), emulated.faults)
