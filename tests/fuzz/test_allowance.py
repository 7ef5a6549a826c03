"""A verdict does not depend on how fast the machine is: a clock that runs ahead stands for a slow or busy one."""

from __future__ import annotations

import itertools

import pytest

from bbrewrite.fuzz import allowance
from bbrewrite.fuzz.allowance import FEWEST
from bbrewrite.fuzz.monoids import test_monoid as run_monoid
from bbrewrite.fuzz.soundness import Budget
from bbrewrite.fuzz.soundness import test_rule as run_rule
from bbrewrite.rules.rules import Rule, RuleSet
from tests.fuzz.test_corpus import monoids_of, name_of, rules_of

SECONDS = 1.5


@pytest.fixture(autouse=True)
def slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at the clock is a twentieth of a budget later, so that a budget alone ends after some 20 instances."""
    clock = itertools.count(0, SECONDS / 20)
    monkeypatch.setattr(allowance.time, "process_time", lambda: float(next(clock)))


@pytest.mark.parametrize(("rule", "rules"), rules_of("first_unsound"), ids=name_of)
def test_unsound_rules_are_refused(rule: Rule, rules: RuleSet) -> None:
    assert not run_rule(rule, rules.table, Budget(seconds=SECONDS, shrinking=0.0)).is_sound


@pytest.mark.parametrize(("rule", "rules"), rules_of("first_sound"), ids=name_of)
def test_sound_rules_are_tried_often_enough(rule: Rule, rules: RuleSet) -> None:
    assert run_rule(rule, rules.table, Budget(seconds=SECONDS)).outcome.met >= FEWEST


@pytest.mark.parametrize(("name", "rules"), monoids_of("sound"), ids=name_of)
def test_sound_monoids_are_tried_often_enough(name: str, rules: RuleSet) -> None:
    assert run_monoid(rules.table.monoids[name], rules.table, Budget(seconds=SECONDS)).instances >= FEWEST
