"""Saturation: runs rules over a program's terms in egglog until nothing changes or a limit is met.

Every rewrite is made by egglog from the text of `compile.py`. Phases follow each other; in each, the analyses run
to their end before every round of rules, and the size is checked after it. There is no limit on time, so
that the same input gives the same e-graph on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bbrewrite.core.indices import IndexTable
from bbrewrite.core.programs import Assumption, Tensor
from bbrewrite.core.terms import Term
from bbrewrite.egraph.analyses import RULESET
from bbrewrite.egraph.compile import compile_rule, engine_text
from bbrewrite.egraph.freeze import freeze
from bbrewrite.egraph.program import spell_program
from bbrewrite.egraph.view import FrozenGraph, SaturationReport
from bbrewrite.rules.rules import PHASES, RuleSet

if TYPE_CHECKING:
    from egglog.bindings import EGraph


@dataclass(frozen=True)
class Limits:
    """Where saturation stops: e-nodes of terms, and rounds of rules over all phases."""

    nodes: int = 20_000
    iterations: int = 200


def saturate(
    roots: Mapping[str, Term],
    indices: IndexTable,
    tensors: Mapping[str, Tensor],
    assumptions: Iterable[Assumption],
    ruleset: RuleSet,
    limits: Limits | None = None,
    siblings: Iterable[tuple[str, str]] = (),
    fast_math: bool = False,
) -> FrozenGraph:
    """The saturated e-graph of the roots, frozen.

    `tensors` are all tensors that the terms read; `siblings` the pairs of roots of which `siblings(x, y)` is
    true (see `siblings.py`). Raises InputError where the rules have made two different numbers, or values of
    different shape, equal.
    """
    limits = limits or Limits()
    spelled = spell_program(roots, indices, tensors, assumptions, ruleset.table)
    rules = ruleset.enabled(fast_math)
    owners = {c.name: c.rule for rule in rules for c in compile_rule(rule, spelled.masks)}
    from egglog.bindings import EGraph

    engine = EGraph(no_decomp=True)
    text = engine_text(ruleset, spelled.masks, spelled.constructors, fast_math) + spelled.text
    pairs = [f"(siblings {spelled.globals[roots[x]]} {spelled.globals[roots[y]]})\n" for x, y in siblings]
    engine.run_program(*engine.parse_program(text + "".join(pairs)))

    run = _Run(engine, limits, {rule.name: 0 for rule in rules}, owners)
    phases = [phase for phase in PHASES if any(rule.phase == phase for rule in rules)]
    run.analyse()
    for phase in phases:
        run.phase(phase)
    report = SaturationReport(0, 0, run.iterations, run.stopped_by, run.counts)
    return freeze(engine, spelled, roots, report, indices, tensors, ruleset.table)


@dataclass
class _Run:
    """One run of the engine, with its counts."""

    engine: EGraph
    limits: Limits
    counts: dict[str, int]
    owners: Mapping[str, str]
    iterations: int = 0
    stopped_by: str = "saturated"

    def analyse(self) -> None:
        self._schedule(f"(saturate (run {RULESET}))")

    def phase(self, name: str) -> None:
        """Rounds of one phase's rules until nothing changes; none once a limit has been met."""
        while self.stopped_by == "saturated":
            if self.iterations == self.limits.iterations:
                self.stopped_by = "iterations"
                return
            self.iterations += 1
            if not self._schedule(f"(run {name})"):
                return
            self.analyse()
            if self._nodes() > self.limits.nodes:
                self.stopped_by = "nodes"

    def _schedule(self, schedule: str) -> bool:
        """Whether running the schedule changed the e-graph."""
        (output,) = self.engine.run_program(*self.engine.parse_program(f"(run-schedule {schedule})"))
        report = output.report  # pyright: ignore[reportAttributeAccessIssue]
        for name, count in report.num_matches_per_rule.items():
            if name in self.owners:
                self.counts[self.owners[name]] += count
        return report.updated

    def _nodes(self) -> int:
        (output,) = self.engine.run_program(*self.engine.parse_program("(print-size)"))
        sizes = output.sizes  # pyright: ignore[reportAttributeAccessIssue]
        return sum(size for name, size in sizes if name[0].isupper() or name.startswith(("op-", "reduce-")))
