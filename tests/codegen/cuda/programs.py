"""Programs that are planned for a GPU at the sizes of models, and run emulated at three small ones.

Those of few rows leave most of a GPU idle, so that reductions are split over two launches; all others fill it.

Of the sizes one fits the blocks, and goes round every loop often enough to use a ring's tiles again; one has a rest in
every index, in rows that can still be copied in chunks; and one is smaller than every block, in rows that cannot.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from bbrewrite.codegen.cuda.program import CudaSource, print_cuda
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.spans import Source
from bbrewrite.core.types import Typing
from bbrewrite.emulate.machine import Schedule
from bbrewrite.emulate.program import EmulatedProgram, EmulatedRun
from bbrewrite.fusion import Fusion, fuse
from bbrewrite.inputs import draw_inputs
from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.lang.programs import parse_program
from bbrewrite.plan.costs.cost import NestCosts
from bbrewrite.plan.costs.events import summarise
from bbrewrite.plan.kernel import Kernel
from bbrewrite.plan.machine import Machine
from bbrewrite.plan.target import Target, gpu_target
from bbrewrite.request import make_request
from bbrewrite.runtime.compiler import CompilerMissing
from bbrewrite.runtime.nvcc import Nvcc, find_nvcc
from bbrewrite.verify.exact import evaluate_exactly
from benchmarks.gpu.programs import MODEL_PROGRAMS
from tests.plan.pipelines import shipped_rules

TARGET = gpu_target("sm_80")
_TF32_TARGET = gpu_target("sm_80", tf32=True)

_TEXTS = dict(MODEL_PROGRAMS)
FEW_ROWS = {f"{name}_few_rows": name for name in ("attention", "layernorm_matmul", "rmsnorm_swiglu")}
_TEXTS |= {few: re.sub(r"\bm = \d+", "m = 128", _TEXTS[name], count=1) for few, name in FEW_ROWS.items()}
NAMES = tuple(_TEXTS)
# The kind tf32 is f32 whose products are done on tensor cores.
TYPES = ("bf16", "f16", "f32", "tf32")
SHAPES = ("aligned", "ragged", "tiny")

_EXTENTS: dict[str, dict[str, dict[str, int]]] = {
    "attention": {
        "aligned": {"m": 128, "n": 192, "d": 64, "l": 64},
        "ragged": {"m": 70, "n": 200, "d": 40, "l": 24},
        "tiny": {"m": 3, "n": 5, "d": 7, "l": 2},
    },
    "layernorm_matmul": {
        "aligned": {"m": 64, "k": 384, "n": 128},
        "ragged": {"m": 33, "k": 328, "n": 72},
        "tiny": {"m": 2, "k": 3, "n": 1},
    },
    "rmsnorm_swiglu": {
        "aligned": {"m": 64, "d": 384, "f": 384},
        "ragged": {"m": 20, "d": 296, "f": 328},
        "tiny": {"m": 1, "d": 3, "f": 5},
    },
    "masked_attention": {
        "aligned": {"h": 1, "m": 192, "d": 128, "l": 128},
        "ragged": {"h": 2, "m": 200, "d": 40, "l": 24},
        "tiny": {"h": 1, "m": 1, "d": 8, "l": 8},  # the only position sees nothing
    },
    "grouped_query_attention": {
        "aligned": {"b": 1, "h": 8, "g": 2, "m": 64, "n": 192, "d": 64, "l": 64},
        "ragged": {"b": 2, "h": 8, "g": 2, "m": 20, "n": 200, "d": 40, "l": 24},
        "tiny": {"b": 1, "h": 8, "g": 2, "m": 1, "n": 2, "d": 3, "l": 1},
    },
    "rmsnorm_qkv": {
        "aligned": {"m": 64, "e": 384, "d": 64},
        "ragged": {"m": 40, "e": 296, "d": 72},
        "tiny": {"m": 2, "e": 3, "d": 1},
    },
    # Several blocks for each of the shares, and fewer blocks than shares.
    "attention_few_rows": {
        "aligned": {"m": 64, "n": 768, "d": 64, "l": 64},
        "ragged": {"m": 20, "n": 1000, "d": 40, "l": 24},
        "tiny": {"m": 3, "n": 5, "d": 7, "l": 2},
    },
    "layernorm_matmul_few_rows": {
        "aligned": {"m": 64, "k": 768, "n": 128},
        "ragged": {"m": 20, "k": 1000, "n": 72},
        "tiny": {"m": 2, "k": 3, "n": 1},
    },
    "rmsnorm_swiglu_few_rows": {
        "aligned": {"m": 64, "d": 384, "f": 768},
        "ragged": {"m": 20, "d": 296, "f": 1000},
        "tiny": {"m": 1, "d": 3, "f": 5},
    },
}
# How many shares a split loop has: where something is ragged, one that has no blocks; tiny ones as many as planned.
_SHARES = {"aligned": 2, "ragged": 5}


@dataclass(frozen=True)
class Case:
    """A program planned for a GPU, its CUDA source, and what nvcc made of it."""

    fusion: Fusion
    source: CudaSource
    emulated: EmulatedProgram

    @property
    def table(self) -> OperatorTable:
        return self.fusion.request.rules.table


@dataclass(frozen=True)
class Data:
    """Arrays for a program, the outputs in float64, and those of its definitions one by one in its own types.

    For tf32, `rounded` are the outputs in float64 for arrays that have been rounded to it.
    """

    extents: Mapping[str, int]
    arrays: Mapping[str, npt.NDArray[Any]]
    exact: Mapping[str, npt.NDArray[Any]]
    rounded: Mapping[str, npt.NDArray[Any]]


def nvcc() -> Nvcc:
    """The compiler; where there is none, the test is skipped, saying how to get it."""
    try:
        return find_nvcc()
    except CompilerMissing as missing:
        pytest.skip(str(missing))


def text_of(name: str, kind: str) -> str:
    """A program's text in an element type."""
    return f"program {name}\n{_TEXTS[name]}".replace("TYPE", element_of(kind))


