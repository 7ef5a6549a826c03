"""`why-not`: each kind of failed premise is named with its place and term."""

from __future__ import annotations

from pathlib import Path

import pytest

from bbrewrite.rules.load import load_rules
from tests.cli.conftest import Command, bbrewrite, rules  # noqa: F401  fixtures

PROGRAM = """program p
index m = 6, n = 10
input A[m, n], B[m, n], v[m], lam : f32
weight W[m, n] : f32
S[m, n] = A[m, n] * B[m, n]
output Y[m] = sum[n](log(exp(S[m, n]) + W[m, n])) + v[m]
"""
TWO_NESTS = """program p
index m = 6, k = 8, n = 10
input A[m, n], B[k, n], w[n] : f32
output Y[m, n] = A[m, n] * w[n]
output Z[k, n] = B[k, n] * w[n]
"""


def answer(bbrewrite: Command, tmp_path: Path, rule: str, program: str = PROGRAM, *options: str) -> str:  # noqa: F811
    """What `why-not r` prints for one rule, given as the text below its name."""
    (tmp_path / "r.rules").write_text(f"rule r\n{rule}", encoding="utf-8")
    (tmp_path / "p.bb").write_text(program, encoding="utf-8")
    result = bbrewrite("why-not", "r", "p.bb", "--rules", "r.rules", *options)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (
            "    log(x) => log(x) + 0\n    where positive(x)\n",
            [
                "in Y: `log(exp(S[m, n]) + W[m, n])`",
                "the condition `positive(x)` is not proved: `x` is `exp(S[m, n]) + W[m, n]`",
            ],
        ),
        ("    exp(x) => exp(x) + 0\n    where x is const\n", ["`x is const`", "reads A, B"]),
        ("    exp(x) => exp(x) + 0\n    where x is scalar\n", ["`x is scalar`", "a matrix[m, n]"]),
        (
            "    reduce(sum, i, x) => x\n    where i not in free(x)\n",
            ["`i not in free(x)` is not proved", "which depends on n"],
        ),
        ("    reduce(sum, i, x) => x\n    where size(i) > 10\n", ["`size(i) > 10`", "size(n) is 10"]),
        ("    reduce(sum, i, c) => c\n    where c > 2\n", ["`c > 2`", "which is no number"]),
        (
            "    exp(x) * y => x\n",
            ["in S: `A[m, n] * B[m, n]`", "where the rule has `exp(x)` the program has `A[m, n]`"],
        ),
        ("    x * x => x ^ 2\n", ["`x` would stand for two different terms, `A[m, n]` and `B[m, n]`"]),
        (
            "    at(map(i, map(j, x)), j) => map(i, x)\n",
            ["nearest match", "`j` would be both", "these loops must match, and they do not"],
        ),
        ("    tanh(x) => x\n", ["matches nothing in the whole program", "`tanh`"]),
        (
            "    reduce(min, i, x / y) => x\n",
            ["matches nothing in the whole program: there is no `/`, `reduce(min, ...)`"],
        ),
        ("    tanh(exp(x)) => x\n", ["`tanh`", "only the part `exp(x)` occurs", "in Y: `exp("]),
    ],
)
def test_the_premise_that_failed(bbrewrite: Command, tmp_path: Path, rule: str, said: list[str]) -> None:  # noqa: F811
    found = answer(bbrewrite, tmp_path, rule)
    for text in said:
        assert text in found


def test_a_rule_that_fired(bbrewrite: Command, tmp_path: Path) -> None:  # noqa: F811
    found = answer(bbrewrite, tmp_path, "    exp(x) => exp(x) + 0\n")
    assert "it fired: 1 match" in found
    assert "in Y: `exp(S[m, n])`" in found


def test_the_assumption_that_would_help_is_tried(bbrewrite: Command, tmp_path: Path) -> None:  # noqa: F811
    program = PROGRAM.replace("log(exp(S[m, n]) + W[m, n])", "sqrt(v[m] + 0 * A[m, n])")
    rule = "    sqrt(x) => sqrt(x) + 0\n    where nonnegative(x)\n"
    without = answer(bbrewrite, tmp_path, rule, program.replace("v[m] + 0 * A[m, n]", "A[m, n]"))
    assert "hint: with `assume nonnegative(A)` in the program it would fire" in without
    assert "hint" not in answer(bbrewrite, tmp_path, rule, program)
    assumed = program.replace("v[m] + 0 * A[m, n]", "A[m, n]") + "assume nonnegative(A)\n"
    lines = assumed.splitlines()
    lines.insert(4, lines.pop())
    assert "it fired: 1 match" in answer(bbrewrite, tmp_path, rule, "\n".join(lines) + "\n")


