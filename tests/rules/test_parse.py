"""What rule files mean: every form that the language has."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from bbrewrite.core.addresses import index_address
from bbrewrite.core.spans import Source
from bbrewrite.core.terms import Apply, At, Component, Local, Map, Number, Pair, Reduce, Size
from bbrewrite.rules.load import load_rules, parse_rules
from bbrewrite.rules.rules import (
    Comparison,
    Fact,
    IsConst,
    IsScalar,
    NotFree,
    Rule,
    RuleSet,
    Siblings,
)

A, B, C, X = Local("a"), Local("b"), Local("c"), Local("x")


def parsed(text: str) -> RuleSet:
    return parse_rules([Source("test.rules", text)])


def rule(text: str) -> Rule:
    (found,) = parsed(text).rules
    return found


def left(expression: str) -> object:
    return rule(f"rule r\n    exp({expression}) => 1\n").matches[0][1].children[0]


def test_plain_rule() -> None:
    found = rule("# First line.\n# Second line.\nrule swap 'x'\n".replace("'", '"') + "    exp(a) => a  # why\n")
    assert (found.name, found.meaning, found.documentation) == ("swap", "x", "First line.\nSecond line.")
    assert found.matches == (("", Apply("exp", (A,))),)
    assert found.rewrites == (("", A),)
    assert (found.both_ways, found.phase, found.fast_math) == (False, "fuse", None)
    assert str(found.span) == "test.rules:3:6"


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("a + b * c", Apply("add", (A, Apply("multiply", (B, C))))),
        ("a - b - c", Apply("subtract", (Apply("subtract", (A, B)), C))),
        ("-a ^ 2", Apply("negate", (Apply("power", (A, Number(2.0))),))),
        ("a ^ b ^ c", Apply("power", (A, Apply("power", (B, C))))),
        ("a ^ -b", Apply("power", (A, Apply("negate", (B,))))),
        ("not a < b and c", Apply("and", (Apply("not", (Apply("less", (A, B)),)), C))),
        ("a or b and c", Apply("or", (A, Apply("and", (B, C))))),
        ("-inf", Number(-math.inf)),
        ("1.5e-3", Number(0.0015)),
        ("where(a == b, 1, c)", Apply("where", (Apply("equal", (A, B)), Number(1.0), C))),
        ("a[i, j]", At(At(A, index_address("i")), index_address("j"))),
        ("at(map(i, a), i)", At(Map("i", A), index_address("i"))),
        ("reduce(sum, i, a) / size(i)", Apply("divide", (Reduce("sum", "i", (A,)), Size("i")))),
        ("row_spread(a, n)", Apply("row_spread", (A,), ("n",))),
        ("second(pair(a, b))", Component(1, Pair(A, B))),
    ],
)
def test_expressions(text: str, term: object) -> None:
    assert left(text) == term


def test_conditions() -> None:
    found = rule(
        """rule r
    reduce(sum, i, a * b) + exp(c) * x  =>  1
    where i not in free(b), a is const, c is scalar
    where size(i) >= 2 * 3, positive(x), siblings(a, b)
"""
    )
    assert found.conditions == (
        NotFree("i", B),
        IsConst(A),
        IsScalar(C),
        Comparison(Apply("greater_equal", (Size("i"), Apply("multiply", (Number(2.0), Number(3.0)))))),
        Fact("positive", X),
        Siblings(A, B),
    )


def test_several_patterns() -> None:
    found = rule(
        """rule pairs
    match x = map(i, a), y = map(i, b)
    then  x => first(p), y => second(p)
    let   p = map(i, pair(a, b))
