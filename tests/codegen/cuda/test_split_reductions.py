"""Reductions split over two launches, where outputs alone leave a GPU idle: planned so, right, and moved as planned.

Planned at the sizes of models, run emulated at small ones: some have fewer blocks than there are shares. The programs
of few rows in `programs.py` are split as well; these here are of other kinds.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from bbrewrite.codegen.cuda.program import CudaSource, print_cuda
from bbrewrite.core.spans import Source
from bbrewrite.emulate.program import EmulatedProgram
from bbrewrite.fusion import Fusion, fuse
from bbrewrite.inputs import draw_inputs
from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.lang.programs import parse_program
from bbrewrite.plan.kernel import Loop, walk_statements
from bbrewrite.request import make_request
from bbrewrite.verify.exact import evaluate_exactly
from tests.codegen.cuda.programs import TARGET, moved_bytes, nvcc, relative_error
from tests.plan.pipelines import shipped_rules

_TEXTS = {
    "decoding": """\
program decoding
index h = 8, m = 1, n = 8192, d = 64, l = 64
input Q[h, m, d], K[h, n, d], V[h, n, l] : bf16
S[h, m, n] = sum[d](Q[h, m, d] * K[h, n, d]) / sqrt(size(d))
output O[h, m, l] = sum[n](softmax[n](S[h, m, n]) * V[h, n, l])
""",
    "matmul": """\
program matmul
index m = 4, k = 8192, n = 512
input A[m, k] : bf16
weight W[k, n] : bf16
output C[m, n] : f32 = sum[k](A[m, k] * W[k, n])
""",
    "totals": """\
program totals
index n = 1048576
input x[n] : f32
output s = sum[n](x[n])
output t = max[n](x[n])
""",
    "windowed": """\
program windowed
index h = 4, m = 1, n = 8192, d = 64
input p[h] : i32
input K[h, n, d] : f32
output Y[h, d] = sum[n](where(n >= p[h], K[h, n, d], 0))
""",
}
_EXTENTS = {
    "decoding": ({"h": 2, "m": 1, "n": 700, "d": 40, "l": 24}, {"h": 1, "m": 1, "n": 3, "d": 8, "l": 8}),
    "matmul": ({"m": 4, "k": 1500, "n": 72}, {"m": 3, "k": 5, "n": 1}),
    "totals": ({"n": 5000}, {"n": 1}),
    "windowed": ({"h": 3, "m": 1, "n": 900, "d": 40}, {"h": 1, "m": 1, "n": 1, "d": 1}),
}
_TOLERANCES = {"decoding": 2**-7, "matmul": 2**-18, "totals": 2**-20, "windowed": 2**-20}


@cache
def _fused(name: str) -> Fusion:
    rules = shipped_rules()
    return fuse(make_request(parse_program(Source(name, _TEXTS[name]), rules.table), rules), TARGET)


@cache
def _source(name: str) -> CudaSource:
    fusion = _fused(name)
    assert TARGET.gpu is not None
    return print_cuda(fusion.fused.kernels, fusion.request.rules.table, TARGET.gpu)


@pytest.mark.parametrize("name", _TEXTS)
def test_a_long_loop_of_few_blocks_is_shared_out(name: str) -> None:
    fusion = _fused(name)
    split = [kernel for kernel in fusion.fused.kernels.kernels if kernel.grid and _shares(kernel.grid)]
    assert split
    for kernel in split:
        (share,) = _shares(kernel.grid)
        assert any(isinstance(s, Loop) and s.share == share for s in walk_statements(kernel.body))
    assert fusion.fused.kernels.indices.shares
    assert all("shares" not in argument for argument, _ in _source(name).entry.extent_arguments)


@pytest.mark.parametrize("name", _TEXTS)
def test_right_without_faults_and_moved_as_planned(name: str) -> None:
    fusion, source, compiler = _fused(name), _source(name), nvcc()
    program, table = fusion.fused.kernels, fusion.request.rules.table
    ptx = compiler.ptx(source.text)
    emulated = EmulatedProgram(program, source, ptx)
    for given in _EXTENTS[name]:
        request = make_request(fusion.request.program, fusion.request.rules, sizes=given)
        arrays = draw_inputs(request.program, request.extents, 0, request.given)
        exact = evaluate_exactly(request.program, arrays, request.extents, table)
        executed = run_kernels(program, arrays, request.extents, table)
        for schedule in ("greedy", "random"):
            run = emulated.run(arrays, request.extents, schedule)
            assert run.faults == ()
            for output, found in run.outputs.items():
                assert relative_error(found, exact[output]) <= _TOLERANCES[name]
                assert relative_error(executed[output], exact[output]) <= _TOLERANCES[name]
            if name == "windowed":
                continue  # which blocks are visited depends on values
            for kernel, report in zip(program.kernels, run.reports, strict=True):
                moved = int(report.loaded_bytes.sum() + report.stored_bytes.sum())
                assert moved == moved_bytes(kernel, request.extents, table)
    for architecture in ("sm_80", "sm_90a"):
        for used in compiler.usage(ptx, architecture).values():
            assert (used.spilled_bytes, used.stack_bytes) == (0, 0)


def _shares(grid: tuple[str, ...]) -> list[str]:
    return [index for index in grid if index.startswith("shares")]


def test_a_split_is_no_slower_as_planned() -> None:
    """Two launches are chosen where they are worth it, and one where the grid fills the GPU anyway."""
    rules = shipped_rules()
    text = _TEXTS["matmul"].replace("m = 4, k = 8192, n = 512", "m = 4096, k = 512, n = 4096")
    whole = fuse(make_request(parse_program(Source("m", text), rules.table), rules), TARGET)
    assert not whole.fused.kernels.indices.shares
    np.testing.assert_array_less(_fused("matmul").fused.seconds, 1e-3)


@pytest.mark.parametrize(("rows", "keys"), [(1, 16384), (16, 65536)])
def test_attention_of_few_queries_stores_no_scores(rows: int, keys: int) -> None:
    rules = shipped_rules()
    text = _TEXTS["decoding"].replace("h = 8, m = 1, n = 8192", f"h = 2, m = {rows}, n = {keys}")
    fused = fuse(make_request(parse_program(Source("decoding", text), rules.table), rules), TARGET).fused.kernels
    assert len(fused.kernels) == 2
    assert all("n" not in buffer.indices for buffer in fused.buffers)


def test_results_in_single_precision_leave_products_on_tensor_cores() -> None:
    """A product's price is that of its operands' type, whatever it is added to and stored as."""
    rules = shipped_rules()
    text = _TEXTS["matmul"].replace("m = 4, k = 8192, n = 512", "m = 4096, k = 4096, n = 4096")
    seconds = [
        fuse(make_request(parse_program(Source("m", own), rules.table), rules), TARGET).fused.seconds
        for own in (text, text.replace("C[m, n] : f32", "C[m, n] : bf16"))
    ]
    assert seconds[1] <= seconds[0] <= 1.2 * seconds[1]
