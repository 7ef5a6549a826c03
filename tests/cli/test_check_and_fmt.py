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


def test_check_takes_sizes_and_blocks(bbrewrite: Command, rules: Path) -> None:
    Path("p.bb").write_text("program p\nindex m, n = 4\ninput X[m] : f32\noutput Y[n] = X[2 * n]\n")
    assert bbrewrite("check", rules, "p.bb").exit_code == 0  # the extent of m is open
    assert bbrewrite("check", rules, "p.bb", "--size", "m=7").exit_code == 0
    short = bbrewrite("check", rules, "p.bb", "--size", "m=6")
    assert short.exit_code == 2
    assert "p.bb:4:15: error[out-of-range]: X is read at 2 * n = 6 at n = 3, but size(m) is 6" in short.stderr
    for option, message in [
        (["--size", "k=2"], "--size k: the program has no index k"),
        (["--block", "k=2"], "--block k: the program has no index k"),
    ]:
        result = bbrewrite("check", rules, "p.bb", *option)
        assert (result.exit_code, message in result.stderr) == (2, True)
    assert bbrewrite("check", rules, "--size", "m=2").exit_code == 2


def test_what_no_output_needs_is_a_warning(bbrewrite: Command, rules: Path) -> None:
    text = "program p\nindex m = 4\ninput X[m], Z[m] : f32\nA[m] = exp(X[m])\nB[m] = A[m] + 1\noutput Y[m] = X[m] + 1\n"
    Path("p.bb").write_text(text)
    result = bbrewrite("check", rules, "p.bb")
    assert result.exit_code == 0
    told = [line for line in result.stderr.splitlines() if "warning" in line]
    places = [("3:13", "Z"), ("4:1", "A"), ("5:1", "B")]
    assert told == [f"p.bb:{place}: warning[unused]: no output needs `{name}`" for place, name in places]
    assert "3 definitions, 3 warnings" in result.stdout


def test_what_a_later_iteration_needs_is_no_warning(bbrewrite: Command, rules: Path) -> None:
    text = """program p
index m = 4, t = 3
input X[m], W[t] : f32
repeat t
  carry A[m] = X[m]
  carry B[m] = X[m]
  carry C[m] = X[m]
  next A[m] = B[m] * W[t]
  next B[m] = A[m]
  next C[m] = C[m] + A[m]
output Y[m] = A[m]
"""
    Path("p.bb").write_text(text)
    stderr = bbrewrite("check", rules, "p.bb").stderr
    assert "`C`" in stderr
    assert not any(f"`{name}`" in stderr for name in "ABXW")


def test_a_report_shows_few_warnings_and_counts_the_rest(bbrewrite: Command, rules: Path) -> None:
    unused = "".join(f"A{number}[m] = X[m] + {number}\n" for number in range(5))
    Path("p.bb").write_text(f"program p\nindex m = 4\ninput X[m] : f32\n{unused}output Y[m] = X[m] + 1\n")
    report = " ".join(bbrewrite("run", rules, "p.bb", "--target", "numpy").stdout.split())
    assert "note: p.bb:6:1: no output needs `A2`" in report
    assert "`A3`" not in report
    assert "note: 2 more warnings; `bbrewrite check` shows all" in report


def test_a_value_that_depends_on_a_block_size_is_a_warning(bbrewrite: Command, rules: Path) -> None:
    text = "block program p\nindex b = 2, n = 8 by 4\ninput c[b, n] : f32\n"
    Path("p.bb").write_text(text + "output y = map b: map n: sum_of(c[b, n])\n")
    result = bbrewrite("check", rules, "p.bb")
    assert result.exit_code == 0
    assert "p.bb:4:26: warning[block-size]: the value depends on the block size of n" in result.stderr
    assert "1 definition, 1 warning" in result.stdout
    assert "block-size" not in bbrewrite("check", rules, "p.bb", "--block", "n=8").stderr
    report = bbrewrite("run", rules, "p.bb", "--target", "numpy").stdout
    assert "note: p.bb:4:26: the value depends on the block size of n" in " ".join(report.split("\n"))


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
