"""Products of tf32 in every arrangement of their operands: right, and with no bank of shared memory asked twice."""

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
from tests.codegen.cuda.programs import nvcc, relative_error, target_of
from tests.plan.pipelines import shipped_rules

_LEFT = {
    "rows": ("A[m, k]", "A[m, k]"),
    "columns": ("A[k, m]", "A[k, m]"),
    "computed": ("A[m], C[k]", "exp(A[m] - C[k] * C[k])"),
}
_RIGHT = {"rows": "B[n, k]", "columns": "B[k, n]"}
_EXTENTS = ({"m": 64, "n": 64, "k": 96}, {"m": 70, "n": 72, "k": 100}, {"m": 3, "n": 5, "k": 7})


@pytest.mark.parametrize("right", _RIGHT)
@pytest.mark.parametrize("left", _LEFT)
def test_operands_of_products_lie_in_different_banks(left: str, right: str) -> None:
    declared, operand = _LEFT[left]
    text = (
        f"program product\nindex m = 2048, n = 2048, k = 2048\ninput {declared}, {_RIGHT[right]} : f32\n"
        f"output Y[m, n] = sum[k]({operand} * {_RIGHT[right]})\n"
    )
    rules, target = shipped_rules(), target_of("tf32")
    request = make_request(parse_program(Source("product", text), rules.table), rules)
    assert target.gpu is not None
    program = fuse(request, target).fused.kernels
    source = print_cuda(program, rules.table, target.gpu)
    assert "dot_add_tf32" in source.text
    emulated = EmulatedProgram(program, source, nvcc().ptx(source.text))
    for extents in _EXTENTS:
        arrays = draw_inputs(request.program, extents, 0, {})
        run = emulated.run(arrays, extents)
        assert run.faults == ()
        exact = evaluate_exactly(request.program, arrays, extents, rules.table)["Y"]
        assert relative_error(run.outputs["Y"], exact) <= 2**-10
        if extents == _EXTENTS[0]:  # in others entries are copied one by one
            assert sum(r.shared_passes for r in run.reports) == sum(r.shared_requests for r in run.reports)
