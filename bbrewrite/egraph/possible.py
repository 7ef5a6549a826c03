"""Which rules can match at all in a program, told by constructors: an engine that is spared the others is ready sooner.

A rule can match where all that its patterns and conditions mention occurs in the program, or is made by rules that can.
So one that is left out matches nothing, in no round, and all else is as it would be with it. Attributes and operands
are not looked at: a rule that can match need not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bbrewrite.egraph.compile import CompiledRule, compile_rules, text_of
from bbrewrite.egraph.masks import Masks
from bbrewrite.egraph.vocabulary import Constructor
from bbrewrite.rules.rules import RuleSet


def possible_text(ruleset: RuleSet, masks: Masks, constructors: Iterable[Constructor], fast_math: bool = False) -> str:
    """The egglog program that a program of these constructors needs, without rules that cannot match in it."""
    compiled = compile_rules(ruleset.enabled(fast_math), masks)
    rules, met = possible_rules(compiled, constructors)
    return text_of(ruleset, masks, rules, met, fast_math)


def possible_rules(
    rules: Sequence[CompiledRule], constructors: Iterable[Constructor]
) -> tuple[tuple[CompiledRule, ...], frozenset[Constructor]]:
    """The rules, in order, that can match in a program of these constructors; and all that its terms can ever have."""
    met = set(constructors)
    known = -1
    while known < len(met):
        known = len(met)
        met.update(*(rule.makes for rule in rules if rule.needs <= met))
    return tuple(rule for rule in rules if rule.needs <= met), frozenset(met)
