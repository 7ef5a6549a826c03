"""The programs of `benchmarks/gpu`, as far as that goes without a GPU: planned, compiled without spills, and right."""

from __future__ import annotations

import pytest

from bbrewrite.codegen.cuda.program import print_cuda
from bbrewrite.core.spans import Source
from bbrewrite.emulate.program import EmulatedProgram
from bbrewrite.fusion import fuse
from bbrewrite.inputs import draw_inputs
from bbrewrite.lang.programs import parse_program
from bbrewrite.plan.target import gpu_target
from bbrewrite.request import Request, make_request
from bbrewrite.verify.exact import evaluate_exactly
from benchmarks.gpu.programs import CheckedProgram, TimedProgram, conformance_programs, timed_programs
from tests.codegen.cuda.programs import TARGET, nvcc, relative_error
from tests.plan.pipelines import shipped_rules

_TOLERANCES = {"bf16": 2**-7, "f16": 2**-10, "f32": 2**-20}


def _request(label: str, text: str) -> Request:
    rules = shipped_rules()
    return make_request(parse_program(Source(label, text), rules.table), rules)


@pytest.mark.slow
@pytest.mark.parametrize("checked", conformance_programs(), ids=lambda checked: checked.label)
def test_conformance_programs_are_right_emulated(checked: CheckedProgram) -> None:
    request = _request(checked.label, checked.text)
    table = request.rules.table
    assert TARGET.gpu is not None
    program = fuse(request, TARGET).fused.kernels
    source = print_cuda(program, table, TARGET.gpu)
    arrays = draw_inputs(request.program, request.extents, 0, request.given)
    exact = evaluate_exactly(request.program, arrays, request.extents, table)
    run = EmulatedProgram(program, source, nvcc().ptx(source.text)).run(arrays, request.extents)
    assert run.faults == ()
    for name, found in run.outputs.items():
        assert relative_error(found, exact[name]) <= _TOLERANCES[checked.kind]


@pytest.mark.slow
@pytest.mark.parametrize("program", timed_programs(), ids=lambda program: program.label)
def test_timed_programs_compile_without_spills(program: TimedProgram) -> None:
    request = _request(program.label, program.text)
    for target, architecture in ((gpu_target("sm_80"), "sm_80"), (gpu_target("sm_90"), "sm_90a")):
        assert target.gpu is not None
        source = print_cuda(fuse(request, target).fused.kernels, request.rules.table, target.gpu)
        for used in nvcc().usage(nvcc().ptx(source.text), architecture).values():
            assert (used.spilled_bytes, used.stack_bytes) == (0, 0)
