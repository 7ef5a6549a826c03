"""Rules that are known to be sound or unsound, each with its reason in `data/`: the verdict has to be right."""

from __future__ import annotations

from pathlib import Path

import pytest

from bbrewrite.core.operators import builtin_table
from bbrewrite.fuzz.monoids import test_monoid as run_monoid
from bbrewrite.fuzz.plans import claims
from bbrewrite.fuzz.soundness import Budget
from bbrewrite.fuzz.soundness import test_claim as run_claim
from bbrewrite.rules.load import load_rules
from bbrewrite.rules.rules import Rule, RuleSet
from tests.fuzz.plain_evaluation import is_confirmed

SOUND = ("first_sound", "sound", "subtle_sound")
UNSOUND = ("first_unsound", "unsound", "subtle_unsound")
# The sides differ by less than float64 can tell.
FINER_THAN_FLOATS = {"softplus_above_a_threshold"}

DATA = Path(__file__).parent / "data"


def rules_of(*names: str) -> list[tuple[Rule, RuleSet]]:
    files = [load_rules(DATA / f"{name}.rules") for name in names]
    return [(rule, rules) for rules in files for rule in rules.rules]


def monoids_of(name: str) -> list[tuple[str, RuleSet]]:
    rules = load_rules(DATA / f"{name}.rules")
    return [(monoid, rules) for monoid in rules.table.monoids if monoid not in builtin_table().monoids]


def name_of(case: object) -> str:
    return case.name if isinstance(case, Rule) else case if isinstance(case, str) else ""


@pytest.mark.parametrize(("rule", "rules"), rules_of(*SOUND), ids=name_of)
def test_sound_rule_passes(rule: Rule, rules: RuleSet) -> None:
    for claim in claims(rule):
        outcome = run_claim(claim, rules.table, Budget(seconds=5, instances=25))
        assert outcome.counterexample is None
        assert outcome.compared


@pytest.mark.parametrize(("rule", "rules"), rules_of(*UNSOUND), ids=name_of)
def test_unsound_rule_is_refused(rule: Rule, rules: RuleSet) -> None:
    """With a counterexample that holds when it is worked out in another way."""
    budget = Budget(seconds=10, shrinking=0.1, instances=250)
    outcomes = (run_claim(claim, rules.table, budget) for claim in claims(rule))
    found = next(outcome.counterexample for outcome in outcomes if outcome.counterexample is not None)
    assert is_confirmed(found, rules.table) or rule.name in FINER_THAN_FLOATS


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize(("rule", "rules"), rules_of(*UNSOUND), ids=name_of)
def test_unsound_rule_is_refused_by_every_seed(rule: Rule, rules: RuleSet, seed: int) -> None:
    budget = Budget(seed, seconds=1.5, shrinking=0.0)
    assert any(run_claim(claim, rules.table, budget).counterexample is not None for claim in claims(rule))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize(("rule", "rules"), rules_of(*SOUND), ids=name_of)
def test_sound_rule_passes_with_every_seed(rule: Rule, rules: RuleSet, seed: int) -> None:
    budget = Budget(seed, seconds=3)
    assert all(run_claim(claim, rules.table, budget).counterexample is None for claim in claims(rule))


@pytest.mark.parametrize(("name", "rules"), [*monoids_of("sound"), *monoids_of("subtle_sound")], ids=name_of)
def test_sound_monoid_passes(name: str, rules: RuleSet) -> None:
    assert run_monoid(rules.table.monoids[name], rules.table, Budget(seconds=5, instances=50)).is_sound


@pytest.mark.parametrize(("name", "rules"), monoids_of("unsound"), ids=name_of)
def test_unsound_monoid_is_refused(name: str, rules: RuleSet) -> None:
    assert run_monoid(rules.table.monoids[name], rules.table, Budget(seconds=5)).broken is not None
