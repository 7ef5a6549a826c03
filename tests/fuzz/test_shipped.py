"""Every shipped rule and monoid is sound. A longer campaign: pytest -m slow tests/fuzz/test_shipped.py"""

from __future__ import annotations

import pytest

from bbrewrite.core.operators import builtin_table
from bbrewrite.fuzz.allowance import FEWEST
from bbrewrite.fuzz.floats import accuracy_loss
from bbrewrite.fuzz.monoids import test_monoid as run_monoid
from bbrewrite.fuzz.plans import claims
from bbrewrite.fuzz.soundness import Budget
from bbrewrite.fuzz.soundness import test_rule as run_rule
from bbrewrite.resources import resource_directory
from bbrewrite.rules.load import load_rules
from bbrewrite.rules.rules import Rule

SHIPPED = load_rules(resource_directory("rules"))
MONOIDS = sorted(SHIPPED.table.monoids.keys() - builtin_table().monoids.keys())


@pytest.mark.parametrize("rule", SHIPPED.rules, ids=lambda rule: rule.name)
def test_is_sound(rule: Rule) -> None:
    assert run_rule(rule, SHIPPED.table, Budget(seconds=5, instances=FEWEST)).is_sound


@pytest.mark.slow
@pytest.mark.parametrize("rule", SHIPPED.rules, ids=lambda rule: rule.name)
def test_is_sound_on_many_instances(rule: Rule) -> None:
    assert run_rule(rule, SHIPPED.table, Budget(seed=1, seconds=60, instances=20_000)).is_sound


@pytest.mark.parametrize("name", MONOIDS)
def test_is_a_monoid(name: str) -> None:
    assert run_monoid(SHIPPED.table.monoids[name], SHIPPED.table, Budget(seconds=5, instances=FEWEST)).is_sound


@pytest.mark.parametrize("rule", [rule for rule in SHIPPED.rules if rule.fast_math is None], ids=lambda rule: rule.name)
def test_keeps_accuracy(rule: Rule) -> None:
    assert all(accuracy_loss(claim, SHIPPED.table, 0) is None for claim in claims(rule))
