"""Do the checks bite? Faults are planted in kernels that pass, and must be found: by a check, or by the numbers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest

from bbrewrite.emulate.program import EmulatedProgram
from tests.codegen.cuda.planted_faults import missing_waits, with_headers, wrong_masks
from tests.codegen.cuda.programs import NAMES, SHAPES, case, data, nvcc, run

_PLAIN_ATTENTION = ("attention", "attention_few_rows", "grouped_query_attention")
# What runs fastest and still goes round every loop is tried first: it finds most.
_SHAPES = sorted(SHAPES, key=("ragged", "aligned", "tiny").index)
_STEP_LIMIT = 400_000  # a fault may make a loop endless


@cache
def _experiment(name: str, kind: str, number: int) -> tuple[Mapping[str, int], Mapping[str, Any], Mapping[str, Any]]:
    """Extents, arrays, and the outputs of the right kernels.

    Every second one has, instead of the arrays that are drawn, ones of one sign each: scores far below 0 tell a
    forgotten mask, whose entries are 0, from the others.
    """
    shape = _SHAPES[number // 2]
    given = data(name, kind, shape)
    if number % 2 == 0:
        return given.extents, given.arrays, run(name, kind, shape, "greedy").outputs
    signs = [5.0 if position % 2 == 0 else -5.0 for position in range(len(given.arrays))]
    arrays = {n: (np.abs(a) * s).astype(a.dtype) for (n, a), s in zip(given.arrays.items(), signs, strict=True)}
    return given.extents, arrays, case(name, kind).emulated.run(arrays, given.extents).outputs


def _is_found(program: EmulatedProgram, name: str, kind: str) -> bool:
    for number in range(2 * len(_SHAPES)):
        extents, arrays, right = _experiment(name, kind, number)
        for schedule in ("greedy", "random"):
            found = program.run(arrays, extents, schedule)
            if found.faults or any(
                not np.array_equal(values.view(np.uint8), found.outputs[output].view(np.uint8))
                for output, values in right.items()
            ):
                return True
    return False


@pytest.mark.parametrize(
    "name",
    [
        "attention",
        "rmsnorm_swiglu",
        "attention_few_rows",
        pytest.param("layernorm_matmul", marks=pytest.mark.slow),
        pytest.param("masked_attention", marks=pytest.mark.slow),
        pytest.param("rmsnorm_qkv", marks=pytest.mark.slow),
        pytest.param("grouped_query_attention", marks=pytest.mark.slow),
        pytest.param("layernorm_matmul_few_rows", marks=pytest.mark.slow),
        pytest.param("rmsnorm_swiglu_few_rows", marks=pytest.mark.slow),
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
@pytest.mark.parametrize("kind", ["bf16", "f16", "f32"])
def test_wrong_masks_are_found(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mask of a kernel by that kernel, one of a block operator by any kernel that uses it.

    Masks of folds count in attention without a mask alone: elsewhere what is beyond the count is 0 in a sum, or hidden
    by the program's own mask.
    """
    monkeypatch.setattr("bbrewrite.emulate.machine._STEP_LIMIT", _STEP_LIMIT)
    found: dict[str, bool] = {}
    for name in NAMES:
        tested, compiler = case(name, kind), nvcc()
        right = compiler.ptx(with_headers(tested.source.text)).read_text(encoding="utf-8")
        for change, text in wrong_masks(tested.source.text):
            if not change.is_of_operator and "folded" in change.text and name not in _PLAIN_ATTENTION:
                continue
            key = change if change.is_of_operator else f"{name}: {change}"
            ptx = compiler.ptx(text).read_text(encoding="utf-8")
            if _instructions(ptx) != _instructions(right) and not found.get(str(key)):
                program = EmulatedProgram(tested.fusion.fused.kernels, tested.source, ptx)
                found[str(key)] = _is_found(program, name, kind)
    missed = [change for change, is_found in found.items() if not is_found]
    assert found
    assert len(missed) <= 0.05 * len(found), "\n".join(missed)


def _instructions(ptx: str) -> list[str]:
    return [line for line in ptx.splitlines() if line.startswith("\t") and not line.startswith("\t.")]
