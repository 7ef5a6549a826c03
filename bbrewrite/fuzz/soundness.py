"""Tests one rule on random instances, exactly: whether its sides are equal wherever the left side is defined.

Hypothesis draws and shrinks. Time is bounded: what is found when it runs out is what is told. It is the processor's
time, so that a busy machine tries no fewer instances. A difference is only ever concluded from numbers that are proved
unequal, so rounding refuses no rule.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import Phase, Verbosity, assume, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException

from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.terms import Apply, Local, Number, Size
from bbrewrite.fuzz.allowance import FEWEST, Allowance
from bbrewrite.fuzz.drawing import draw_instance
from bbrewrite.fuzz.evaluate import Evaluator, ExactDomain, Value, as_array, positions
from bbrewrite.fuzz.exact import UNDEFINED, UNKNOWN, Nothing, are_equal, sign
from bbrewrite.fuzz.exponentials import Exponential
from bbrewrite.fuzz.instances import Instance, entries
from bbrewrite.fuzz.plans import Claim, Plan, claims, plans
from bbrewrite.fuzz.quiet import quiet_settings
from bbrewrite.rules.rules import Comparison, Condition, Fact, NotFree, Rule

_ROUND = 250
_MOST_PROPOSALS = 3
_EXACT = ExactDomain()


@dataclass(frozen=True)
class Budget:
    """How long, on how many instances and with which random numbers a rule is tested."""

    seed: int = 0
    seconds: float = 1.5
    instances: int = 2_000
    shrinking: float = 4.0  # seconds after the first counterexample


@dataclass(frozen=True)
class Counterexample:
    """An instance on which a claim fails: at one entry, or in the shapes where `place` is None.

    `place` is the entry's number in the value of side `side`.
    """

    plan: Plan
    instance: Instance
    side: int
    place: int | None
    is_general: bool = False

    @property
    def has_empty_loop(self) -> bool:
        return any(index.extent == 0 for index in self.instance.indices.values())


@dataclass
class Outcome:
    """What testing a claim came to: instances that met the conditions, and the forms of numbers compared."""

    tried: int = 0
    met: int = 0
    compared: Counter[str] = field(default_factory=Counter[str])
    undecided: int = 0
    counterexample: Counterexample | None = None
    untypable: bool = False


@dataclass(frozen=True)
class Verdict:
    """The result for one rule. `saved_by` are conditions, one of which would make a refused rule sound."""

    rule: Rule
    outcome: Outcome
    seconds: float
    saved_by: tuple[Condition, ...] = ()

    @property
    def is_tested(self) -> bool:
        return bool(self.outcome.compared)

    @property
    def is_sound(self) -> bool:
        return self.outcome.counterexample is None and self.is_tested


def test_rule(rule: Rule, table: OperatorTable, budget: Budget) -> Verdict:
    """Tests a rule in each of its directions."""
    start = time.process_time()
    total = Outcome()
    for claim in claims(rule):
        outcome = test_claim(claim, table, budget)
        if outcome.counterexample is not None and outcome.counterexample.has_empty_loop:
            outcome.counterexample = _without_empty_loops(claim, table, budget) or outcome.counterexample
        total = replace(
            total,
            tried=total.tried + outcome.tried,
            met=total.met + outcome.met,
            compared=total.compared + outcome.compared,
            undecided=total.undecided + outcome.undecided,
            counterexample=outcome.counterexample,
            untypable=total.untypable or outcome.untypable,
        )
        if outcome.counterexample is not None:
            saved_by = saving_conditions(claim, table, budget)
            return Verdict(rule, total, time.process_time() - start, saved_by)
    return Verdict(rule, total, time.process_time() - start)


def test_claim(claim: Claim, table: OperatorTable, budget: Budget) -> Outcome:
    """Tests one direction until a counterexample, the number of instances or the time ends it."""
    found = plans(claim, table)
    outcome = Outcome(untypable=not found)
    if not found:
        return outcome
    is_forced = all(plan.is_forced for plan in found)
    # Shapes refute such a claim in any case: values are tried for a plainer counterexample, not for long.
    tried = replace(budget, instances=min(budget.instances, _ROUND)) if is_forced else budget
    _Campaign(found, table, tried, outcome).run()
    if outcome.counterexample is None and is_forced:
        outcome.counterexample = _unequal_shapes(found, budget)
    return outcome


def _without_empty_loops(claim: Claim, table: OperatorTable, budget: Budget) -> Counterexample | None:
    """A counterexample in which every loop runs, which says more: that nothing has no minimum is another matter."""
    outcome = Outcome()
    _Campaign(plans(claim, table), table, replace(budget, instances=_ROUND), outcome, loops_run=True).run()
    return outcome.counterexample


class _Failure(Exception):
    """An instance on which the claim fails."""


class _Campaign:
    """One search. The smallest counterexample seen is kept, so that running out of time loses nothing."""

    def __init__(
        self, found: Sequence[Plan], table: OperatorTable, budget: Budget, outcome: Outcome, loops_run: bool = False
    ) -> None:
        self._plans = found
        self._loops_run = loops_run
        self._table = table
        self._budget = budget
        self._outcome = outcome
        self._allowance = Allowance(budget.seconds)

    def run(self) -> None:
        """Rounds of instances, the first seeded as asked, while there is time."""
        number = self._budget.seed
        while self._outcome.counterexample is None and not self._is_over():
            met = self._outcome.met
            self._round(number)
            number += 1
            if self._outcome.met >= self._budget.instances or self._outcome.met == met:
                return

    def _is_over(self) -> bool:
        return self._allowance.is_spent(self._outcome.met)

    def _round(self, number: int) -> None:
        @seed(number)
        @quiet_settings(max(1, min(_ROUND, self._budget.instances - self._outcome.met)))
        @given(self._instances())
        def search(drawn: tuple[Plan, Instance] | None) -> None:
            if drawn is not None:
                self._try(*drawn)

        # What was found is in the outcome, even where shrinking was cut short.
        with suppress(_Failure, HypothesisException):
            search()

    def _instances(self) -> st.SearchStrategy[tuple[Plan, Instance] | None]:
        """A plan and an instance of it, nothing when time is up."""

        any_plan = st.sampled_from(self._plans)

        @st.composite
        def drawn(draw: st.DrawFn) -> tuple[Plan, Instance] | None:
            if self._is_over():
                return None
            plan = draw(any_plan)
            return plan, draw_instance(draw, plan, is_general=False, loops_run=self._loops_run)

        return drawn()

    def _try(self, plan: Plan, instance: Instance) -> None:
        outcome = self._outcome
        searching = outcome.counterexample is None
        outcome.tried += searching
        assume(meets_conditions(plan, instance, self._table))
        outcome.met += searching
        failure = compare(plan, instance, self._table, outcome if searching else Outcome())
        if failure is not None:
            if searching:
                self._allowance = Allowance(self._budget.shrinking, fewest=0)
            outcome.counterexample = failure
            raise _Failure


def meets_conditions(plan: Plan, instance: Instance, table: OperatorTable) -> bool:
    """Whether the conditions on compound terms and on numbers hold; those on variables hold as they are drawn."""
    evaluator = Evaluator(table, _EXACT, instance, plan.left)
    for condition in plan.claim.conditions:
        match condition:
            case Comparison(term):
                if sign_of_truth(evaluator.block(term, instance.outer)) is not True:
                    return False
            case Fact(fact, term) if not isinstance(term, Local):
                bound = [index for index, found in instance.indices.items() if found.trips]
                for position in positions(instance, bound):
                    found = evaluator.value(term, position)
                    if not all(_has_fact(fact, entry) for entry in entries(found)):
                        return False
            case _:
                pass
    return True


def sign_of_truth(value: Any) -> bool | None:
    (entry,) = as_array(value).flat
    return None if isinstance(entry, Nothing) else sign(entry) == 1


def _has_fact(fact: str, entry: Any) -> bool:
    """A fact about an entry, where it is a number at all."""
    if entry is UNDEFINED:
        return True
    if entry is UNKNOWN:
        return False
    if fact == "finite":
        return not isinstance(entry, float)
    found = sign(entry)
    if found is None:
        return False
    return found > 0 if fact == "positive" else found >= 0 if fact == "nonnegative" else found != 0


def compare(plan: Plan, instance: Instance, table: OperatorTable, outcome: Outcome) -> Counterexample | None:
    """Where the claim fails on an instance; what was compared is counted in the outcome."""
    left_evaluator = Evaluator(table, _EXACT, instance, plan.left)
    right_evaluator = Evaluator(table, _EXACT, instance, plan.right)
    for side, (left, right) in enumerate(plan.claim.sides):
        one, other = aligned(left_evaluator.value(left, instance.outer), right_evaluator.value(right, instance.outer))
        for place, (a, b) in enumerate(zip(one, other, strict=True)):
            if a is UNDEFINED:
                continue
            if a is UNKNOWN or b is UNKNOWN:
                outcome.undecided += 1
                continue
            equal = False if b is UNDEFINED else are_equal(a, b)
            if equal is False:
                return Counterexample(plan, instance, side, place)
            if equal is None:
                outcome.undecided += 1
            else:
                outcome.compared[form_of(a, b)] += 1
    return None


def form_of(*values: Any) -> str:
    """The weakest form of number among values."""
    if all(isinstance(value, Fraction | float) for value in values):
        return "rationals"
    if all(isinstance(value, Fraction | float | Exponential) for value in values):
        return "formal exponentials"
    return "70-digit intervals"


def aligned(left: Value, right: Value) -> tuple[list[Any], list[Any]]:
    """The entries of two values in one order; a number beside a block is repeated."""
    left, right = zipped(left), zipped(right)
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        if left.shape != right.shape:
            right = np.broadcast_to(right, left.shape)
        return list(left.flat), list(right.flat)
    assert not isinstance(left, np.ndarray)
    if isinstance(right, np.ndarray):
        return entries(left), [right[()]] * len(entries(left))
    assert len(left) == len(right)
    one: list[Any] = []
    other: list[Any] = []
    for a, b in zip(left, right, strict=True):
        ones, others = aligned(a, b)
        one += ones
        other += others
    return one, other


def zipped(value: Value) -> Value:
    """The value with pairs of lists as lists of pairs."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, list):
        return [zipped(item) for item in value]
    first, second = zipped(value[0]), zipped(value[1])
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        return [zipped((a, b)) for a, b in zip(first, second, strict=True)]
    return (first, second)


