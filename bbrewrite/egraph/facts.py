"""Facts about values that are proved from their terms: nonzero, positive, nonnegative, finite.

A fact says that every entry of a value is so over the extended reals, NaN set aside (`finite` excludes
NaN too). Facts only grow; what is not proved is unknown. Extents are taken to be at least 1: where one
is 0 at run time no rewritten form is used.
"""

from __future__ import annotations

from collections.abc import Iterable

from bbrewrite.core.operators import OperatorTable
from bbrewrite.egraph.analyses import RULESET, pattern
from bbrewrite.egraph.vocabulary import AT, AT_ADDRESS, CONVERT, LOADED, MAP, POSITION, ROUND, SIZE, STORED, Constructor
from bbrewrite.rules.rules import FACTS

# Scalar function: facts about its operands a, b, c => a fact about its value.
_OF_FUNCTIONS = """
    add         nonnegative(a) nonnegative(b)           => nonnegative
    add         positive(a) nonnegative(b)              => positive
    add         nonnegative(a) positive(b)              => positive
    add         finite(a) finite(b)                     => finite
    subtract    finite(a) finite(b)                     => finite
    multiply    nonnegative(a) nonnegative(b)           => nonnegative
    multiply    positive(a) positive(b)                 => positive
    multiply    nonzero(a) nonzero(b)                   => nonzero
    multiply    finite(a) finite(b)                     => finite
    divide      nonnegative(a) positive(b)              => nonnegative
    divide      positive(a) positive(b) finite(b)       => positive
    divide      nonzero(a) nonzero(b) finite(b)         => nonzero
    divide      finite(a) nonzero(b) finite(b)          => finite
    exact_quotient  nonnegative(a) positive(b)          => nonnegative
    exact_quotient  positive(a) positive(b) finite(b)   => positive
    exact_quotient  nonzero(a) nonzero(b) finite(b)     => nonzero
    exact_quotient  finite(a) nonzero(b) finite(b)      => finite
    widened     positive(a)                             => positive
    widened     nonnegative(a)                          => nonnegative
    widened     nonzero(a)                              => nonzero
    widened     finite(a)                               => finite
    negate      nonzero(a)                              => nonzero
    negate      finite(a)                               => finite
    where       nonnegative(b) nonnegative(c)           => nonnegative
    where       positive(b) positive(c)                 => positive
    where       nonzero(b) nonzero(c)                   => nonzero
    where       finite(b) finite(c)                     => finite
    maximum     nonnegative(a)                          => nonnegative
    maximum     nonnegative(b)                          => nonnegative
    maximum     positive(a)                             => positive
    maximum     positive(b)                             => positive
    maximum     finite(a) finite(b)                     => finite
    maximum     nonzero(a) nonzero(b)                   => nonzero
    minimum     nonnegative(a) nonnegative(b)           => nonnegative
    minimum     positive(a) positive(b)                 => positive
    minimum     finite(a) finite(b)                     => finite
    minimum     nonzero(a) nonzero(b)                   => nonzero
    exp                                                 => nonnegative
    exp         finite(a)                               => positive
    exp         finite(a)                               => finite
    log         positive(a) finite(a)                   => finite
    sqrt                                                => nonnegative
    sqrt        positive(a)                             => positive
    sqrt        nonnegative(a) finite(a)                => finite
    rsqrt       positive(a)                             => nonnegative
    rsqrt       positive(a) finite(a)                   => positive
    rsqrt       positive(a) finite(a)                   => finite
    recip       positive(a)                             => nonnegative
    recip       positive(a) finite(a)                   => positive
    recip       nonzero(a) finite(a)                    => nonzero
    recip       nonzero(a) finite(a)                    => finite
    abs                                                 => nonnegative
    abs         nonzero(a)                              => positive
    abs         finite(a)                               => finite
    sign        positive(a)                             => positive
    sign        nonnegative(a)                          => nonnegative
    sign        nonzero(a)                              => nonzero
    sign        finite(a)                               => finite
    floor       nonnegative(a)                          => nonnegative
    floor       finite(a)                               => finite
    tanh        positive(a)                             => positive
    tanh        nonnegative(a)                          => nonnegative
    tanh        nonzero(a)                              => nonzero
    tanh        finite(a)                               => finite
    sigmoid                                             => nonnegative
    sigmoid     finite(a)                               => positive
    sigmoid     finite(a)                               => finite
    erf         positive(a)                             => positive
    erf         nonnegative(a)                          => nonnegative
    erf         finite(a)                               => finite
    sin         finite(a)                               => finite
    cos         finite(a)                               => finite
    relu                                                => nonnegative
    relu        positive(a)                             => positive
    relu        finite(a)                               => finite
    silu        nonnegative(a)                          => nonnegative
    silu        positive(a)                             => positive
    silu        finite(a)                               => finite
    gelu        nonnegative(a)                          => nonnegative
    gelu        positive(a)                             => positive
    gelu        finite(a)                               => finite
    softplus                                            => nonnegative
    softplus    finite(a)                               => positive
    softplus    finite(a)                               => finite
    power       positive(a) finite(a) finite(b)         => positive
    power       positive(a) finite(a) finite(b)         => finite
    power       nonnegative(a)                          => nonnegative
"""

