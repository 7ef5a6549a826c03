"""Fuzzes whole rule files: every rule and monoid, on several processes, each result as a plain value.

Results are texts and numbers, so that they pass between processes, which read the rules anew: operator tables hold
functions that cannot be sent.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

from hypothesis.configuration import set_hypothesis_home_dir

from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.spans import Source
from bbrewrite.fuzz.evaluate import Evaluator, ExactDomain
from bbrewrite.fuzz.floats import AccuracyLoss, FloatNote, accuracy_loss, float_notes
from bbrewrite.fuzz.monoids import MonoidVerdict, State, test_monoid
from bbrewrite.fuzz.plans import claims
from bbrewrite.fuzz.shown import (
    DIGITS,
    condition_text,
    digits_apart,
    evaluation_lines,
    floats_text,
    instance_lines,
    number_text,
    two_columns,
    value_text,
)
from bbrewrite.fuzz.soundness import Budget, Counterexample, Verdict, aligned, test_rule
from bbrewrite.rules.load import known_rules
from bbrewrite.rules.rules import Rule, RuleSet


@dataclass(frozen=True)
class Report:
    """What fuzzing found out about one rule or monoid.

    `verdict` is "sound", "unsound" or "untested"; `exact_in` counts the compared values by the form of their numbers.
    `lines` show the counterexample, or say why nothing could be tested.
    """

    name: str
    what: str
    file: str
    line: int
    verdict: str
    instances: int
    seconds: float
    exact_in: dict[str, int] = field(default_factory=dict[str, int])
    undecided: int = 0
    lines: tuple[str, ...] = ()
    saved_by: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Task:
    """One rule or monoid to test, and how wide its counterexample may be."""

    what: str
    name: str
    budget: Budget
    width: int


def tasks_of(rules: RuleSet, known_monoids: Sequence[str], budget: Budget, width: int, only: str) -> list[Task]:
    """Every monoid that the files add and every rule, or the one named `only`."""
    monoids = [Task("monoid", name, budget, width) for name in rules.table.monoids if name not in known_monoids]
    found = [*monoids, *(Task("rule", rule.name, budget, width) for rule in rules.rules)]
    return [task for task in found if only in ("", task.name)]


def run_tasks(sources: Sequence[Source], rules: RuleSet, tasks: Sequence[Task], jobs: int) -> Iterator[Report]:
    """The reports as they come, by up to `jobs` processes."""
    if jobs == 1 or len(tasks) < 2:
        _keep_out_of_the_way()
        for task in tasks:
            yield report(task, rules)
        return
    context = get_context("spawn")
    with ProcessPoolExecutor(min(jobs, len(tasks)), context, _start, (tuple(sources),)) as pool:
        waiting = [pool.submit(_report_here, task) for task in tasks]
        for future in as_completed(waiting):
            yield future.result()


def report(task: Task, rules: RuleSet) -> Report:
    """The report on one task."""
    if task.what == "monoid":
        return _monoid_report(test_monoid(rules.table.monoids[task.name], rules.table, task.budget), rules)
    rule = next(rule for rule in rules.rules if rule.name == task.name)
    return rule_report(test_rule(rule, rules.table, task.budget), rules.table, task.budget, task.width)


_worker_rules: RuleSet | None = None


def _start(sources: tuple[Source, ...]) -> None:
    global _worker_rules
    _keep_out_of_the_way()
    _worker_rules = known_rules(sources)


def _report_here(task: Task) -> Report:
    assert _worker_rules is not None
    return report(task, _worker_rules)


def _keep_out_of_the_way() -> None:
    """Hypothesis keeps notes on the code it runs; they do not belong in the user's directory."""
    set_hypothesis_home_dir(Path(tempfile.gettempdir()) / "bbrewrite-hypothesis")