"""
    )
    pair = Map("i", Pair(A, B))
    assert found.matches == (("x", Map("i", A)), ("y", Map("i", B)))
    assert found.rewrites == (("x", Component(0, pair)), ("y", Component(1, pair)))


def test_attributes_and_both_ways() -> None:
    found = rule('@phase(lower)\n@fast_math("rounds twice")\nrule r\n    exp(a) <=> 1 / exp(-a)\n')
    assert (found.both_ways, found.phase, found.fast_math) == (True, "lower", "rounds twice")
    ruleset = RuleSet((found,), parsed("").table)
    assert ruleset.enabled() == ()
    assert ruleset.enabled(fast_math=True) == (found,)


def test_elementwise_op_is_one_function() -> None:
    table = parsed("op weight(a, b) = where(a == b, 1, exp(a - b))\nop both(a, b) = weight(a, b) * a < b\n").table
    weight, both = table.functions["weight"], table.functions["both"]
    assert (weight.parameters, weight.type_rule, weight.work) == (("a", "b"), "float", 17)
    assert both.type_rule == "bool"
    assert table.operators["both"].is_elementwise
    assert both.body == Apply("less", (Apply("multiply", (Apply("weight", (A, B)), A)), B))


@pytest.mark.parametrize(
    ("body", "type_rule"),
    [("a + 1", "wider"), ("a * 0.5", "float"), ("a / 2", "float"), ("where(a < 0, -a, a)", "wider"), ("not a", "bool")],
)
def test_type_rule_of_an_op(body: str, type_rule: str) -> None:
    assert parsed(f"op f(a) = {body}\n").table.functions["f"].type_rule == type_rule


def test_structured_op_is_expanded_where_it_is_used() -> None:
    ruleset = parsed(
        """rule r
    double(mean(x, n)) => mean(double(x), n)
op mean(a, i) = reduce(sum, i, row_sum(a)) / size(i)
op double(a) = a + a
"""
    )
    (found,) = ruleset.rules
    mean = Apply("divide", (Reduce("sum", "n", (Apply("row_sum", (X,)),)), Size("n")))
    assert "mean" not in ruleset.table.operators
    assert found.matches[0][1] == Apply("double", (mean,))


def test_monoid_of_the_language_page() -> None:
    monoid = parsed(
        """op weight(a, b) = where(a == b, 1, exp(a - b))
monoid lse
    state    m, s
    identity -inf, 0
    element  x => x, 1
    combine  (m1, s1), (m2, s2) => m, s1 * weight(m1, m) + s2 * weight(m2, m)  let m = maximum(m1, m2)
    finish   m + log(s)
rule use
    exp(reduce(lse, n, x)) => reduce(sum, n, exp(x))
"""
    ).table.monoids["lse"]
    maximum = Apply("maximum", (Local("m1"), Local("m2")))

    def scaled(s: str, m: str) -> Apply:
        return Apply("multiply", (Local(s), Apply("weight", (Local(m), maximum))))

    assert (monoid.state, monoid.identity, monoid.parameters) == (("m", "s"), (-math.inf, 0.0), ("x",))
    assert monoid.element == (X, Number(1.0))
    assert (monoid.left, monoid.right) == (("m1", "s1"), ("m2", "s2"))
    assert monoid.combine == (maximum, Apply("add", (scaled("s1", "m1"), scaled("s2", "m2"))))
    assert monoid.finish == Apply("add", (Local("m"), Apply("log", (Local("s"),))))


def test_monoid_of_one_component_finishes_itself() -> None:
    monoid = parsed("monoid product\n state s\n identity 1\n element x => x\n combine a, b => a * b\n").table.monoids
    assert monoid["product"].finish == Local("s")


def test_words_of_the_language_may_be_variables() -> None:
    found = rule("rule r\n    state + element * free / is => 1\n")
    assert {"state", "element", "free", "is"} <= {node.name for node in _locals(found)}


def _locals(found: Rule) -> list[Local]:
    from bbrewrite.core.terms import walk

    return [node for node in walk(found.matches[0][1]) if isinstance(node, Local)]


def test_directories_are_read_in_order_of_name(tmp_path: Path) -> None:
    (tmp_path / "b.rules").write_text("rule last\n    exp(x) => exp(x)\n")
    (tmp_path / "a.rules").write_text("rule first\n    exp(x) => twice(x)\n")
    (tmp_path / "c.rules").write_text("op twice(x) = x + x\n")
    (tmp_path / "notes.txt").write_text("no rules")
    assert [r.name for r in load_rules(tmp_path).rules] == ["first", "last"]


def test_empty_directory_is_an_empty_rule_set(tmp_path: Path) -> None:
    assert load_rules(tmp_path).rules == ()