def _unequal_shapes(found: Sequence[Plan], budget: Budget) -> Counterexample | None:
    """An instance whose extents only the left side takes, for a rule that no values refute."""
    result: list[Counterexample] = []

    @seed(budget.seed)
    @settings(max_examples=50, phases=(Phase.generate,), database=None, deadline=None, verbosity=Verbosity.quiet)
    @given(st.data())
    def search(data: st.DataObject) -> None:
        plan = data.draw(st.sampled_from(found))
        instance = draw_instance(data.draw, plan, is_general=True)
        merged = plan.symbols.merges[len(plan.left_symbols.merges) :]
        if not result and any(instance.lengths.get(a, 0) != instance.lengths.get(b, 0) for a, b in merged):
            result.append(Counterexample(plan, instance, 0, None, is_general=True))

    search()
    return result[0] if result else None


def saving_conditions(claim: Claim, table: OperatorTable, budget: Budget) -> tuple[Condition, ...]:
    """The known conditions each of which would make the claim hold, the weakest of a kind only."""
    quick = Budget(budget.seed + 1, 0.7, 200, 0.0)
    found: list[Condition] = []
    for condition in _candidates(claim):
        if len(found) == _MOST_PROPOSALS:
            break
        extended = replace(claim, conditions=(*claim.conditions, condition))
        outcome = test_claim(extended, table, quick)
        if outcome.counterexample is None and outcome.met >= FEWEST and sum(outcome.compared.values()) >= FEWEST:
            implied = any(
                isinstance(known, Fact) and isinstance(condition, Fact) and known.term == condition.term
                for known in found
            )
            if not implied:
                found.append(condition)
    return tuple(found)


def _candidates(claim: Claim) -> list[Condition]:
    names = claim.variables
    found: list[Condition] = [NotFree(index, Local(name)) for name in names for index in claim.indices]
    found += [Fact(fact, Local(name)) for name in names for fact in ("nonzero", "nonnegative", "positive")]
    found += [Comparison(Apply("greater", (Size(index), Number(0.0)))) for index in claim.indices]
    return [condition for condition in found if condition not in claim.conditions]
