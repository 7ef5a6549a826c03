"""What each rule costs and gives: tries, hits, time and new nodes.

The engine runs all rules of a phase together and does not say which of them made a node. Here every rule has a ruleset
of its own, and the graph is measured after each run. The e-graph comes out the same, but that takes longer, so ordinary
runs do not do it. A term that two rules find counts for the one that found it first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from bbrewrite.core.programs import BlockProgram
from bbrewrite.egraph.analyses import RULESET
from bbrewrite.egraph.compile import compile_rule, engine_text
from bbrewrite.egraph.engine import Engine, Limits
from bbrewrite.egraph.inline import inline
from bbrewrite.egraph.masks import Masks
from bbrewrite.egraph.program import spell_program
from bbrewrite.egraph.siblings import sibling_facts, sibling_pairs
from bbrewrite.rules.rules import Rule, RuleSet

if TYPE_CHECKING:
    from egglog import bindings


@dataclass(frozen=True)
class RuleStatistics:
    """One rule's share of saturation. A try is a round in which the rule was looked for, a hit a new match."""

    rule: Rule
    tries: int = 0
    hits: int = 0
    ms: float = 0.0
    new_nodes: int = 0


def rule_statistics(program: BlockProgram, ruleset: RuleSet, fast_math: bool = False) -> tuple[RuleStatistics, ...]:
    """The statistics of every rule that takes part, in order of the files."""
    inlined = inline(program)
    spelled = spell_program(inlined.roots, inlined.indices, program.tensors, program.assumptions, ruleset.table)
    classes = {name: spelled.globals[term] for name, term in inlined.roots.items()}
    pairs = sibling_facts(sibling_pairs(program), classes)
    rules = ruleset.enabled(fast_math)
    text = engine_text(ruleset, spelled.masks, spelled.constructors, fast_math)
    for rule in rules:
        own = compile_rule(replace(rule, phase=_own_ruleset(rule)), spelled.masks)
        for compiled, changed in zip(compile_rule(rule, spelled.masks), own, strict=True):
            text = text.replace(compiled.text, changed.text)
    rulesets = (f"(ruleset {_own_ruleset(rule)})" for rule in rules)
    engine = _MeasuredEngine("\n".join([*rulesets, text, *spelled.lines, *pairs]), rules, spelled.masks)
    engine.saturate()
    return tuple(engine.statistics.values())


def _own_ruleset(rule: Rule) -> str:
    return f"only-{rule.name}"


class _MeasuredEngine(Engine):
    """Runs a phase's rules one after another."""

    def __init__(self, text: str, rules: Iterable[Rule], masks: Masks) -> None:
        rules = tuple(rules)
        super().__init__(text, rules, masks, Limits())
        self.statistics = {rule.name: RuleStatistics(rule) for rule in rules}

    def _run_rules(self, phase: str) -> bool:
        updated = False
        for known in list(self.statistics.values()):
            if known.rule.phase != phase:
                continue
            before = self._nodes()
            (output,) = self._run(f"(run-schedule (run {_own_ruleset(known.rule)}))")
            report = cast("bindings.RunScheduleOutput", output).report
            self.statistics[known.rule.name] = replace(
                known,
                tries=known.tries + 1,
                hits=known.hits + sum(report.num_matches_per_rule.values()),
                ms=known.ms
                + sum(time.total_seconds() for time in report.search_and_apply_time_per_rule.values()) * 1000,
                new_nodes=known.new_nodes + self._nodes() - before,
            )
            updated |= report.updated
        self._schedule(f"(saturate (run {RULESET}))")
        return updated
