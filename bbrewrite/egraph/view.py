"""The frozen e-graph: what saturation hands to planning.

An e-class is a set of e-nodes of equal value; an e-node is a term whose operands are e-classes. The view is
immutable and knows nothing of the engine that made it. Class numbers carry no meaning: whoever needs an order
that survives renaming of rules must order by printed terms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bbrewrite.core.terms import Term


@dataclass(frozen=True)
class ENode:
    """`head` is a term of the right operator and attributes whose own operands are placeholders."""

    head: Term
    children: tuple[int, ...]

    def build(self, operands: tuple[Term, ...]) -> Term:
        """The term with these operands."""
        return self.head.with_children(operands)


@dataclass(frozen=True)
class EClass:
    """`free` are the indices on which the value depends (proved; a member may mention more).

    `facts` are the names of what is proved besides, of `constant`, `scalar` and the facts about values; only what some
    rule asks for is ever looked for.
    """

    nodes: tuple[ENode, ...]
    free: frozenset[str]
    facts: frozenset[str] = frozenset()


@dataclass(frozen=True)
class SaturationReport:
    """What saturation did. `stopped_by` is "saturated" or the name of the limit that was met."""

    nodes: int
    classes: int
    iterations: int
    stopped_by: str
    rules_applied: Mapping[str, int]  # rule name to number of matches that changed or confirmed the graph

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence for the report where a limit was met."""
        if self.stopped_by == "saturated":
            return ()
        met = {"nodes": "e-nodes", "iterations": "rounds of rules"}[self.stopped_by]
        return (
            f"the rules met the limit on {met}: the plan is the best of the forms found so far,"
            " and there may be better ones",
        )


@dataclass(frozen=True)
class FrozenGraph:
    """`roots` gives the class of each definition of the program by tensor name (every definition, not only outputs)."""

    classes: Mapping[int, EClass]
    roots: Mapping[str, int]
    report: SaturationReport


def united_reports(reports: Sequence[SaturationReport]) -> SaturationReport:
    """What several saturations did together: sums, the most iterations, and the first limit that was met."""
    applied: Counter[str] = Counter()
    for report in reports:
        applied.update(report.rules_applied)
    return SaturationReport(
        sum(report.nodes for report in reports),
        sum(report.classes for report in reports),
        max((report.iterations for report in reports), default=0),
        next((report.stopped_by for report in reports if report.stopped_by != "saturated"), "saturated"),
        applied,
    )
