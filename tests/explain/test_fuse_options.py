"""`fuse --explain --stats --snapshots --json`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Command, bbrewrite, rules, scaled_sum  # noqa: F401  fixtures

_ALWAYS = {"program", "sizes", "before", "after", "rules_applied", "egraph", "ms"}


def test_explain(bbrewrite: Command, rules: Path, scaled_sum: Path) -> None:  # noqa: F811
    found = bbrewrite("fuse", rules, scaled_sum, "--size", "m=6", "--explain")
    assert found.exit_code == 0
    assert "derivation of Y: 2 steps, 2 checked" in found.stdout
    assert "  1  fuse_consecutive_maps" in found.stdout
    assert "fusion.rules:" in found.stdout
    assert found.stdout.count("rules that match nothing in this program:") == 1


def test_a_failed_condition_is_part_of_the_explanation(bbrewrite: Command, tmp_path: Path, scaled_sum: Path) -> None:  # noqa: F811
    text = "rule careful\n    a * b => b * a\n    where nonzero(a)\nrule idle\n    tanh(x) => x\n"
    (tmp_path / "r.rules").write_text(text, encoding="utf-8")
    found = bbrewrite("fuse", "r.rules", scaled_sum, "--size", "m=6", "--explain").stdout
    assert "careful  (r.rules:1)" in found
    assert "the condition `nonzero(a)` is not proved: `a` is `s`" in found
    assert found.count("idle") == 1


def test_a_wrong_step_exits_with_one(bbrewrite: Command, tmp_path: Path, scaled_sum: Path) -> None:  # noqa: F811
    (tmp_path / "r.rules").write_text("rule wrong\n    reduce(sum, i, x) => reduce(max, i, x)\n", encoding="utf-8")
    found = bbrewrite("fuse", "r.rules", scaled_sum, "--size", "m=6", "--explain")
    chosen = "reduce max" in found.stdout.split("derivation")[0]
    assert chosen is (found.exit_code == 1)
    (tmp_path / "r.rules").write_text("rule wrong\n    row_sum(col_scale(x, c)) => row_sum(x)\n", encoding="utf-8")
    fusion = "rule fuse\n    at(map(i, x), i)  =>  x\n"
    with (tmp_path / "r.rules").open("a", encoding="utf-8") as file:
        file.write(fusion)
    found = bbrewrite("fuse", "r.rules", scaled_sum, "--size", "m=6", "--explain")
    assert found.exit_code == 1
    assert "WRONG: 1 step of these do not hold; the rules at fault: wrong" in found.stdout
    as_json = bbrewrite("fuse", "r.rules", scaled_sum, "--size", "m=6", "--explain", "--json")
    assert as_json.exit_code == 1
    assert json.loads(as_json.stdout)["ok"] is False


def test_json(bbrewrite: Command, rules: Path, scaled_sum: Path) -> None:  # noqa: F811
    options = ("--size", "m=6", "--explain", "--stats", "--snapshots", "--json")
    found = json.loads(bbrewrite("fuse", rules, scaled_sum, *options).stdout)
    assert set(found) - _ALWAYS == {"ok", "derivations", "rules", "snapshots"}
    (derivation,) = found["derivations"]
    assert derivation["complete"]
    first = derivation["steps"][0]
    assert first["rule"] == "fuse_consecutive_maps"
    assert first["checked"] is True
    assert first["before"] != first["after"]
    hits = {row["rule"]: row["hits"] for row in found["rules"]}
    assert hits["fuse_consecutive_maps"] == 4
    assert hits["swap_scale_and_dot"] == 0
    assert [row["chosen"] for row in found["snapshots"]].count(True) == 1
    chosen = next(row for row in found["snapshots"] if row["chosen"])
    assert chosen["movement"]["kernels"] == 1


def test_json_has_what_a_run_says_of_the_plan(bbrewrite: Command, rules: Path, scaled_sum: Path) -> None:  # noqa: F811
    fused = json.loads(bbrewrite("fuse", rules, scaled_sum, "--size", "m=6", "--json").stdout)
    run = json.loads(bbrewrite("run", rules, scaled_sum, "--size", "m=6", "--target", "numpy", "--json").stdout)
    assert set(fused) == _ALWAYS
    assert set(fused.pop("ms")) == {"import", "parse", "saturate", "extract"}
    assert fused == {key: run[key] for key in fused}


def test_one_plan_is_chosen_among_equal_ones(bbrewrite: Command, rules: Path, tmp_path: Path) -> None:  # noqa: F811
    """Where no rule applies, the unfused plan is found twice, with the same terms."""
    program = tmp_path / "p.bb"
    program.write_text("program p\nindex m = 8\ninput X[m] : f32\noutput Y[m] = X[m] + 1\n", encoding="utf-8")
    none = tmp_path / "none.rules"
    none.write_text("# nothing\n", encoding="utf-8")
    for chosen in (none, rules):
        rows = json.loads(bbrewrite("fuse", chosen, program, "--snapshots", "--json").stdout)["snapshots"]
        assert [row["chosen"] for row in rows].count(True) == 1, rows


def test_statistics_agree_with_the_run(bbrewrite: Command, rules: Path, tmp_path: Path) -> None:  # noqa: F811
    """Rules run one by one find as much as rules run together."""
    root = Path(__file__).parents[2]
    for name in ("attention", "rmsnorm_swiglu", "layernorm_matmul"):
        program = root / "examples" / f"{name}.bb"
        statistics = json.loads(bbrewrite("fuse", rules, program, "--stats", "--json").stdout)["rules"]
        assert all(row["tries"] > 0 for row in statistics)
        report = bbrewrite("fuse", rules, program).stdout
        for row in statistics:
            listed = f" {row['rule']} " in report.partition("rules that matched")[2]
            assert listed is (row["hits"] > 0), row
