"""The comparison with libraries: its programs mean what its references compute, and what it makes of contenders."""

from dataclasses import replace

import numpy as np
import pytest

from bbrewrite.core.operators import builtin_table
from bbrewrite.core.spans import Source
from bbrewrite.lang.programs import parse_program
from bbrewrite.verify.exact import evaluate_exactly
from benchmarks.compare.contenders import Contender
from benchmarks.compare.measuring import Row
from benchmarks.compare.report import summary_lines, table_lines
from benchmarks.compare.workloads import Workload, all_workloads

_KINDS = {workload.kind: workload for element in ("f32", "bf16") for workload in all_workloads(element)}


@pytest.mark.parametrize("element", ["f32", "bf16"])
@pytest.mark.parametrize("kind", _KINDS)
def test_a_reference_is_what_the_program_says(kind: str, element: str) -> None:
    longest = 300 if kind == "softcap window attention" else 7  # longer than the window
    shape = {2: (5, 11), 3: (3, longest, 4)}[len(_KINDS[kind].shape)]
    workload = replace(_KINDS[kind], shape=shape, element=element)
    table = builtin_table()
    program = parse_program(Source("workload.bb", workload.text), table)
    extents = {index.name: index.extent for index in program.indices if not index.same_as}
    arrays = {name: workload.stored(array) for name, array in (workload.inputs | workload.weights).items()}
    exact = evaluate_exactly(program, arrays, extents, table)
    np.testing.assert_allclose(
        np.asarray(exact["Y"], np.float64).reshape(workload.reference.shape), workload.reference, atol=1e-12
    )


def test_masked_pairs_do_not_count_as_work() -> None:
    full, causal = (Workload(kind, (2, 8, 4), "f32").flops for kind in ("attention", "causal attention"))
    assert (full, causal) == (4 * 2 * 4 * 64, 4 * 2 * 4 * 36)


def _contender(name: str, *seconds: float, fault: str = "") -> Contender:
    return Contender(name, lambda: None, lambda: np.zeros(1), list(seconds), 0.0, fault)


def test_the_fastest_right_peer_counts() -> None:
    peers = (_contender("slow", 4.0, 5.0), _contender("fast", 3.0, 2.0, 9.0), _contender("wrong", 0.1, fault="wrong"))
    row = Row(Workload("matmul", (2, 3, 4), "f32"), (_contender("bbrewrite", 2.0), *peers), "multiply-adds", 48.0)
    assert row.ratio == 1.5
    assert row.fraction == 0.5
    assert "ratio 1.50" in table_lines(row)[0]
    assert table_lines(row)[-1].split() == ["wrong", "wrong"]
    assert summary_lines([row, replace(row, contenders=row.contenders[:2])]) == [
        "matmul f32: geometric mean 1.84, least 1.50"
    ]


def test_without_peers_there_is_no_ratio() -> None:
    row = Row(Workload("matmul", (2, 3, 4), "f32"), (_contender("bbrewrite", 2.0),), "multiply-adds", 48.0)
    assert row.ratio is None
    assert summary_lines([row]) == []
