"""Rules as egglog text. `bbrewrite check --emit egglog` prints it, and saturation runs the same text.

A rule becomes one egglog rule for each direction: premises that name the matched classes, its
conditions as premises on the analyses, and one union for each rewrite. Nothing about any particular rule is
known here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from bbrewrite.core.terms import Apply, Cast, Local, Number, Size, Term
from bbrewrite.egraph.analyses import (
    RULESET,
    constant_rules,
    free_declarations,
    free_rules,
    scalar_rules,
    sibling_rules,
)
from bbrewrite.egraph.facts import fact_declarations, fact_rules
from bbrewrite.egraph.masks import Masks
from bbrewrite.egraph.vocabulary import (
    NUMBER,
    ROUND,
    SIZE,
    STRUCTURE,
    Constructor,
    attributes_of,
    constructor_of,
    spelled_number,
)
from bbrewrite.rules.rules import (
    PHASES,
    Comparison,
    Condition,
    Fact,
    IsConst,
    IsScalar,
    NotFree,
    Rule,
    RuleSet,
    Siblings,
)

_ARITHMETIC = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}
_COMPARISONS = {
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "equal": "=",
    "not_equal": "!=",
}
_ROOT = "?it"


@dataclass(frozen=True)
class CompiledRule:
    """One egglog rule: its engine name, the user's rule it counts for, and the text; the constructors without which it
    cannot match, and those of what it makes.
    """

    name: str
    rule: str
    text: str
    needs: frozenset[Constructor]
    makes: frozenset[Constructor]


def engine_text(
    ruleset: RuleSet, masks: Masks, constructors: Iterable[Constructor] = (), fast_math: bool = False
) -> str:
    """The whole egglog program that rules need: declarations, analyses, rules. `constructors` adds a program's own."""
    compiled = compile_rules(ruleset.enabled(fast_math), masks)
    mentioned = frozenset[Constructor]().union(*(rule.needs | rule.makes for rule in compiled))
    return text_of(ruleset, masks, compiled, {*STRUCTURE, *constructors, *mentioned}, fast_math)


def text_of(
    ruleset: RuleSet, masks: Masks, compiled: Iterable[CompiledRule], met: Collection[Constructor], fast_math: bool
) -> str:
    """The egglog program of some of the rules, compiled, for terms of the constructors that are met. Analyses tell what
    any rule asks for.
    """
    declared = sorted({*STRUCTURE, *met}, key=lambda c: c.name)
    analysed = [constructor for constructor in declared if constructor in met]
    asked = {type(condition) for rule in ruleset.enabled(fast_math) for condition in rule.conditions}
    lines = [
        "(sort Term)",
        *(constructor.declaration for constructor in declared),
        *free_declarations(masks),
        "(function root (i64) i64 :no-merge)  ; the index that holds an index's extent",
        "(function extent (i64) f64 :no-merge)",
        "(relation siblings (Term Term))",
        "(relation constant (Term))",
        "(relation scalar (Term))",
        *fact_declarations(),
        *(f"(ruleset {name})" for name in (RULESET, *PHASES)),
        *(rule for constructor in analysed for rule in free_rules(constructor, masks)),
        *(rule for constructor in analysed if IsConst in asked for rule in constant_rules(constructor)),
        *(rule for constructor in analysed if IsScalar in asked for rule in scalar_rules(constructor, ruleset.table)),
        *(fact_rules(analysed, ruleset.table) if Fact in asked else []),
        *sibling_rules(),
        *(rule.text for rule in compiled),
    ]
    return "\n".join(lines) + "\n"


def compile_rules(rules: Iterable[Rule], masks: Masks) -> tuple[CompiledRule, ...]:
    """The egglog rules of all rules, in order."""
    return tuple(compiled for rule in rules for compiled in compile_rule(rule, masks))