def rule_report(verdict: Verdict, table: OperatorTable, budget: Budget, width: int) -> Report:
    """A verdict in words, with what a sound rule does to floating point."""
    rule, outcome = verdict.rule, verdict.outcome
    lines: list[str] = []
    notes: list[str] = []
    warnings: list[str] = []
    result = "sound" if verdict.is_sound else "untested"
    if outcome.counterexample is not None:
        result = "unsound"
        lines = counterexample_lines(outcome.counterexample, table, width)
    elif not verdict.is_tested:
        lines = [_why_untested(verdict)]
    else:
        for claim in claims(rule):
            notes += [_note_text(note) for note in float_notes(claim, table)]
            loss = accuracy_loss(claim, table, budget.seed)
            if loss is not None:
                (notes if rule.fast_math is not None else warnings).append(_loss_text(loss, rule))
    saved_by = tuple(condition_text(condition, table) for condition in verdict.saved_by)
    return Report(
        rule.name,
        "rule",
        rule.span.source.name,
        rule.span.line,
        result,
        outcome.met,
        verdict.seconds,
        dict(outcome.compared),
        outcome.undecided,
        tuple(lines),
        saved_by,
        tuple(dict.fromkeys(notes)),
        tuple(dict.fromkeys(warnings)),
    )


def counterexample_lines(found: Counterexample, table: OperatorTable, width: int) -> list[str]:
    """The instance, both evaluations step by step, and the values that differ."""
    plan, instance = found.plan, found.instance
    lines = instance_lines(instance)
    left, right = plan.claim.sides[found.side]
    if found.place is None:
        return [*lines, "the right side has no shape here: it has one only where sizes open on the left are equal"]
    one, other = aligned(
        Evaluator(table, ExactDomain(), instance, plan.left).value(left, instance.outer),
        Evaluator(table, ExactDomain(), instance, plan.right).value(right, instance.outer),
    )
    a, b = one[found.place], other[found.place]
    digits = digits_apart(number_text, a, b)
    left_lines = evaluation_lines(left, instance, plan.left, table, digits)
    right_lines = evaluation_lines(right, instance, plan.right, table, digits)
    where = f", entry {found.place + 1} of {len(one)}" if len(one) > 1 else ""
    verdict = f"the left side is {number_text(a, digits)}, the right side is {number_text(b, digits)}{where}"
    return [*lines, *two_columns(left_lines, right_lines, width), verdict]


def _why_untested(verdict: Verdict) -> str:
    outcome = verdict.outcome
    if outcome.untypable:
        return "could not be tested: no kinds of its variables give both sides a type"
    if not outcome.met:
        return f"could not be tested: none of {outcome.tried} instances met the conditions"
    return f"could not be tested: the left side had no decided value in {outcome.met} instances"


def _note_text(note: FloatNote) -> str:
    digits = digits_apart(number_text, note.left, note.right)
    left, right = number_text(note.left, digits), number_text(note.right, digits)
    return f"floats differ by {note.kind}: {floats_text(note.values)} gives {left} and {right}"


def _loss_text(loss: AccuracyLoss, rule: Rule) -> str:
    values = "; ".join(f"{name} = {value_text(value, 6)}" for name, value in loss.values.items())
    text = (
        f"loses accuracy in float32: exact {loss.exact:.7g}, left {loss.left:.7g} (error {loss.left_error:.0e}),"
        f" right {loss.right:.7g} (error {loss.right_error:.0e}) at {values}"
    )
    return text if rule.fast_math is not None else f'{text}; mark it @fast_math("why"), or give its safe form'


def _monoid_report(verdict: MonoidVerdict, rules: RuleSet) -> Report:
    monoid, broken = verdict.monoid, verdict.broken
    lines: list[str] = []
    if broken is not None:
        lines = [f"not a monoid: {broken.law} fails"]
        names = ("a", "b", "c") if len(broken.states) > 1 or "a" in broken.law.split("=")[0] else ("identity",)
        lines += [f"{name} = {_state_text(state)}" for name, state in zip(names, broken.states, strict=False)]
        left, right = broken.law.split(" = ", 1)
        digits = digits_apart(_state_text, broken.left, broken.right)
        lines += [f"{left} = {_state_text(broken.left, digits)}", f"{right} = {_state_text(broken.right, digits)}"]
    elif not verdict.instances:
        lines = ["could not be tested: no kinds of its operands give the state a type"]
    result = "sound" if verdict.is_sound else "unsound" if broken is not None else "untested"
    return Report(monoid.name, "monoid", "", 0, result, verdict.instances, verdict.seconds, lines=tuple(lines))


def _state_text(state: State, digits: int = DIGITS) -> str:
    return f"({', '.join(value_text(component, digits) for component in state)})"