def test_outer_loops_that_do_not_match(bbrewrite: Command, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "p.bb").write_text(TWO_NESTS, encoding="utf-8")
    found = bbrewrite("why-not", "fuse_siblings", "p.bb").stdout
    assert "in Y and Z" in found
    assert "the outer loops must match, and they are m of Y and k of Z" in found
    same = TWO_NESTS.replace("k = 8, ", "").replace("[k,", "[m,")
    (tmp_path / "p.bb").write_text(same, encoding="utf-8")
    assert "it fired" in bbrewrite("why-not", "fuse_siblings", "p.bb").stdout


def test_a_rule_that_is_off(bbrewrite: Command, tmp_path: Path, rules: Path) -> None:  # noqa: F811
    text = "program p\nindex m = 6, n = 10, k = 8\ninput A[m, k] : f32\nweight W[k, n] : f32\n"
    text += "output Y[m, n] = sum[k]((A[m, k] - mean[k](A[m, k])) * W[k, n])\n"
    (tmp_path / "p.bb").write_text(text, encoding="utf-8")
    off = bbrewrite("why-not", "swap_shift_and_dot", rules, "p.bb").stdout
    assert 'it is off: @fast_math("cancellation' in off
    assert "with it, it would fire" in off
    assert "it is off" not in bbrewrite("why-not", "swap_shift_and_dot", "p.bb", "--fast-math").stdout


def test_a_phase_that_was_over(bbrewrite: Command, tmp_path: Path) -> None:  # noqa: F811
    text = "@phase(lower)\nrule r\n    tanh(x) => x\nrule s\n    exp(x) => tanh(x)\n"
    (tmp_path / "r.rules").write_text(text, encoding="utf-8")
    (tmp_path / "p.bb").write_text(PROGRAM, encoding="utf-8")
    found = bbrewrite("why-not", "r", "r.rules", "p.bb").stdout
    assert "phase `lower`, which was over" in found


def test_unknown_rule(bbrewrite: Command, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "p.bb").write_text(PROGRAM, encoding="utf-8")
    result = bbrewrite("why-not", "fuse_sibling", "p.bb")
    assert result.exit_code == 2
    assert "did you mean `fuse_siblings`?" in result.stderr


def test_unknown_rule_that_is_like_no_other(bbrewrite: Command, tmp_path: Path, rules: Path) -> None:  # noqa: F811
    (tmp_path / "p.bb").write_text(PROGRAM, encoding="utf-8")
    result = bbrewrite("why-not", "NOSUCH", "p.bb")
    assert result.exit_code == 2
    first, title, *lines = result.stderr.splitlines()
    assert first == "error[unknown-rule]: there is no rule `NOSUCH`"
    assert title == "  hint: the rules are"
    names = " ".join(lines).replace(",", " ").split()
    assert names == sorted(rule.name for rule in load_rules(rules).rules)
    assert max(map(len, lines)) <= 100


def test_wrong_number_of_arguments(bbrewrite: Command) -> None:  # noqa: F811
    assert bbrewrite("why-not", "r", "a", "b", "c").exit_code == 2
    assert bbrewrite("why-not", "r").exit_code == 2


def test_a_rule_of_very_many_operators_is_answered_too(bbrewrite: Command, tmp_path: Path) -> None:  # noqa: F811
    terms = " + ".join(f"x * {number}" for number in range(2, 320))
    program = "program p\nindex m = 8\ninput X[m] : f32\noutput Y[m] = exp(X[m]) + X[m] * 2 + X[m] * 3 + sin(X[m])\n"
    text = answer(bbrewrite, tmp_path, f"    exp(x) + {terms}  =>  x\n", program)
    assert text.count("x * 318") == 1
    assert "the program has" in text
