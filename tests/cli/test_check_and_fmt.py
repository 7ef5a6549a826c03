"""`check` on rules that are strange or whose examples fail, and `fmt` on files of both languages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import SCALED_SUM, Command

HOIST = "# sum_i c x_i = c sum_i x_i\nrule hoist\n    reduce(sum, i, x * c)  =>  reduce(sum, i, x) * c\n"
CONDITION = "    where i not in free(c)\n"


def test_warnings_are_printed_and_pass(bbrewrite: Command) -> None:
    Path("a.rules").write_text(HOIST)
    result = bbrewrite("check", "a.rules")
    assert result.exit_code == 0
    assert "a.rules:3:52: warning[scope]" in result.stderr
    assert "add `where i not in free(c)`" in result.stderr
    assert "a.rules: 1 rule, no examples, 1 warning" in result.stdout


def test_run_only_counts_warnings(bbrewrite: Command, scaled_sum: Path) -> None:
    Path("a.rules").write_text(HOIST)
    result = bbrewrite("fuse", "a.rules", scaled_sum, "--size", "m=4")
    assert result.exit_code == 0
    assert result.stderr.strip() == "a.rules: 1 warning; `bbrewrite check` shows them"


def test_an_example_that_fails_is_a_wrong_claim(bbrewrite: Command) -> None:
    Path("a.rules").write_text(HOIST + CONDITION + "    test  reduce(sum, i, at(x, i) * at(c, i)) => 1\n")
    result = bbrewrite("check", "a.rules")
    assert result.exit_code == 1
    assert "a.rules:5:5: error[example]: `hoist` does not apply" in result.stderr
    Path("a.rules").write_text(HOIST + CONDITION + "    test  reduce(sum, i, at(x, i) * at(c, i)) stays\n")
    assert bbrewrite("check", "a.rules").exit_code == 0


def test_types(bbrewrite: Command) -> None:
    Path("a.rules").write_text(HOIST + CONDITION)
    assert bbrewrite("check", "a.rules", "--types").stdout == "hoist(x[i]: block, c: block) -> block\n"


def test_fmt_writes_in_place(bbrewrite: Command) -> None:
    Path("a.rules").write_text(HOIST.replace("  =>  ", "=>") + "  where i   not in free(c)\n")
    Path("a.bb").write_text("program p\noutput y=1\n")
    assert bbrewrite("fmt", "--check", "a.rules", "a.bb").stdout == "a.rules would change\na.bb would change\n"
    assert bbrewrite("fmt", "--check", "a.rules", "a.bb").exit_code == 1
    assert bbrewrite("fmt", "a.rules", "a.bb").exit_code == 0
    assert Path("a.rules").read_text() == HOIST + CONDITION
    assert Path("a.bb").read_text() == "program p\noutput y = 1\n"
    again = bbrewrite("fmt", "--check", ".")
    assert (again.exit_code, again.output) == (0, "")


@pytest.mark.parametrize(("name", "text"), [("a.rules", "rule r\n exp(x) -> x\n"), ("a.bb", SCALED_SUM + "output =\n")])
def test_fmt_leaves_a_file_with_a_fault(bbrewrite: Command, name: str, text: str) -> None:
    Path(name).write_text(text)
    result = bbrewrite("fmt", name)
    assert result.exit_code == 2
    assert f"{name}:" in result.stderr
    assert Path(name).read_text() == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rule r exp(x)=>1", "rule r\n    exp(x)  =>  1\n"),
        ("program p\noutput y=1", "program p\noutput y = 1\n"),
        ("", ""),
    ],
)
def test_fmt_of_standard_input(bbrewrite: Command, text: str, expected: str) -> None:
    assert bbrewrite("fmt", "-", input=text).stdout == expected
    assert bbrewrite("fmt", "-", "--check", input=text).exit_code == int(text != expected)
    assert bbrewrite("fmt", "-", input="rule r\n").exit_code == 2


def test_fmt_of_a_missing_file(bbrewrite: Command) -> None:
    result = bbrewrite("fmt", "none.rules")
    assert (result.exit_code, "no file none.rules" in result.stderr) == (2, True)
