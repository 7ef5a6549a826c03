"""The engine that rewrites: egglog, given a text, run phase by phase under limits and counted by rule.

The only place that runs egglog. Its bindings are imported when an engine is made: short commands need none. There is
no limit on time, so that the same input gives the same e-graph on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from bbrewrite.egraph.analyses import RULESET
from bbrewrite.egraph.compile import compile_rule
from bbrewrite.egraph.masks import Masks
from bbrewrite.rules.rules import PHASES, Rule

if TYPE_CHECKING:
    from egglog import bindings


@dataclass(frozen=True)
class Limits:
    """Where saturation stops: e-nodes of terms, and rounds of rules over all phases.

    The headline programs need fewer than 100 nodes and 10 rounds. 5000 nodes still plan in seconds; 200
    rounds are far beyond any chain of rewrites that ends.
    """

    nodes: int = 5_000
    iterations: int = 200


def new_graph(text: str = "") -> bindings.EGraph:
    """An e-graph that knows a text and nothing else."""
    from bbrewrite.egraph.bindings import bindings

    graph = bindings.EGraph(no_decomp=True)
    graph.run_program(*graph.parse_program(text))
    return graph


class Engine:
    """One e-graph in the engine. `counts` gives the matches of each rule; `stopped_by` why it stopped."""

    def __init__(
        self, text: str, rules: Iterable[Rule], masks: Masks, limits: Limits, graph: bindings.EGraph | None = None
    ) -> None:
        """The text is added to what `graph` knows; by itself it is all that the engine knows."""
        rules = tuple(rules)
        self.graph = graph or new_graph()
        self.counts = {rule.name: 0 for rule in rules}
        self.iterations = 0
        self.stopped_by = "saturated"
        self._owners = {compiled.name: compiled.rule for rule in rules for compiled in compile_rule(rule, masks)}
        self._phases = [phase for phase in PHASES if any(rule.phase == phase for rule in rules)]
        self._limits = limits
        self._run(text)

    def saturate(self) -> None:
        """Runs every phase in turn until nothing changes or a limit is met."""
        self._schedule(f"(saturate (run {RULESET}))")
        for phase in self._phases:
            self._phase(phase)

    def holds(self, fact: str) -> bool:
        """Whether a fact is true of the e-graph."""
        from bbrewrite.egraph.bindings import bindings

        try:
            self._run(f"(check {fact})")
        except bindings.EggSmolError:
            return False
        return True

    def _phase(self, name: str) -> None:
        """Rounds of one phase's rules, each after the analyses have settled.

        None is begun that would pass the limit on nodes if the graph grew as many times as in the last one: where rules
        explode, one round may make several times what all before it made.
        """
        nodes = self._nodes()
        while self.stopped_by == "saturated":
            if self.iterations == self._limits.iterations:
                self.stopped_by = "iterations"
                return
            self.iterations += 1
            if not self._run_rules(name):
                return
            before, nodes = nodes, self._nodes()
            if nodes > self._limits.nodes or nodes * nodes > self._limits.nodes * before:
                self.stopped_by = "nodes"

    def _run_rules(self, phase: str) -> bool:
        """One round, and the analyses after it; whether anything changed."""
        if not self._schedule(f"(run {phase})"):
            return False
        self._schedule(f"(saturate (run {RULESET}))")
        return True

    def _schedule(self, schedule: str) -> bool:
        """Whether running the schedule changed the e-graph."""
        (output,) = self._run(f"(run-schedule {schedule})")
        report = cast("bindings.RunScheduleOutput", output).report
        for name, count in report.num_matches_per_rule.items():
            if name in self._owners:
                self.counts[self._owners[name]] += count
        return report.updated

    def _nodes(self) -> int:
        (output,) = self._run("(print-size)")
        sizes: Mapping[str, int] = dict(cast("bindings.PrintAllFunctionsSize", output).sizes)
        return sum(size for name, size in sizes.items() if name[0].isupper() or name.startswith(("op-", "reduce-")))

    def _run(self, text: str) -> list[bindings._CommandOutput]:  # pyright: ignore[reportPrivateUsage]
        return self.graph.run_program(*self.graph.parse_program(text))
