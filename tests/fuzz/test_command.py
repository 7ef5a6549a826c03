"""The command `fuzz`: exit codes, counterexamples as they are read, notes, JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bbrewrite.cli.main import cli


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)

    def write_rules(text: str, name: str = "t.rules") -> str:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return name

    return write_rules


def fuzz(*arguments: str, budget: str = "0.3") -> Result:
    return CliRunner().invoke(cli, ["fuzz", *arguments, "--jobs", "1", "--budget", budget])


def test_a_sound_rule_passes(write) -> None:
    result = fuzz(write("rule r\n    row_sum(row_scale(a, c)) => row_scale(row_sum(a), c)\n"))
    assert result.exit_code == 0
    assert result.stdout.startswith("ok       r  ")
    assert "rationals" in result.stdout
    assert "1 tested: 1 sound" in result.stdout


def test_a_counterexample_is_shown_step_by_step(write) -> None:
    result = fuzz(write("rule floor_of_negation\n    floor(0 - x) => 0 - floor(x)\n"))
    assert result.exit_code == 1
    assert (
        result.stdout
        == """\
unsound  floor_of_negation  t.rules:1
    x = 1/2
    left              | right
    0 - x = -1/2      | floor(x) = 0
    floor(0 - x) = -1 | 0 - floor(x) = 0
    the left side is -1, the right side is 0

