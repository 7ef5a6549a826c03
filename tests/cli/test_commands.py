"""The sub-commands on good input: what they print, write and return."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from bbrewrite.cli.report import movement_rows
from bbrewrite.fusion import Movement
from tests.built import cache_with_products
from tests.cli.conftest import ROOT, Command

_JSON_KEYS = {
    "": {"program", "target", "sizes", "ok", "max_rel_err", "before", "after", "rules_applied", "egraph", "ms"},
    "before": {"kernels", "buffers", "global_bytes", "flops"},
    "after": {"kernels", "buffers", "global_bytes", "flops", "local_bytes"},
    "egraph": {"nodes", "classes", "iterations", "stopped_by"},
    "ms": {"import", "parse", "saturate", "extract", "codegen", "compile", "run_unfused", "run_fused"},
}


@pytest.mark.parametrize("target", ["numpy", "cpp"])
def test_run_prints_one_json_object_with_exactly_the_agreed_keys(
    bbrewrite: Command, rules: Path, scaled_sum: Path, target: str
) -> None:
    result = bbrewrite("run", rules, scaled_sum, "--target", target, "--size", "m=7", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    for key, names in _JSON_KEYS.items():
        assert set(report[key] if key else report) == names
    assert report["program"] == "scaled_sum"
    assert report["target"] == target
    assert report["sizes"] == {"m": 7, "n": 5}
    assert report["ok"] is True
    assert report["max_rel_err"] < 1e-6
    assert report["before"]["kernels"] == 2
    assert report["before"]["buffers"] == 1
    assert report["after"]["kernels"] == 1
    assert report["after"]["buffers"] == 0
    assert report["after"]["global_bytes"] < report["before"]["global_bytes"]
    assert report["rules_applied"]["fuse_consecutive_maps"] >= 1
    assert all(isinstance(value, float) for value in report["ms"].values())


def test_without_rules_nothing_is_fused(bbrewrite: Command, tmp_path: Path, scaled_sum: Path) -> None:
    (tmp_path / "none").mkdir()
    result = bbrewrite("run", "none", scaled_sum, "--target", "numpy", "--size", "m=3", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["rules_applied"] == {}
    assert report["after"]["kernels"] == report["before"]["kernels"] == 2


def test_no_rule_is_said_to_be_applied_where_the_plan_is_the_unfused_program(bbrewrite: Command) -> None:
    Path("p.bb").write_text("program p\nindex m = 4\ninput X[m] : f32\noutput Y[m] = sqrt(X[m] * X[m])\n")
    # Both forms are one kernel, and the other one takes longer.
    Path("r.rules").write_text('rule slower "root"\n    sqrt(x)  =>  exp(log(x) / 2)\n    where nonnegative(x)\n')
    result = bbrewrite("run", "r.rules", "p.bb", "--target", "numpy")
    assert "  none: 1 rule matched, and no plan with them takes less time\n" in result.output
    assert json.loads(bbrewrite("run", "r.rules", "p.bb", "--target", "numpy", "--json").stdout)["rules_applied"] == {}


def test_saved_outputs_are_what_given_arrays_make(bbrewrite: Command, rules: Path, scaled_sum: Path) -> None:
    x, w = np.arange(15, dtype=np.float32).reshape(3, 5), np.array([1, 0, 2, 0, 3], np.float32)
    np.save("x.npy", x)
    np.save("w.npy", w)
    np.save("s.npy", np.float32(-2))
    given = ["--input", "X=x.npy", "--input", "w=w.npy", "--input", "s=s.npy"]
    result = bbrewrite("run", rules, scaled_sum, "--target", "numpy", *given, "--save", "deep/out")
    assert result.exit_code == 0, result.output
    saved = np.load("deep/out/Y.npy")
    assert saved.dtype == np.float32
    assert np.array_equal(saved, -2 * (x @ w))


def test_a_scalar_output_is_saved_with_no_axes_and_bf16_as_float32(bbrewrite: Command, rules: Path) -> None:
    Path("p.bb").write_text(
        "program p\nindex m = 4\ninput X[m] : bf16\noutput t = sum[m](X[m])\noutput Z[m] = X[m] + X[m]\n"
    )
    x = np.array([1, 2, 3, 4.5], np.float32)
    np.save("x.npy", x.astype(ml_dtypes.bfloat16))
    result = bbrewrite("run", rules, "p.bb", "--target", "numpy", "--input", "X=x.npy", "--save", "out")
    assert result.exit_code == 0, result.output
    assert np.load("out/t.npy").shape == ()
    assert np.load("out/Z.npy").dtype == np.float32
    assert np.array_equal(np.load("out/Z.npy"), 2 * x)


def test_the_seed_decides_the_drawn_arrays(bbrewrite: Command, rules: Path, scaled_sum: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        options = ["--target", "numpy", "--size", "m=3", "--seed", seed, "--save", name]
        assert bbrewrite("run", rules, scaled_sum, *options).exit_code == 0
    a, b, c = (np.load(f"{name}/Y.npy") for name in "abc")
    assert np.array_equal(a, b)
    assert not np.array_equal(a, c)


def test_the_report_says_what_was_saved_and_whether_it_is_right(
    bbrewrite: Command, rules: Path, scaled_sum: Path
) -> None:
    result = bbrewrite("run", rules, scaled_sum, "--target", "cpp", "--size", "m=7", "--threads", 1)
    assert result.exit_code == 0, result.output
    text = result.stdout
    assert "scaled_sum  m = 7  n = 5\ntarget cpp, 1 thread\n" in text
    assert "kernel Y parallel over" in text
    assert "result: right, compared with the float64 reference" in text
    assert "fuse_consecutive_maps" in text
    (source,) = [line.removeprefix("source: ") for line in text.splitlines() if line.startswith("source: ")]
    assert 'extern "C"' in Path(source).read_text(encoding="utf-8")
    assert "\x1b" not in text
    table = text[text.index("unfused") :].split("\n\n")[0]
    assert max(map(len, table.splitlines())) <= 80


def test_block_sizes_are_kept(bbrewrite: Command, rules: Path, scaled_sum: Path) -> None:
    result = bbrewrite("run", rules, scaled_sum, "--target", "numpy", "--size", "m=100", "--block", "m=24")
    assert result.exit_code == 0, result.output
    assert "m by 24" in result.stdout


def test_lower_prints_what_parses_back(bbrewrite: Command) -> None:
    first = bbrewrite("lower", ROOT / "examples/attention.bb", "--size", "m=100")
    assert first.exit_code == 0, first.output
    assert first.stdout.startswith("block program attention\nindex m = 100 by ")
    Path("again.bb").write_text(first.stdout, encoding="utf-8")
    assert bbrewrite("lower", "again.bb").stdout == first.stdout


def test_lower_takes_the_rules_whose_operators_a_program_uses(bbrewrite: Command) -> None:
    """So do `check` and `fmt`: the text is the same before and after."""
    Path("mine.rules").write_text(
        """\
