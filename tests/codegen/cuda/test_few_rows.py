"""Blocks of at most eight rows, which leave half of a tensor core's strip empty, and rows of an odd number of chunks.

Programs are planned for these sizes, so that blocks are as small as extents are. The left operand of a product lies in
shared memory, in registers, or is computed and published; rows are folded, and added to each other.
"""

from __future__ import annotations

import pytest

from bbrewrite.codegen.cuda.program import print_cuda
from bbrewrite.core.spans import Source
from bbrewrite.emulate.program import EmulatedProgram
from bbrewrite.fusion import fuse
from bbrewrite.inputs import draw_inputs
from bbrewrite.lang.programs import parse_program
from bbrewrite.request import make_request
from bbrewrite.verify.exact import evaluate_exactly
from tests.codegen.cuda.programs import element_of, nvcc, relative_error, rounded_to_tf32, target_of
from tests.plan.pipelines import shipped_rules

_TEXT = """\
program few_rows
index m = ROWS, n = 70, d = 40, l = 24
input Q[m, d], K[n, d], V[n, l], W[m, l] : TYPE
S[m, n] = sum[d](Q[m, d] * K[n, d]) / sqrt(size(d))
output O[m, l] = sum[n](softmax[n](S[m, n]) * V[n, l])
output G[d, l] = sum[m](exp(Q[m, d]) * W[m, l])
output H[n, m] = sum[d](K[n, d] * exp(Q[m, d]))
output c[d] : f32 = sum[m](Q[m, d])
"""
_TOLERANCES = {"bf16": 2**-7, "f16": 2**-10, "f32": 2**-20, "tf32": 2**-10}


@pytest.mark.parametrize("kind", ["bf16", "f32", "tf32"])
@pytest.mark.parametrize("rows", [1, 8])
def test_blocks_of_few_rows(kind: str, rows: int) -> None:
    rules = shipped_rules()
    text = _TEXT.replace("ROWS", str(rows)).replace("TYPE", element_of(kind))
    target = target_of(kind)
    assert target.gpu is not None
    request = make_request(parse_program(Source("few_rows", text), rules.table), rules)
    program = fuse(request, target).fused.kernels
    assert any(kernel.indices["m"].block == rows for kernel in program.kernels)
    source, compiler = print_cuda(program, rules.table, target.gpu), nvcc()
    emulated = EmulatedProgram(program, source, compiler.ptx(source.text))
    arrays = draw_inputs(request.program, request.extents, 0, request.given)
    if kind == "tf32":
        arrays = {tensor: rounded_to_tf32(array) for tensor, array in arrays.items()}
    exact = evaluate_exactly(request.program, arrays, request.extents, rules.table)
    for schedule in ("greedy", "random"):
        run = emulated.run(arrays, request.extents, schedule)
        assert run.faults == ()
        for output, found in run.outputs.items():
            assert relative_error(found, exact[output]) <= _TOLERANCES[kind], output
