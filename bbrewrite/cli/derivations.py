"""Derivations of a plan with every step checked, and the sentences that are said of them, on paper and on screen."""

from __future__ import annotations

from collections.abc import Callable

from bbrewrite.explain.abbreviate import Abbreviator
from bbrewrite.explain.checking import StepChecker, Verdict
from bbrewrite.explain.derivation import Derivation, Step, derive
from bbrewrite.fusion import Fusion
from bbrewrite.lang.diagnostics import counted
from bbrewrite.rules.rules import Rule

type CheckedSteps = list[tuple[Step, Verdict]]


class CheckedDerivations:
    """Makes the derivation of every output and checks its steps. `say` is told what is being done."""

    def __init__(self, fusion: Fusion, say: Callable[[str], None]) -> None:
        request = fusion.request
        table = request.rules.table
        assert fusion.graph is not None, "a program in parts is explained class by class"
        say("deriving")
        explained = derive(request.blocks, fusion.graph, fusion.fused.terms, request.rules, table, request.fast_math)
        checker = StepChecker(explained.program, explained.indices, table)
        self.abbreviator = Abbreviator(explained.definitions, explained.indices, table)
        self.all: list[tuple[Derivation, CheckedSteps]] = []
        for derivation in explained.derivations:
            checked: CheckedSteps = []
            for number, step in enumerate(derivation.steps, 1):
                say(f"checking step {number} of {len(derivation.steps)}")
                checked.append((step, checker.check(step)))
            self.all.append((derivation, checked))

    @property
    def is_right(self) -> bool:
        """Whether there is a derivation of every output and no step is wrong."""
        return all(derivation.complete for derivation, _ in self.all) and not self.wrong

    @property
    def wrong(self) -> list[Step]:
        """The steps whose two sides differ."""
        return [step for _, checked in self.all for step, verdict in checked if verdict.differs]


def wrong_rules(fusion: Fusion, say: Callable[[str], None]) -> list[Rule]:
    """The rules of which a step of the derivations does not hold, as those of a wrong result are looked for."""
    return list({step.rule.name: step.rule for step in CheckedDerivations(fusion, say).wrong}.values())


def heading(derivation: Derivation, checked: CheckedSteps) -> str:
    """What is said above a derivation."""
    start = f"derivation of {derivation.output}: "
    if not derivation.complete:
        return start + "NOT FOUND. Please report it with the program and rules."
    if derivation.source == derivation.target:
        return start + "it stays as it is"
    if not checked:
        return start + "by the steps above"
    agreeing = sum(verdict.agrees for _, verdict in checked)
    return start + f"{counted(len(checked), 'step')}, {agreeing} checked"


def rule_place(rule: Rule) -> str:
    """Where a rule is written."""
    return f"{rule.span.source.name}:{rule.span.line}"


def verdict_text(verdict: Verdict) -> str:
    """What checking a step found."""
    if verdict.difference is not None:
        one, other = verdict.difference
        sizes = ", ".join(f"{name} = {size}" for name, size in (verdict.sizes or {}).items())
        return f"WRONG: the two sides differ, {one:.9g} and {other:.9g}, at {sizes}"
    if not verdict.compared:
        return "not checked: at small sizes nothing is defined that could be compared"
    return f"checked: both sides agree on {verdict.compared} entries"
