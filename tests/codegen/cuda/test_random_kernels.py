"""Random kernels on the emulated GPU: the executor's numbers, and not one false alarm."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest

from bbrewrite.codegen.cuda.kernels import DoesNotFit
from bbrewrite.codegen.cuda.program import CudaSource, print_cuda
from bbrewrite.emulate.program import EmulatedProgram
from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.plan.kernel import KernelProgram
from tests.codegen.cuda.programs import TARGET, nvcc
from tests.codegen.kernel_cases import F32, arrays_for
from tests.codegen.test_random_kernels import TABLE, random_program

_ALWAYS = 8
_AT_ONCE = 8  # kernels that nvcc compiles together
_SEEDS = [pytest.param(seed, marks=() if seed < _ALWAYS else pytest.mark.slow) for seed in range(200)]


@cache
def _source(seed: int) -> CudaSource:
    assert TARGET.gpu is not None
    return print_cuda(random_program(seed), TABLE, TARGET.gpu)


@cache
def _ptx(group: int) -> str:
    """Several kernels in one file, each in a namespace of its own for the functions that it defines."""
    parts = ['#include "bb.cuh"\n']
    for seed in range(group * _AT_ONCE, (group + 1) * _AT_ONCE):
        text = _source(seed).text.replace('#include "bb.cuh"', "").replace("#include <stdint.h>", "")
        parts.append(f"namespace seed_{seed} {{\n{text}}}\n")
    return nvcc().ptx("\n".join(parts)).read_text(encoding="utf-8")


def _checked(program: KernelProgram, emulated: EmulatedProgram, extents: Mapping[str, int], seed: int) -> None:
    arrays = arrays_for(program, extents, seed)
    expected = run_kernels(program, arrays, extents, TABLE)
    for schedule in ("greedy", "random"):
        run = emulated.run(arrays, extents, schedule, seed)
        assert run.faults == (), (schedule, extents)
        for target in program.outputs:
            tolerance = 2e-3 if target.element is F32 else 1e-9
            np.testing.assert_allclose(
                run.outputs[target.name], expected[target.name], tolerance, tolerance, err_msg=str(extents)
            )


@pytest.mark.parametrize("seed", _SEEDS)
def test_random_kernel(seed: int) -> None:
    program = random_program(seed)
    emulated = EmulatedProgram(program, _source(seed), _ptx(seed // _AT_ONCE))
    draw = random.Random(seed)
    for sizes in ((9, 20, 11), (1, 1, 1), tuple(draw.randint(1, 40) for _ in range(3))):
        _checked(program, emulated, dict(zip(("m", "n", "k"), sizes, strict=True)), seed)


def test_blocks_larger_than_shared_memory_are_refused() -> None:
    from tests.codegen.kernel_cases import matmul

    assert TARGET.gpu is not None
    with pytest.raises(DoesNotFit, match="bytes of shared memory"):
        print_cuda(matmul(b=512), TABLE, TARGET.gpu)
