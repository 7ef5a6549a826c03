"""Kernels of every form, written by hand for the C++ generator, on the emulated GPU: right numbers, no faults."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bbrewrite.codegen.cuda.program import print_cuda
from bbrewrite.core.elements import Element
from bbrewrite.emulate.program import EmulatedProgram
from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.plan.kernel import KernelProgram
from tests.codegen.cuda.programs import TARGET, nvcc
from tests.codegen.general_cases import general_cases
from tests.codegen.kernel_cases import arrays_for, table_with_weight

_TABLE = table_with_weight()
_CASES = {name: case for name, case in general_cases().items() if not any(k.is_split for k in case.kernels)}
# Reads beside their block, strides, transposes, lists, functions of double precision, types that are no floats.
_ALWAYS = {"shifted_product", "folded_shift", "strided", "transposed", "lists", "point_position", "counted", "cast"}
_TOLERANCES = {Element.F16: 4e-3, Element.BF16: 3e-2, Element.F32: 1e-4, Element.F64: 1e-9}
_EXTENTS = ((7, 3), (16, 1))


def _with_extents(program: KernelProgram, first: int, step: int) -> KernelProgram:
    """The program planned for extents, which lists need."""
    roots = [index.name for index in program.indices if not index.same_as]
    extents = {root: first + step * position for position, root in enumerate(roots)}
    kernels = tuple(replace(kernel, indices=kernel.indices.with_extents(extents)) for kernel in program.kernels)
    return replace(program, indices=program.indices.with_extents(extents), kernels=kernels)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in _ALWAYS else pytest.mark.slow) for name in _CASES]
)
def test_general_case(name: str) -> None:
    assert TARGET.gpu is not None
    for seed, (first, step) in enumerate(_EXTENTS):
        program = _with_extents(_CASES[name], first, step)
        source = print_cuda(program, _TABLE, TARGET.gpu)
        emulated = EmulatedProgram(program, source, nvcc().ptx(source.text))
        extents = {index.name: index.extent or 1 for index in program.indices if not index.same_as}
        arrays = arrays_for(program, extents, seed)
        expected = run_kernels(program, arrays, extents, _TABLE)
        for schedule in ("greedy", "random"):
            run = emulated.run(arrays, extents, schedule)
            assert run.faults == ()
            for target in program.outputs:
                found, right = (values[target.name].astype(np.float64) for values in (run.outputs, expected))
                tolerance = _TOLERANCES.get(target.element, 0.0)
                scale = float(np.abs(right[np.isfinite(right)]).max(initial=1.0))
                np.testing.assert_allclose(found, right, tolerance, tolerance * scale)
