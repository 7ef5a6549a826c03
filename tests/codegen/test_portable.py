"""The same source for other processors and by another compiler: narrow vectors, no fused multiply-add, Clang."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest

from bbrewrite.core.operators import builtin_table
from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.runtime.compiler import CompilerMissing, find_compiler, processor_name
from tests.built import QUICKLY, built
from tests.codegen.kernel_cases import BF16, F64, arrays_for, attention, layer_norm, matmul, swiglu

TABLE = builtin_table()
PROGRAMS = [
    matmul("matmul_f32", b=64),
    matmul("matmul_bf16", BF16, b=64),
    matmul("matmul_f64", F64, b=16),
    attention("attention", 16, causal=True),
    layer_norm(),
    swiglu("swiglu", 64),
]
BUILDS = {
    "16 narrow vectors": ("", "-march=x86-64-v3"),
    "no fused multiply-add": ("", "-march=x86-64"),
    "clang": ("clang++", "-march=native"),
    "clang, 16 narrow vectors": ("clang++", "-march=x86-64-v3"),
}


type Arrays = Mapping[str, np.ndarray[Any, Any]]


@cache
def _experiments(number: int) -> list[tuple[dict[str, int], Arrays, Arrays]]:
    """Extents and arrays for one of the programs, and what it computes of them, whatever it is built for."""
    program = PROGRAMS[number]
    roots = [index.name for index in program.indices if not index.same_as]
    found: list[tuple[dict[str, int], Arrays, Arrays]] = []
    for size in (1, 20, 67, 130):
        extents = {root: size + position for position, root in enumerate(roots)}
        arrays = arrays_for(program, extents, 0)
        found.append((extents, arrays, run_kernels(program, arrays, extents, TABLE)))
    return found


@pytest.mark.parametrize("name", BUILDS)
def test_results_agree_with_the_executor(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command, processor = BUILDS[name]
    if processor != "-march=native" and platform.machine() != "x86_64":
        pytest.skip("other processors are known for x86-64 only")
    if processor == "-march=x86-64-v3" and "avx2" not in processor_name():
        pytest.skip("this processor does not have such vectors")
    if command:
        monkeypatch.setenv("CXX", command)
    try:
        compiler = find_compiler()
    except CompilerMissing as missing:
        pytest.skip(f"{command} cannot be used here: {missing}")
    for number, compiled in enumerate(built(PROGRAMS, TABLE, (processor, *QUICKLY), compiler)):
        program = PROGRAMS[number]
        for extents, arrays, expected in _experiments(number):
            found = compiled.run(arrays, extents, 2)
            for target in program.outputs:
                largest = float(np.abs(expected[target.name].astype(np.float64)).max())
                tolerance = {BF16: 2.0**-8, F64: 1e-12}.get(target.element, 2e-5)
                np.testing.assert_allclose(
                    found[target.name].astype(np.float64),
                    expected[target.name].astype(np.float64),
                    rtol=0,
                    atol=tolerance * max(largest, 1.0),
                    err_msg=f"{program.name} {extents}",
                )