# What combining values by a monoid keeps.
_KEPT_BY_MONOIDS = {
    "sum": ("positive", "nonnegative", "finite"),
    "prod": FACTS,
    "max": FACTS,
    "min": FACTS,
}
_KEPT_BY_STRUCTURE = {
    **dict.fromkeys((MAP, AT, AT_ADDRESS, STORED, LOADED), FACTS),
    **dict.fromkeys((ROUND, CONVERT), ("nonnegative",)),
}
_GENERAL = (
    "(rule ((positive x)) ((nonnegative x) (nonzero x))",
    "(rule ((nonnegative x) (nonzero x)) ((positive x))",
    "(rule ((= e (Number v)) (> v 0.0)) ((positive e))",
    "(rule ((= e (Number v)) (>= v 0.0)) ((nonnegative e))",
    "(rule ((= e (Number v)) (!= v 0.0)) ((nonzero e))",
    "(rule ((= e (Number v)) (< (abs v) inf)) ((finite e))",
)
_OF_SQUARES = (
    "(rule ((= e (op-multiply x x))) ((nonnegative e))",
    "(rule ((= e (op-power x y)) (= y (Number v)) (= (% v 2.0) 0.0)) ((nonnegative e))",
)


def fact_declarations() -> list[str]:
    return [f"(relation {fact} (Term))" for fact in FACTS]


def fact_rules(constructors: Iterable[Constructor], table: OperatorTable) -> list[str]:
    """The rules that derive facts for these constructors."""
    constructors = list(constructors)
    names = {constructor.name for constructor in constructors}
    rules = [f"{rule} :ruleset {RULESET})" for rule in _GENERAL]
    rules += [f"{rule} :ruleset {RULESET})" for rule in _OF_SQUARES if rule.split("(")[4].split()[0] in names]
    for constructor in constructors:
        rules += _rules(constructor, table)
    return rules


def _rules(constructor: Constructor, table: OperatorTable) -> list[str]:
    if constructor == SIZE:
        return [_rule(constructor, (), fact) for fact in ("positive", "finite")]
    if constructor == POSITION:
        return [_rule(constructor, (), fact) for fact in ("nonnegative", "finite")]
    kept = _KEPT_BY_STRUCTURE.get(constructor)
    if constructor.name.startswith("reduce-"):
        kept = _KEPT_BY_MONOIDS.get(constructor.name.removeprefix("reduce-"))
    if kept is not None:
        return [_rule(constructor, (f"({fact} x0)",), fact) for fact in kept]
    if not constructor.name.startswith("op-"):
        return []
    operator = table.operators[constructor.name.removeprefix("op-")]
    kept = _KEPT_BY_MONOIDS[operator.fold] if operator.fold else FACTS
    if not operator.function:
        return [_rule(constructor, (f"({fact} x0)",), fact) for fact in kept]
    derived = _function_facts().get(operator.function, [])
    return [_rule(constructor, premises, fact) for premises, fact in derived if fact in kept]


def _function_facts() -> dict[str, list[tuple[tuple[str, ...], str]]]:
    found: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    operand = {letter: f"x{position}" for position, letter in enumerate("abc")}
    for line in _OF_FUNCTIONS.strip().splitlines():
        left, fact = line.split("=>")
        function, *premises = left.split()
        spelled = tuple(f"({premise[:-3]} {operand[premise[-2]]})" for premise in premises)
        found.setdefault(function, []).append((spelled, fact.strip()))
    return found


def _rule(constructor: Constructor, premises: tuple[str, ...], fact: str) -> str:
    body = " ".join([f"(= e {pattern(constructor)})", *premises])
    return f"(rule ({body}) (({fact} e)) :ruleset {RULESET})"