def element_of(kind: str) -> str:
    """The element type of a kind's arrays."""
    return "f32" if kind == "tf32" else kind


def target_of(kind: str) -> Target:
    """What programs of a kind are planned for."""
    return _TF32_TARGET if kind == "tf32" else TARGET


@cache
def fused(name: str, kind: str) -> Fusion:
    """The program planned for the target."""
    rules = shipped_rules()
    program = parse_program(Source(name, text_of(name, kind)), rules.table)
    return fuse(make_request(program, rules), target_of(kind))


@cache
def source_of(name: str, kind: str) -> CudaSource:
    """The program's CUDA source."""
    fusion = fused(name, kind)
    gpu = target_of(kind).gpu
    assert gpu is not None
    return print_cuda(fusion.fused.kernels, fusion.request.rules.table, gpu)


@cache
def case(name: str, kind: str) -> Case:
    """A program ready to run."""
    source = source_of(name, kind)
    fusion = fused(name, kind)
    return Case(fusion, source, EmulatedProgram(fusion.fused.kernels, source, nvcc().ptx(source.text)))


@cache
def data(name: str, kind: str, shape: str) -> Data:
    """Arrays of one of the three shapes."""
    fusion = fused(name, kind)
    given = _EXTENTS[name][shape]
    request = make_request(fusion.request.program, fusion.request.rules, sizes=given)
    arrays = draw_inputs(request.program, request.extents, 0, request.given)
    table = request.rules.table
    exact = evaluate_exactly(request.program, arrays, request.extents, table)
    shares = fusion.fused.kernels.indices.shares
    extents = request.extents | {share: _SHARES.get(shape, planned) for share, planned in shares.items()}
    if kind == "tf32":
        cut = {tensor: rounded_to_tf32(array) for tensor, array in arrays.items()}
        return Data(extents, arrays, exact, evaluate_exactly(request.program, cut, request.extents, table))
    rounded = run_kernels(fusion.unfused.kernels, arrays, request.extents, table)
    return Data(extents, arrays, exact, rounded)


@cache
def run(name: str, kind: str, shape: str, schedule: Schedule) -> EmulatedRun:
    """The program run emulated."""
    given = data(name, kind, shape)
    return case(name, kind).emulated.run(given.arrays, given.extents, schedule)


def moved_bytes(kernel: Kernel, extents: Mapping[str, int], table: OperatorTable) -> int:
    """The bytes of global memory that the cost model expects of a kernel at these extents."""
    extents = {**kernel.indices.shares, **extents}
    tensors = {tensor.name: tensor for tensor in (*kernel.reads, *kernel.writes)}
    events = summarise(kernel.body, kernel.grid, table, Typing(table, kernel.indices, tensors), tensors)
    names = tuple(index.name for index in kernel.indices)
    own = {name: extents[kernel.indices.root(name)] for name in names}
    blocks = tuple(kernel.indices[name].block or 1 for name in names)
    machine = Machine(TARGET, TARGET.processors, extents)
    costs = NestCosts(events, kernel.grid, names, own, kernel.indices.with_extents(extents), machine)
    return costs.counted(blocks).global_bytes


def rounded_to_tf32(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An array of f32 rounded to ten bits of fraction, ties away from 0."""
    return ((array.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)


def relative_error(found: npt.NDArray[Any], exact: npt.NDArray[Any]) -> float:
    """The root of the mean squared error, relative to that of the values if they are not all 0."""
    difference = found.astype(np.float64) - exact
    return float(np.sqrt(np.mean(difference**2)) / (np.sqrt(np.mean(exact**2)) or 1.0))
