"""Extents of 0 on a GPU: what has no rows is not launched, and what would reduce over nothing is refused."""

from __future__ import annotations

import numpy as np
import pytest

from bbrewrite.codegen.cuda.program import print_cuda
from bbrewrite.emulate.program import EmulatedProgram
from tests.codegen.cuda.programs import TARGET, nvcc
from tests.codegen.kernel_cases import arrays_for, matmul, table_with_weight


def _emulated() -> EmulatedProgram:
    assert TARGET.gpu is not None
    program = matmul(b=16)
    source = print_cuda(program, table_with_weight(), TARGET.gpu)
    return EmulatedProgram(program, source, nvcc().ptx(source.text))


@pytest.mark.parametrize("extents", [{"m": 0, "n": 5, "k": 7}, {"m": 3, "n": 0, "k": 7}])
def test_without_rows_nothing_is_launched(extents: dict[str, int]) -> None:
    emulated = _emulated()
    (output,) = emulated.program.outputs
    run = emulated.run(arrays_for(emulated.program, extents, 0), extents)
    assert run.faults == ()
    assert run.outputs[output.name].size == 0
    assert sum(int(report.executed.sum()) for report in run.reports) == 0


def test_a_sum_over_nothing_is_refused_by_launchers() -> None:
    emulated = _emulated()
    extents = {"m": 3, "n": 5, "k": 0}
    with pytest.raises(ValueError, match="needs extents of at least 1, k is 0"):
        emulated.run(arrays_for(emulated.program, extents, 0), extents)
    assert emulated.source.launches.loops_over_nothing(extents)
    assert "size_k < 1" in emulated.source.text
    assert "size_m < 0" in emulated.source.text
    np.testing.assert_array_equal([kernel.blocks({"m": 33, "n": 5, "k": 0}) for kernel in emulated.source.kernels], [3])
