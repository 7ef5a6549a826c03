"""Conditions of rules and the analyses that prove them: facts, constness, kinds, sizes."""

from __future__ import annotations

import pytest

from bbrewrite.core.elements import Element
from bbrewrite.core.indices import Index, IndexTable
from bbrewrite.core.programs import Assumption, Role
from bbrewrite.core.terms import IndexValue, Number, Size, Term
from tests.egraph.saturation import LOG, A, B, W, fires, rules, run, single
from tests.programs import apply, define, indices, program, read, tensor, total


@pytest.mark.parametrize(
    ("fact", "value", "proved"),
    [
        ("nonnegative", apply("exp", A), True),
        ("positive", apply("exp", A), False),
        ("positive", apply("exp", apply("sigmoid", IndexValue("m"))), True),
        ("nonnegative", apply("multiply", A, A), True),
        ("nonnegative", apply("multiply", A, B), False),
        ("nonnegative", apply("power", A, 2), True),
        ("nonnegative", apply("power", A, 3), False),
        ("nonnegative", total("n", apply("row_sum", apply("multiply", A, A))), True),
        ("positive", apply("add", apply("multiply", A, A), 1e-5), True),
        ("positive", apply("multiply", A, A), False),
        ("positive", Number(2.0), True),
        ("nonzero", Number(-2.0), True),
        ("positive", Number(-2.0), False),
        ("positive", Size("n"), True),
        ("finite", Number(float("inf")), False),
        ("finite", A, False),
        ("nonnegative", apply("dot", apply("exp", A), apply("exp", B)), True),
        ("nonnegative", apply("row_shift", apply("exp", A), read("v", "m")), False),
        ("nonnegative", apply("maximum", A, 0), True),
        ("nonnegative", apply("recip", apply("multiply", A, A)), False),
    ],
)
def test_facts_are_proved_or_the_rule_does_not_fire(fact: str, value: Term, proved: bool) -> None:
    names = {0: "", 1: "m", 2: "m n"}[len(value.free)]
    assert fires(rules(LOG.format(fact)), single(apply("log", value), names)) is proved


@pytest.mark.parametrize(
    ("assumed", "fact", "proved"),
    [("positive", "positive", True), ("positive", "nonzero", True), ("nonnegative", "positive", False)],
)
def test_assumptions_are_facts(assumed: str, fact: str, proved: bool) -> None:
    source = single(apply("log", A), assumptions=(Assumption(assumed, "A"),))
    assert fires(rules(LOG.format(fact)), source) is proved


def test_facts_of_integer_inputs() -> None:
    source = program(
        "p",
        indices(m=64),
        [tensor("k", "m", Role.INPUT, Element.I32)],
        [define("Y", "m", apply("log", read("k", "m")), Role.OUTPUT)],
    )
    assert fires(rules(LOG.format("finite")), source)
    assert not fires(rules(LOG.format("nonnegative")), source)


@pytest.mark.parametrize(("value", "constant"), [(apply("exp", W), True), (apply("multiply", W, A), False)])
def test_constness(value: Term, constant: bool) -> None:
    assert (
        fires(rules("rule r\n    log(x) => log(x) + 0\n    where x is const\n"), single(apply("log", value)))
        is constant
    )


@pytest.mark.parametrize(
    ("value", "scalar"),
    [(read("s"), True), (apply("exp", read("s")), True), (apply("sum_of", read("v", "m")), True), (A, False)],
)
def test_scalars(value: Term, scalar: bool) -> None:
    text = "rule make\n    exp(x) => log(x)\nrule r\n    log(x) => x + 0\n    where x is scalar\n"
    names = "m n" if value.free == {"m", "n"} else ""
    source = single(apply("exp", total("m", value) if value.free == {"m"} else value), names)
    assert bool(run(source, rules(text)).report.rules_applied["r"]) is scalar


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("size(i) > 100", True),
        ("size(i) * 2 == 512", True),
        ("size(i) < c", False),
        ("c != 3", False),
        ("-c <= 0 - 3", True),
    ],
)
def test_comparisons(condition: str, holds: bool) -> None:
    text = f"rule r\n    reduce(sum, i, x + c) => reduce(sum, i, c + x)\n    where {condition}\n"
    assert fires(rules(text), single(total("n", apply("add", apply("row_sum", A), 3)), "m")) is holds


def test_open_extents_are_unknown() -> None:
    table = IndexTable.of([Index("m", None, None, 64), Index("n", None, None, 64)])
    text = "rule r\n    reduce(sum, i, x) => x\n    where size(i) > 0\n"
    assert not fires(rules(text), single(total("n", apply("row_sum", A)), "m", table))


def test_sizes_of_indices_with_one_extent_are_one_number() -> None:
    table = IndexTable.of([Index("m", 256, None, 64), Index("n", None, "m", 64)])
    text = "rule mean\n    reduce(sum, i, x) / size(i)  =>  x\n"
    assert fires(rules(text), single(apply("divide", total("n", apply("row_sum", A)), Size("m")), "m", table))