op halved(x) = x / 2

monoid halves
    state    s
    identity 0
    element  x => halved(x)
    combine  a, b => a + b
""",
        encoding="utf-8",
    )
    text = """\
block program p
index m = 6 by 4, n = 7
input X[n, m] : f32
output Y = map m: halved(reduce halves n: X[n, m])
"""
    Path("p.bb").write_text(text, encoding="utf-8")
    result = bbrewrite("lower", "mine.rules", "p.bb")
    assert (result.exit_code, result.stdout) == (0, text)
    assert bbrewrite("check", "mine.rules", "p.bb").exit_code == 0
    assert bbrewrite("fmt", "--check", "p.bb", "mine.rules").exit_code == 0
    assert "there is no operator `halved`" in bbrewrite("lower", "p.bb").output
    assert bbrewrite("lower", "mine.rules", "p.bb", "p.bb").exit_code == 2


def test_fuse_prints_a_block_program_that_runs(bbrewrite: Command, rules: Path, scaled_sum: Path) -> None:
    result = bbrewrite("fuse", rules, scaled_sum, "--size", "m=7")
    assert result.exit_code == 0, result.output
    text = result.stdout
    assert "block program scaled_sum" in text
    assert "buffers" in text
    # Only a terminal's lines are broken; the program's go on where the language lets them.
    assert "What one loop stores and the next loads need not leave local memory\n" in text
    Path("fused.bb").write_text(text[: text.index("\nkernel ")], encoding="utf-8")
    again = bbrewrite("run", rules, "fused.bb", "--target", "numpy", "--json")
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout)["before"]["kernels"] == 1


def test_codegen_writes_a_project(bbrewrite: Command, rules: Path, scaled_sum: Path) -> None:
    result = bbrewrite("codegen", rules, scaled_sum, "--size", "m=7", "-o", "deep/project")
    assert result.exit_code == 0, result.output
    names = {path.name for path in Path("deep/project").iterdir()}
    assert {"scaled_sum.cpp", "scaled_sum.h", "bb.hpp", "CMakeLists.txt"} <= names


def test_check_counts_and_emits(bbrewrite: Command, rules: Path, scaled_sum: Path) -> None:
    counted = bbrewrite("check", rules, scaled_sum)
    assert counted.exit_code == 0, counted.output
    assert f"{scaled_sum}: program scaled_sum, 3 inputs, 2 definitions" in counted.stdout
    repeated = "repeat layer\n    carry H[m] = X[m]\n    A[m] = H[m] + 1\n    next H[m] = 2 * A[m]\n"
    Path("r.bb").write_text(f"program r\nindex layer = 2, m = 4\ninput X[m] : f32\n{repeated}output Y[m] = H[m]\n")
    assert "1 input, 3 definitions" in bbrewrite("check", rules, "r.bb").stdout
    emitted = bbrewrite("check", rules, "--emit", "egglog")
    assert emitted.exit_code == 0, emitted.output
    assert emitted.stdout.startswith("(sort Term)")


def test_bench_shows_times(bbrewrite: Command, rules: Path, scaled_sum: Path) -> None:
    result = bbrewrite("bench", rules, scaled_sum, "--size", "m=7")
    assert result.exit_code == 0, result.output
    assert "median" in result.stdout
    assert "result: right" in result.stdout


def test_an_extent_of_zero_gives_identities(bbrewrite: Command, rules: Path, scaled_sum: Path) -> None:
    for target in ("numpy", "cpp"):
        options = ["--target", target, "--size", "m=3", "--size", "n=0", "--save", target]
        result = bbrewrite("run", rules, scaled_sum, *options)
        assert result.exit_code == 0, result.output
        assert np.array_equal(np.load(f"{target}/Y.npy"), np.zeros(3))


def test_a_wrong_result_exits_with_1(bbrewrite: Command, scaled_sum: Path) -> None:
    Path("unsound.rules").write_text(
        "# Wrong on purpose.\nrule lose_scale\n    row_sum(col_scale(a, c))  =>  row_sum(a)\n"
        "rule fuse\n    at(map(i, x), i)  =>  x\n"
    )
    result = bbrewrite("run", "unsound.rules", scaled_sum, "--target", "numpy", "--size", "m=4")
    assert result.exit_code == 1, result.output
    assert "result: WRONG" in result.stdout


def test_integers_that_overflow_are_told_in_report_and_json(bbrewrite: Command, rules: Path) -> None:
    Path("p.bb").write_text("program p\nindex m = 2\ninput X[m] : i32\noutput Y[m] = X[m] * X[m]\n")
    np.save("x.npy", np.array([3, 65536], np.int32))
    run = ["run", rules, "p.bb", "--target", "numpy", "--input", "X=x.npy"]
    assert "i32 overflows" in " ".join(bbrewrite(*run).stdout.split())
    report = json.loads(bbrewrite(*run, "--json").stdout)
    assert report["ok"]
    assert "1 entry (first [1])" in report["remarks"][0]


def test_the_report_says_where_nothing_was_fused(
    bbrewrite: Command, rules: Path, scaled_sum: Path, tmp_path: Path
) -> None:
    idle = tmp_path / "idle.rules"
    idle.write_text("rule idle\n    tanh(x) * 1  =>  tanh(x)\n", encoding="utf-8")
    for ruleset, is_said in ((idle, True), (rules, False)):
        found = bbrewrite("fuse", ruleset, scaled_sum, "--size", "m=7")
        assert found.exit_code == 0
        assert ("nothing was fused" in " ".join(found.stdout.split())) is is_said


def test_what_was_built_before_needs_no_compiler(
    bbrewrite: Command, rules: Path, scaled_sum: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, path = cache_with_products(tmp_path / "cache"), os.environ["PATH"]
    monkeypatch.setenv("BBREWRITE_CACHE_DIR", str(cache))
    arguments = ("run", rules, scaled_sum, "--size", "m=4")
    monkeypatch.setenv("PATH", str(tmp_path))
    missing = bbrewrite(*arguments)
    assert (missing.exit_code, "apt install g++" in missing.stderr) == (3, True)
    monkeypatch.setenv("PATH", path)
    assert bbrewrite(*arguments).exit_code == 0
    monkeypatch.setenv("PATH", str(tmp_path))
    known = bbrewrite(*arguments)
    assert known.exit_code == 0, known.output
    # With other block sizes it is another program.
    assert bbrewrite("run", rules, scaled_sum, "--size", "m=4", "--block", "n=2").exit_code == 3
    # A library that was damaged since is not taken.
    for library in cache.glob("*/library.so"):
        whole = library.read_bytes()
        library.unlink()  # what this process has loaded stays as it is
        library.write_bytes(whole[:-1])
    assert bbrewrite(*arguments).exit_code == 3


@pytest.mark.parametrize(("after", "remark"), [(50, "2.0x less"), (100, "1.0x less"), (150, "1.5x more"), (0, "")])
def test_what_moves_more_is_not_called_less(after: int, remark: str) -> None:
    moved = Movement(1, 0, 100, 7, 0, None)
    rows = {row[0]: row[3] for row in movement_rows(moved, replace(moved, global_bytes=after))}
    assert rows["global memory"] == remark


def test_what_is_not_printed_of_a_large_program_is_told(bbrewrite: Command, tmp_path: Path) -> None:
    lines = ["program chain", "index m = 64, n = 64", "input X0[m, n] : f32"]
    lines += [f"X{step}[m, n] = max[m](X{step - 1}[m, n]) + X{step - 1}[m, n]" for step in range(1, 20)]
    program = tmp_path / "chain.bb"
    program.write_text("\n".join([*lines, "output Y[m, n] = X19[m, n]", ""]), encoding="utf-8")
    empty = tmp_path / "none.rules"
    empty.write_text("", encoding="utf-8")
    result = bbrewrite("fuse", empty, program)
    assert result.exit_code == 0, result.output
    assert "planned in parts: " in result.stdout
    assert re.search(r"too long to print: \d+ kernels, which `bbrewrite codegen` writes", result.stdout)
