"""Do the checks bite? Faults are planted in kernels that pass, and must be found: by a check, or by the numbers."""

from __future__ import annotations

import numpy as np
import pytest

from bbrewrite.emulate.program import EmulatedProgram
from tests.codegen.cuda.planted_faults import missing_waits, wrong_masks
from tests.codegen.cuda.programs import SHAPES, case, data, nvcc, run

_STEP_LIMIT = 400_000  # a fault may make a loop endless


def _is_found(program: EmulatedProgram, name: str, kind: str) -> bool:
    for shape in SHAPES:
        given, right = data(name, kind, shape), run(name, kind, shape, "greedy")
        for schedule in ("greedy", "random"):
            found = program.run(given.arrays, given.extents, schedule)
            if found.faults:
                return True
            for output, values in right.outputs.items():
                if not np.array_equal(values.view(np.uint8), found.outputs[output].view(np.uint8)):
                    return True
    return False


@pytest.mark.parametrize(
    "name",
    [
        "attention",
        "rmsnorm_swiglu",
        pytest.param("layernorm_matmul", marks=pytest.mark.slow),
        pytest.param("masked_attention", marks=pytest.mark.slow),
        pytest.param("rmsnorm_qkv", marks=pytest.mark.slow),
    ],
)
def test_missing_waits_and_barriers_are_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bbrewrite.emulate.machine._STEP_LIMIT", _STEP_LIMIT)
    kernels = case(name, "bf16").emulated.kernels
    missed: list[str] = []
    count = 0
    for position, kernel in enumerate(kernels):
        for fault in missing_waits(kernel):
            changed = (*kernels[:position], fault.kernel, *kernels[position + 1 :])
            count += 1
            if not _is_found(case(name, "bf16").emulated.with_kernels(changed), name, "bf16"):
                missed.append(
                    f"{kernel.kernel.name}: {kernel.code[fault.place].operation}, {kernel.place(fault.place)}"
                )
    assert count > 0
    assert len(missed) <= 0.05 * count, "\n".join(missed)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["attention", "layernorm_matmul", "rmsnorm_swiglu", "masked_attention"])
@pytest.mark.parametrize("kind", ["bf16", "f32"])
def test_wrong_masks_are_found(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bbrewrite.emulate.machine._STEP_LIMIT", _STEP_LIMIT)
    tested, compiler = case(name, kind), nvcc()
    right = compiler.ptx(tested.source.text).read_text(encoding="utf-8")
    missed: list[str] = []
    count = 0
    for change, text in wrong_masks(tested.source.text):
        ptx = compiler.ptx(text).read_text(encoding="utf-8")
        if _instructions(ptx) == _instructions(right):
            continue  # the mask is one of a block operator that this program does not use
        count += 1
        program = EmulatedProgram(tested.fusion.fused.kernels, tested.source, ptx)
        if not _is_found(program, name, kind):
            missed.append(change)
    assert count > 0
    assert len(missed) <= 0.05 * count, "\n".join(missed)


def _instructions(ptx: str) -> list[str]:
    return [line for line in ptx.splitlines() if line.startswith("\t") and not line.startswith("\t.loc")]
