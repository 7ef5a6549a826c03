"""The comparison with libraries: its programs mean what its references compute, and what it makes of contenders."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bbrewrite.core.operators import builtin_table
from bbrewrite.core.spans import Source
from bbrewrite.lang.programs import parse_program
from bbrewrite.verify.exact import evaluate_exactly
from benchmarks.compare.publish import BEGIN, joined, stored_results, with_results
from benchmarks.compare.report import markdown_table, summary_lines, table_lines
from benchmarks.compare.results import Results, Row, Times, read_results
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


def _row(ours: Times, *peers: Times, chosen_from: tuple[Times, ...] = ()) -> Row:
    limits = (48.0,) * len(ours.rounds)
    return Row("matmul", (2, 3, 4), "f32", 48, "GFLOP/s", "multiply-adds", limits, (ours, *peers), chosen_from)


_OURS = Times("bbrewrite", (2.0,))
_SLOW, _FAST, _WRONG = Times("slow", (4.0, 5.0)), Times("fast", (3.0, 2.0, 9.0)), Times("wrong", (), 9.0, "wrong")


def test_the_fastest_right_peer_counts() -> None:
    row = _row(_OURS, _SLOW, _FAST, _WRONG)
    assert row.ratio == 1.5
    assert row.fraction == 0.5
    assert "ratio 1.50" in table_lines(row)[0]
    assert table_lines(row)[-1].split() == ["wrong", "wrong"]
    assert summary_lines([row, _row(_OURS, _SLOW)]) == ["matmul f32: geometric mean 1.84, least 1.50"]


def test_the_share_of_a_limit_that_swings_is_that_of_each_round() -> None:
    row = replace(_row(Times("bbrewrite", (1.0, 2.0, 4.0))), limits=(96.0, 48.0, 24.0))
    assert (row.fraction, row.limit) == (0.5, 48.0)


def test_a_peer_chosen_in_one_run_counts_in_another_though_it_is_slower_there() -> None:
    chosen_from = (_OURS, Times("slow", (1.0,)), Times("fast", (2.0,)), _WRONG)
    row = _row(_OURS, _SLOW, _FAST, chosen_from=chosen_from)
    assert row.best_peer == _SLOW
    assert row.ratio == 2.25


@pytest.mark.parametrize("peers", [(), (_WRONG,)])
def test_without_right_peers_there_is_no_ratio(peers: tuple[Times, ...]) -> None:
    row = _row(_OURS, *peers)
    assert row.ratio is None
    assert summary_lines([row]) == []


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    results = Results("a processor", 2, 7, {"NumPy": "2.0"}).with_row(_row(_OURS, _SLOW, chosen_from=(_OURS, _SLOW)))
    results.write(tmp_path / "results.json")
    assert read_results(tmp_path / "results.json") == results


def test_the_table_has_a_line_for_each_kind_and_a_dash_for_what_was_not_timed() -> None:
    f32 = Results("a processor", 2, 7, {"NumPy": "2.0"}).with_row(_row(_OURS, _FAST))
    bf16 = f32.with_row(replace(_row(_OURS), shape=(8, 8, 8), element="bf16"))
    times, nothing = "\N{MULTIPLICATION SIGN}", "\N{EN DASH}"
    assert markdown_table([f32, replace(bf16, rows=bf16.rows[1:])]).splitlines()[-1] == (
        f"| matmul | 2{times}3{times}4, 8{times}8{times}8 | 1.50, {nothing} | 50 % of multiply-adds "
        f"| {nothing}, {nothing} | 50 % of multiply-adds |"
    )


def test_rows_of_several_runs_are_joined_and_later_ones_count() -> None:
    run = Results("a processor", 2, 7, {"NumPy": "2.0"})
    first = run.with_row(_row(_OURS, _SLOW)).with_row(replace(_row(_OURS), shape=(8, 8, 8)))
    later = run.with_row(_row(_OURS, _FAST)).with_row(replace(_row(_OURS), element="bf16"))
    assert joined([first, later]) == {
        "f32": replace(run, rows=(first.rows[1], later.rows[0])),
        "bf16": replace(run, rows=later.rows[1:]),
    }


def test_the_readme_shows_the_stored_results() -> None:
    """`python -m benchmarks.compare.publish` writes them there."""
    readme = Path(__file__).parents[2].joinpath("README.md").read_text(encoding="utf-8")
    assert BEGIN in readme
    assert with_results(readme, stored_results()) == readme