@lru_cache(maxsize=4096)
def compile_rule(rule: Rule, masks: Masks) -> tuple[CompiledRule, ...]:
    """The rule's egglog rules: one, or two where it goes both ways. Every saturation asks, so the text is kept."""
    compiled = _compile(rule, rule.name, rule.matches, rule.rewrites, masks)
    if not rule.both_ways:
        return (compiled,)
    return (compiled, _compile(rule, f"{rule.name} <=", rule.rewrites, rule.matches, masks))


@dataclass
class _Body:
    """The premises of a rule as they are collected."""

    masks: Masks
    premises: list[str] = field(default_factory=list[str])
    constructors: set[Constructor] = field(default_factory=set[Constructor])
    _casts: int = 0

    def add(self, premise: str) -> None:
        if premise not in self.premises:
            self.premises.append(premise)

    def spell(self, term: Term) -> str:
        """A pattern or replacement; sizes add the premise that finds the root of their index."""
        match term:
            case Local(name):
                return f"?{name}" if name else _ROOT
            case Size(index):
                self.constructors.add(SIZE)
                self.add(f"(= ?root-{index} (root ?{index}))")
                return f"(Size ?root-{index})"
            case Cast():
                self._casts += 1
                self.constructors.add(ROUND)
                return f"(Round ?element-{self._casts} {self.spell(term.value)})"
            case _:
                constructor = constructor_of(term)
                self.constructors.add(constructor)
                head = [constructor.name, *attributes_of(term, lambda index: f"?{index}")]
                return f"({' '.join([*head, *map(self.spell, term.children)])})"

    def number(self, term: Term) -> str:
        """A number in a comparison: a literal, a variable that is a number, an extent, or arithmetic."""
        match term:
            case Number(value):
                return spelled_number(value)
            case Local(name):
                self.constructors.add(NUMBER)
                self.add(f"(= ?{name} (Number ?value-{name}))")
                return f"?value-{name}"
            case Size(index):
                self.add(f"(= ?extent-{index} (extent ?{index}))")
                return f"?extent-{index}"
            case Apply("negate", (operand,)):
                return f"(neg {self.number(operand)})"
            case Apply(operator, (left, right)):
                return f"({_ARITHMETIC[operator]} {self.number(left)} {self.number(right)})"
            case _:
                raise AssertionError(term)

    def condition(self, condition: Condition) -> None:
        match condition:
            case NotFree(index, term):
                self.add(f"(= {self.masks.zero} (& (free {self.spell(term)}) {self.masks.bit(f'?{index}')}))")
            case IsConst(term):
                self.add(f"(constant {self.spell(term)})")
            case IsScalar(term):
                self.add(f"(scalar {self.spell(term)})")
            case Fact(fact, term):
                self.add(f"({fact} {self.spell(term)})")
            case Siblings(first, second):
                self.add(f"(siblings {self.spell(first)} {self.spell(second)})")
            case Comparison(Apply(operator, (left, right))):
                self.add(f"({_COMPARISONS[operator]} {self.number(left)} {self.number(right)})")
            case Comparison():
                raise AssertionError(condition)


def _compile(
    rule: Rule,
    name: str,
    matches: tuple[tuple[str, Term], ...],
    rewrites: tuple[tuple[str, Term], ...],
    masks: Masks,
) -> CompiledRule:
    body = _Body(masks)
    for matched, pattern in matches:
        body.add(f"(= {body.spell(Local(matched))} {body.spell(pattern)})")
    for condition in rule.conditions:
        body.condition(condition)
    needs = frozenset(body.constructors)
    unions = [f"(union {body.spell(Local(matched))} {body.spell(term)})" for matched, term in rewrites]
    premises, actions = "\n       ".join(body.premises), "\n       ".join(unions)
    text = f'(rule ({premises})\n      ({actions})\n      :ruleset {rule.phase} :name "{name}")'
    return CompiledRule(name, rule.name, text, needs, frozenset(body.constructors))
