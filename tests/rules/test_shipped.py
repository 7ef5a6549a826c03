"""The shipped rule files: each rule says what it means, and its examples come out."""

from __future__ import annotations

import pytest

from bbrewrite.egraph.examples import failed_examples
from bbrewrite.lang.diagnostics import render
from bbrewrite.resources import resource_directory
from bbrewrite.rules.load import load_rules
from bbrewrite.rules.rules import Rule, RuleSet

SHIPPED = load_rules(resource_directory("rules"))


@pytest.mark.parametrize("rule", SHIPPED.rules, ids=lambda rule: rule.name)
def test_examples_come_out(rule: Rule) -> None:
    failed = failed_examples(RuleSet((rule,), SHIPPED.table))
    assert not failed, render(failed)


@pytest.mark.parametrize("rule", SHIPPED.rules, ids=lambda rule: rule.name)
def test_every_rule_has_a_meaning_and_its_mathematics(rule: Rule) -> None:
    assert rule.meaning
    assert rule.documentation


def test_a_wrong_example_is_found() -> None:
    from bbrewrite.core.spans import Source
    from bbrewrite.rules.load import parse_rules

    text = """rule swap
    dot(row_scale(a, c), b) => row_scale(dot(a, b), c)
    test dot(row_scale(a, c), b) => dot(a, b)
    test dot(a, b) => dot(b, a)
    test dot(row_scale(a, c), b) stays
"""
    failed = failed_examples(parse_rules([Source("swap.rules", text)]))
    assert [(f.message, f.span and f.span.line) for f in failed] == [
        ("`swap` gives something else", 3),
        ("`swap` does not apply", 4),
        ("`swap` applies, but the example says that it stays", 5),
    ]
