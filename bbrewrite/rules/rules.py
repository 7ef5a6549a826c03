"""Rules as values: what a rule file says once it is parsed and checked.

A pattern is a block term whose `Local` leaves are pattern variables and whose indices are index variables,
so that everything that works on terms (printing, evaluating, spelling for the e-graph) works on rules.
Users' structured operators are already expanded; users' functions and monoids are in the operator table.
"""

from __future__ import annotations

from dataclasses import dataclass

from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.spans import Span
from bbrewrite.core.terms import Term
from bbrewrite.lang.diagnostics import Diagnostic

# `lower` runs first and to its end; `fuse` is the default; `extend` runs last, with what is left of the limits.
PHASES = ("lower", "fuse", "extend")
FACTS = ("nonzero", "positive", "nonnegative", "finite")


@dataclass(frozen=True)
class NotFree:
    """`i not in free(c)`: the value does not depend on the index."""

    index: str
    term: Term


@dataclass(frozen=True)
class IsConst:
    """`a is const`: the value depends on weights, numbers and sizes only."""

    term: Term


@dataclass(frozen=True)
class IsScalar:
    """`s is scalar`: the block is a single number, which broadcasts."""

    term: Term


@dataclass(frozen=True)
class Comparison:
    """A comparison (an `Apply` of one) between numbers, sizes and arithmetic on them; a variable must be a number."""

    term: Term


@dataclass(frozen=True)
class Fact:
    """`positive(x)` and its like: every entry of x is so, where it is a number at all."""

    fact: str
    term: Term


@dataclass(frozen=True)
class Siblings:
    """`siblings(x, y)`: two definitions of the program that are worth making in one loop.

    They are lists over one outermost index, read a common tensor, and neither reads the other unless both are
    outputs. It is about worth, not truth: a rule may not need it to be sound.
    """

    first: Term
    second: Term


type Condition = NotFree | IsConst | IsScalar | Comparison | Fact | Siblings


@dataclass(frozen=True)
class RuleTest:
    """An example with a rule: `left` becomes `right`, or stays as it is where `right` is None."""

    left: Term
    right: Term | None
    span: Span


@dataclass(frozen=True)
class Rule:
    """One rule. `matches` are named patterns that hold together; `rewrites` say what each named value equals.

    A plain rule `left => right` has one of each, named "". `let`s are substituted away. `fast_math` is the
    reason why the rule is off by default, else None.
    """

    name: str
    meaning: str
    documentation: str
    span: Span
    matches: tuple[tuple[str, Term], ...]
    rewrites: tuple[tuple[str, Term], ...]
    both_ways: bool = False
    conditions: tuple[Condition, ...] = ()
    phase: str = "fuse"
    fast_math: str | None = None
    tests: tuple[RuleTest, ...] = ()

    def __hash__(self) -> int:
        # Names tell nearly all rules apart, and what is kept by rule is asked for again and again.
        return hash(self.name)


@dataclass(frozen=True)
class RuleSet:
    """Rules in order of name of file and line, and the operator table with what the files add to it.

    `warnings` are about rules that have a meaning, perhaps not the one that was meant.
    """

    rules: tuple[Rule, ...]
    table: OperatorTable
    warnings: tuple[Diagnostic, ...] = ()

    def enabled(self, fast_math: bool = False) -> tuple[Rule, ...]:
        """The rules that take part."""
        return tuple(rule for rule in self.rules if fast_math or rule.fast_math is None)