1 tested: 1 unsound
"""
    )


@pytest.mark.parametrize("monoid", ["min", "max"])
def test_loops_of_a_counterexample_run_where_they_can(write, monoid: str) -> None:
    text = f"rule r\n    reduce({monoid}, i, c - x) => c - reduce({monoid}, i, x)\n    where i not in free(c)\n"
    shown = fuzz(write(text)).stdout
    assert "i: extent 2, 2 iterations" in shown
    assert "no iteration" not in shown


def test_a_loop_is_empty_where_nothing_else_refutes_a_rule(write) -> None:
    shown = fuzz(write("rule r\n    reduce(max, i, c) => c\n    where i not in free(c)\n")).stdout
    assert "i: extent 0, no iteration" in shown
    assert "it would hold where size(i) > 0" in shown


def test_the_missing_condition_is_named(write) -> None:
    text = "rule hoist\n    reduce(sum, i, row_scale(x, c)) => row_scale(reduce(sum, i, x), c)\n"
    result = fuzz(write(text))
    assert "it would hold where i not in free(c)\n" in result.stdout
    assert "c at i = 1" in result.stdout


@pytest.mark.parametrize(
    ("rule", "condition"),
    [
        ("sqrt(x * x) => x", "nonnegative(x)"),
        ("abs(x) => x * x / abs(x)", "nonzero(x)"),
        ("x ^ a * y => x ^ (a + 1) * y / x", "nonzero(x)"),
        ("exp(reduce(max, i, x)) => reduce(max, i, exp(x))", "size(i) > 0"),
    ],
)
def test_conditions_that_would_save(write, rule: str, condition: str) -> None:
    assert condition in fuzz(write(f"rule r\n    {rule}\n"), budget="1").stdout.split("it would hold where ")[1]


def test_a_hopeless_rule_names_no_condition(write) -> None:
    assert "it would hold" not in fuzz(write("rule r\n    tanh(x) => sigmoid(x)\n")).stdout


def test_small_differences_show_enough_digits(write) -> None:
    text = "rule r\n    sigmoid(x) => 0.5 + 0.5 * tanh(0.50000000000000001 * x)\n    where positive(x)\n"
    output = fuzz(write(text)).stdout
    assert "1 tested: 1 sound" in output  # the literal is the double 0.5
    lines = fuzz(write("rule r\n    log(x) => log(x) + 1e-30 * x\n")).stdout.splitlines()
    verdict = next(number for number, line in enumerate(lines) if "the left side is" in line)
    left, right = lines[verdict].removeprefix("    the left side is ").split(", the right side is ")
    assert left != right
    # So do the evaluations above, whose last steps are the two sides.
    assert left in "\n".join(lines[:verdict])
    assert right in "\n".join(lines[:verdict])
    combine = "combine (s1), (s2) => s1 + s2 + 1e-30 * exp(s2)"
    monoid = f"monoid m\n    state s\n    identity 0\n    element x => x\n    {combine}\n    finish s\n"
    told = [line.split(" = ")[-1] for line in fuzz(write(monoid)).stdout.splitlines() if "combine" in line]
    assert len(told) > 1, told
    assert len(set(told)) == len(told)


@pytest.mark.parametrize(
    ("rule", "note"),
    [
        ("where(a < b, a, b) => minimum(a, b)", "a = nan, b = 0 gives 0 and nan"),
        ("exp(a) * exp(b) => exp(a + b)", "overflow: a = 800, b = -800 gives nan and 1"),
        ("x * 0 => 0", "infinities and NaN: x = nan gives nan and 0"),
        ("x - x => 0", "infinities and NaN: x = nan gives nan and 0"),
        # Two terms that overflow together only.
        ("reduce(sum, i, x - y) => reduce(sum, i, x) - reduce(sum, i, y)", "overflow: x = 1e+308, y = 1e+308 gives 0"),
        ("row_sum(a / 2) => row_sum(a) / 2", "overflow: a = 1e+308 gives 1e+308 and inf"),
    ],
)
def test_float_notes_are_printed_and_pass(write, rule: str, note: str) -> None:
    result = fuzz(write(f"rule r\n    {rule}\n"))
    assert result.exit_code == 0
    assert note in result.stdout


def test_finite_silences_the_note_on_infinities(write) -> None:
    assert "note" not in fuzz(write("rule r\n    x * 0 => 0\n    where finite(x)\n")).stdout


def test_lost_accuracy_is_a_warning_that_proposes_fast_math(write) -> None:
    rule = "dot(row_shift(a, c), b) => dot(a, b) + outer(c, row_sum(b))"
    result = fuzz(write(f"rule r\n    {rule}\n"))
    assert result.exit_code == 0
    assert "warning: loses accuracy in float32: exact " in result.stdout
    assert 'mark it @fast_math("why")' in result.stdout
    result = fuzz(write(f'@fast_math("cancels")\nrule r\n    {rule}\n'))
    assert "warning" not in result.stdout
    assert "note: loses accuracy" in result.stdout


def test_a_harmless_rule_has_no_warning(write) -> None:
    result = fuzz(write("rule r\n    dot(row_scale(a, c), b) => row_scale(dot(a, b), c)\n"))
    assert "warning" not in result.stdout


def test_shapes_that_agree_only_for_special_sizes_are_unsound(write) -> None:
    result = fuzz(write("rule r\n    transpose(a) * 0 => a * 0\n"))
    assert result.exit_code == 1
    assert "one only where sizes open on the left are equal" in result.stdout


def test_a_broken_monoid_shows_three_states(write) -> None:
    text = "monoid gap\n    state s\n    identity 0\n    element x => x\n    combine a, b => a - 2 * b\n"
    result = fuzz(write(text))
    assert result.exit_code == 1
    text = "monoid skew\n    state s\n    identity 0\n    element x => x\n    combine a, b => a + b + a * a * b\n"
    result = fuzz(write(text))
    assert "not a monoid: combine(combine(a, b), c) = combine(a, combine(b, c)) fails" in result.stdout
    assert all(f"    {name} = (" in result.stdout for name in "abc")


def test_what_cannot_be_tested_is_said(write) -> None:
    result = fuzz(write("rule r\n    x + y => y + x\n    where positive(x * 0)\n"))
    assert result.exit_code == 1
    assert result.stdout.startswith("untested r")
    assert "instances met the conditions" in result.stdout


def test_json(write) -> None:
    result = fuzz(write("rule good\n    x + y => y + x\nrule bad\n    x - y => y - x\n"), "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert found["ok"] is False
    assert [(r["name"], r["verdict"], r["line"]) for r in found["reports"]] == [
        ("good", "sound", 1),
        ("bad", "unsound", 3),
    ]
    assert found["reports"][0]["exact_in"].keys() == {"rationals"}
    assert found["reports"][1]["lines"][-1].startswith("the left side is")


def test_one_seed_gives_one_counterexample(write) -> None:
    name = write("rule r\n    dot(a, b) => dot(b, a)\n")
    assert fuzz(name, "--seed", "7").stdout == fuzz(name, "--seed", "7").stdout


def test_one_rule_can_be_chosen(write) -> None:
    name = write("rule good\n    x + y => y + x\nrule bad\n    x - y => y - x\n")
    assert fuzz(name, "--rule", "good").exit_code == 0
    result = fuzz(name, "--rule", "goof")
    assert result.exit_code == 2
    assert "did you mean `good`?" in result.stderr


def test_files_and_directories_in_several_processes(write, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    write("rule one\n    x + y => y + x\n")
    write("rule two\n    x * y => y * x\n", "more/two.rules")
    result = CliRunner().invoke(cli, ["fuzz", "t.rules", "more", "--jobs", "2", "--budget", "0.2"])
    assert result.exit_code == 0
    assert "2 tested: 2 sound" in result.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["more", "t.rules"]  # nothing is left behind


def test_rules_without_meaning_are_the_users_fault(write) -> None:
    result = fuzz(write("rule r\n    row_scale(a, c) => row_scale(a, d)\n"))
    assert result.exit_code == 2
    assert "t.rules:2:" in result.stderr
    assert "`d` is not on the left side" in result.stderr


def test_no_rules(write) -> None:
    result = fuzz(write("# nothing\n"))
    assert result.exit_code == 0
    assert "there are no rules" in result.stdout
