"""Collects the warnings about rules that have a meaning: what is strange about one, and about several together.

A warning never stops a rule from being used; `fuzz` decides whether it is sound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bbrewrite.core.spans import Source, Span
from bbrewrite.lang.diagnostics import Diagnostic
from bbrewrite.rules.conditions import verdict
from bbrewrite.rules.contradictions import contradiction_warnings
from bbrewrite.rules.duplicates import duplicate_warnings
from bbrewrite.rules.growth import growth_warnings
from bbrewrite.rules.kinds import Use
from bbrewrite.rules.rules import Condition, Rule
from bbrewrite.rules.scope import Side, rebound_warnings, scope_warnings


def rule_warnings(
    rule: Rule, left: Side, right: Side, conditions: Sequence[tuple[Condition, Span]], uses: Iterable[Use]
) -> Iterator[Diagnostic]:
    """Warnings about one rule; `conditions` are the rule's, each with its place, `uses` its operands."""
    yield from scope_warnings(left, right, rule.conditions)
    if rule.both_ways:
        yield from scope_warnings(right, left, rule.conditions)
    yield from rebound_warnings(uses)
    yield from _idle_conditions(conditions)
    yield from contradiction_warnings(conditions)
    if not rule.matches[0][0]:
        ways = [(left.terms[0], right.terms[0]), (right.terms[0], left.terms[0])]
        found = [warning for way in ways[: 1 + rule.both_ways] for warning in growth_warnings(*way, rule.span)]
        yield from found[:1]


def ruleset_warnings(rules: Sequence[Rule]) -> Iterator[Diagnostic]:
    """Warnings about rules beside each other, and one for each file with rules that say nothing of their meaning."""
    yield from duplicate_warnings(rules)
    silent: dict[int, list[Rule]] = {}
    for rule in rules:
        if not (rule.meaning or rule.documentation):
            silent.setdefault(id(rule.span.source), []).append(rule)
    for found in silent.values():
        yield _undocumented(found[0].span.source, found)


def _undocumented(source: Source, rules: Sequence[Rule]) -> Diagnostic:
    first, *others = rules
    names = f"`{first.name}`" + (f" and {len(others)} more of {source.name}" if others else "")
    message = f"nothing says what {names} mean{'' if others else 's'}"
    hint = "write the equation in a comment above the rule, or a meaning in quotes behind its name"
    return Diagnostic("undocumented", message, first.span, hint, severity="warning")


def _idle_conditions(conditions: Sequence[tuple[Condition, Span]]) -> Iterator[Diagnostic]:
    seen: set[Condition] = set()
    for condition, place in conditions:
        known = verdict(condition)
        if known is False:
            hint = "the rule can never fire"
            yield Diagnostic("never-holds", "this condition can never hold", place, hint, severity="warning")
        elif known is True:
            yield Diagnostic("always-holds", "this condition always holds", place, "leave it out", severity="warning")
        elif condition in seen:
            yield Diagnostic(
                "always-holds", "this condition is stated twice", place, "leave it out", severity="warning"
            )
        seen.add(condition)
