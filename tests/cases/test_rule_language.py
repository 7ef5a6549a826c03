"""What people have met in other rule languages, case by case: what they would be told here.

All of it through the command, so that exit codes and every word that is printed are seen.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Command, bbrewrite  # noqa: F401  a fixture

_FUSE = "rule fuse_consecutive_maps\n    at(map(i, x), i)  =>  x\n"
_PROGRAM = """program p
index m = 6, n = 10
input A[m, n] : f32
S[m, n] = exp(A[m, n]) + A[m, n]
output Y[m] = sum[n](log(S[m, n]))
"""
# Words of the engine and the parser, and of names that are generated for them.
_INTERNAL = ("egglog", "lark", "Traceback", "Token", "op-", "rewrite_", "$", "EqSort", "i64")


def _refused(bbrewrite: Command, rules: str) -> str:  # noqa: F811
    """What `check` and `fuzz`, with one voice, say of rules that have no meaning."""
    Path("mine.rules").write_text(rules, encoding="utf-8")
    said: list[str] = []
    for command in ("check", "fuzz"):
        result = bbrewrite(command, "mine.rules")
        assert result.exit_code == 2
        assert result.stdout == ""
        said.append(result.stderr)
    assert said[0] == said[1]
    assert not [word for word in _INTERNAL if word in said[0]]
    return said[0]


def test_e02_an_unbound_name(bbrewrite: Command) -> None:  # noqa: F811
    assert _refused(bbrewrite, "rule swap\n    row_scale(a, c)  =>  row_scale(a, d)\n") == (
        "mine.rules:2:39: error[unbound-name]: `d` is not on the left side\n"
        "        row_scale(a, c)  =>  row_scale(a, d)\n"
        "                                          ^\n"
        "  hint: did you mean `c`, which is not used here?\n"
    )


@pytest.mark.parametrize(
    ("rule", "name", "column"),
    [
        ("exp(scale)  =>  exp(scael)", "scael", 25),
        ("map(i, exp(x))  =>  map(j, exp(x))", "j", 29),
        ("exp(x)  =>  exp(y)\n    where positive(x)", "y", 21),
        ("exp(x)  =>  exp(x)\n    where positive(y)", "y", 20),
        ("exp(x + y)  <=>  exp(x)", "y", 13),
    ],
)
def test_e02_wherever_the_name_stands(bbrewrite: Command, rule: str, name: str, column: int) -> None:  # noqa: F811
    said = _refused(bbrewrite, f"rule r\n    {rule}\n")
    first, line, caret, *_ = said.splitlines()
    place = first.split(": ")[0].split(":")
    assert f"`{name}`" in first
    assert caret.index("^") - 4 == int(place[2]) - 1
    assert line[4:][int(place[2]) - 1 :].startswith(name)
    assert int(place[2]) == column


def test_e07_a_rule_that_only_a_condition_keeps_from_firing(bbrewrite: Command) -> None:  # noqa: F811
    """Told with its place, the condition and the term; a rule that matches nothing is named once."""
    rules = f"{_FUSE}\nrule careful\n    log(x)  =>  log(x) + 0\n    where positive(x)\n"
    rules += "\nrule idle\n    tanh(x)  =>  x * 1\n"
    Path("mine.rules").write_text(rules, encoding="utf-8")
    Path("p.bb").write_text(_PROGRAM, encoding="utf-8")
    result = bbrewrite("fuse", "mine.rules", "p.bb", "--explain")
    assert result.exit_code == 0
    said = result.stdout
    assert "careful  (mine.rules:4)\n    in Y: `log(S[m, n])`\n" in said
    assert "the condition `positive(x)` is not proved: `x` is `S[m, n]`" in said
    assert said.count("idle") == 1
    assert "rules that match nothing in this program: idle\n" in said
    # Once the fact is known, nothing is left to be said of it.
    Path("p.bb").write_text(_PROGRAM.replace("S[m", "assume positive(A)\nS[m", 1), encoding="utf-8")
    assert "only a condition" not in bbrewrite("fuse", "mine.rules", "p.bb", "--explain").stdout


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("positive(x)", "`x` is `S[m, n]`"),
        ("x is const", "reads A"),
        ("x is scalar", "a matrix[m, n]"),
        ("nonzero(x)", "`x` is `S[m, n]`"),
        ("x > 2", "which is no number"),
    ],
)
def test_e07_every_kind_of_condition(bbrewrite: Command, condition: str, reason: str) -> None:  # noqa: F811
    Path("mine.rules").write_text(
        f"rule careful\n    log(x)  =>  log(x) + 0\n    where {condition}\n", encoding="utf-8"
    )
    Path("p.bb").write_text(_PROGRAM, encoding="utf-8")
    said = bbrewrite("fuse", "mine.rules", "p.bb", "--explain").stdout
    assert f"the condition `{condition}` is not proved" in said
    assert reason in said


def test_e09_inner_loops_of_nests_whose_outer_loops_differ(bbrewrite: Command) -> None:  # noqa: F811
    """Both in the rule, before anything runs, and in the program."""
    rule = "rule fuse_inner_loops\n    match x = map(i, map(j, a)), y = map(k, map(j, b))\n"
    rule += "    then  x => first(p), y => second(p)\n    let   p = map(i, map(j, pair(a, b)))\n"
    Path("mine.rules").write_text(rule, encoding="utf-8")
    result = bbrewrite("check", "mine.rules")
    assert result.exit_code == 0
    assert "the loops around it must match" in result.stderr + result.stdout
    assert bbrewrite("fuzz", "mine.rules", "--jobs", "1", "--budget", "0.3").exit_code == 1
    program = "program p\nindex m = 6, k = 8, n = 10\ninput A[m, n], B[k, n], w[n] : f32\n"
    program += "output Y[m, n] = A[m, n] * w[n]\noutput Z[k, n] = B[k, n] * w[n]\n"
    Path("p.bb").write_text(program, encoding="utf-8")
    said = bbrewrite("why-not", "fuse_siblings", "p.bb").stdout
    assert "the outer loops must match, and they are m of Y and k of Z" in said
    assert "range" not in said


@pytest.mark.parametrize(
    ("rules", "places"),
    [
        ("rule r\n    exp(max)  =>  exp(max)\n", ["2:9"]),
        ("rule r\n    exp(exp)  =>  exp(exp)\n", ["2:9"]),
        ("rule r\n    reduce(sum, i, i)  =>  reduce(sum, i, i)\n", ["2:20", "2:17"]),
        ("rule r\n    map(i, x + i)  =>  map(i, x)\n", ["2:16", "2:9"]),
        ("rule r\n    exp(x)  =>  y\n    let x = 1, y = 2\n", ["3:9", "2:9"]),
        ("rule r\n    exp(x)  =>  x * 1\n\nrule r\n    log(x)  =>  x * 1\n", ["4:6", "1:6"]),
        ("op twice(a) = 2 * a\n\nop twice(a) = a + a\n", ["3:4", "1:4"]),
        ("op twice(a) = 2 * a\n\nrule r\n    exp(twice)  =>  exp(twice)\n", ["4:9", "1:4"]),
    ],
)
def test_e11_names_that_have_a_meaning_already(bbrewrite: Command, rules: str, places: list[str]) -> None:  # noqa: F811
    """The message stands at the second place and shows the first; names of the language have only the one."""
    said = _refused(bbrewrite, rules)
    for place in places:
        assert f"mine.rules:{place}: " in said
    assert said.startswith(f"mine.rules:{places[0]}: error")


@pytest.mark.parametrize(
    ("rules", "line", "allowed"),
    [
        ("@phaze(lower)\nrule r\n    exp(x)  =>  x * 1\n", 1, ["@phase", "@fast_math", "did you mean `phase`?"]),
        ("@phase(lowre)\nrule r\n    exp(x)  =>  x * 1\n", 1, ["lower", "fuse", "extend"]),
        ("rule r\n    row_scale(a)  =>  a * 1\n", 2, ["row_scale(matrix, vector)", "takes 2 operands, 1 given"]),
        ("rule r\n    exp(a, b)  =>  a * b\n", 2, ["takes 1 operand, 2 given"]),
        ("rule r\n    reduce(average, i, x)  =>  x * 1\n", 2, ["max, min, prod, sum"]),
        ("rule r\n    reduce(sum, i)  =>  0\n", 2, ["takes 3 operands, 2 given", "reduce(sum, i, x)"]),
        ("rule r\n    exq(x)  =>  x * 1\n", 2, ["did you mean `exp`?"]),
        ("rule r\n    exp(x)  =>  x * 1\n    where negative(x)\n", 3, ["nonzero", "positive", "nonnegative", "finite"]),
    ],
)
def test_e13_what_does_not_exist(bbrewrite: Command, rules: str, line: int, allowed: list[str]) -> None:  # noqa: F811
    said = _refused(bbrewrite, rules)
    assert said.startswith(f"mine.rules:{line}:")
    for text in allowed:
        assert text in said
