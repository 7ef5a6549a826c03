"""Derivations of programs given as text, and an independent check of what they claim."""

from __future__ import annotations

from dataclasses import replace

from bbrewrite.core.indices import IndexTable
from bbrewrite.core.terms import (
    Apply,
    At,
    Cast,
    Component,
    IndexValue,
    Local,
    Map,
    Number,
    Reduce,
    Size,
    Term,
    walk,
)
from bbrewrite.explain.checking import StepChecker, Verdict
from bbrewrite.explain.derivation import Derivation, Explained, Step, derive
from bbrewrite.rules.rules import RuleSet
from tests.plan.pipelines import plan_text


def explain(text: str, rules: RuleSet, fast_math: bool = False, block: int | None = None) -> Explained:
    """The derivations of a program's plan."""
    planned = plan_text(text, rules, fast_math=fast_math, block=block)
    return derive(planned.block, planned.graph, planned.plan.terms, rules, rules.table, fast_math)


def verdicts(explained: Explained, rules: RuleSet) -> list[tuple[Step, Verdict]]:
    """Every step with what the interpreter says of it."""
    checker = StepChecker(explained.program, explained.indices, rules.table)
    return [(step, checker.check(step)) for derivation in explained.derivations for step in derivation.steps]


def check_derivations(explained: Explained, rules: RuleSet) -> list[tuple[Step, Verdict]]:
    """Steps are instances of their rules, agree, and lead from the source to the target by replacing equals.

    Gives what the interpreter says of each, which takes long.
    """
    given: list[tuple[Term, Term]] = []
    for derivation in explained.derivations:
        assert derivation.complete, derivation.output
        for step in derivation.steps:
            assert is_instance(step, explained.indices), step.rule.name
            given.append((step.before, step.after))
        assert follows(derivation, given), derivation.output
    found = verdicts(explained, rules)
    for step, verdict in found:
        assert not verdict.differs, (step.rule.name, verdict)
    return found


def is_instance(step: Step, indices: IndexTable) -> bool:
    """Whether the sides of a step are what its rule's patterns say, under one assignment of the variables."""
    left, right = (step.before, step.after) if step.forward else (step.after, step.before)
    rule = step.rule
    directions = [(rule.matches, rule.rewrites)] + ([(rule.rewrites, rule.matches)] if rule.both_ways else [])
    for patterns, rewrites in directions:
        for name, replacement in rewrites:
            pattern = dict(patterns)[name]
            # Where several patterns match, the replacement may name what only the others bind.
            values: dict[str, Term] = {}
            names: dict[str, str] = {}
            if len(patterns) > 1:
                values |= {k: v for k, v in step.instance.values.items() if k not in dict(patterns)}
                names |= step.instance.binding.indices
            if fits(pattern, left, values, names, indices) and fits(replacement, right, values, names, indices):
                return True
    return False


def fits(pattern: Term, term: Term, values: dict[str, Term], names: dict[str, str], table: IndexTable) -> bool:
    """Whether a term is an instance of a pattern, syntactically."""
    if isinstance(pattern, Local):
        return values.setdefault(pattern.name, term) == term
    if type(pattern) is not type(term) or len(pattern.children) != len(term.children):
        return False
    match pattern, term:
        case Number(), Number():
            return pattern.value == term.value
        case Size(), Size():
            known = names.get(pattern.index)
            return known is None or table.root(known) == term.index
        case (IndexValue(), IndexValue()) | (Map(), Map()):
            heads = names.setdefault(pattern.index, term.index) == term.index
        case Reduce(), Reduce():
            heads = pattern.monoid == term.monoid and names.setdefault(pattern.index, term.index) == term.index
        case At(), At():
            variable, index = pattern.address.plain_index, term.address.plain_index
            heads = variable is not None and index is not None and names.setdefault(variable, index) == index
        case Apply(), Apply():
            pairs = zip(pattern.indices, term.indices, strict=True)
            heads = pattern.operator == term.operator and all(names.setdefault(v, i) == i for v, i in pairs)
        case Component(), Component():
            heads = pattern.position == term.position
        case Cast(), Cast():
            heads = True
        case _:
            heads = not pattern.children or type(pattern) is type(term)
    pairs = zip(pattern.children, term.children, strict=True)
    return heads and all(fits(p, t, values, names, table) for p, t in pairs)


def follows(derivation: Derivation, given: list[tuple[Term, Term]]) -> bool:
    """Whether source and target are equal by congruence, given these equalities: closure, spelled out."""
    ends = [derivation.source, derivation.target, *(side for pair in given for side in pair)]
    terms = list(dict.fromkeys(node for end in ends for node in walk(end)))
    leader = {term: term for term in terms}

    def find(term: Term) -> Term:
        while leader[term] != term:
            term = leader[term]
        return term

    for left, right in given:
        leader[find(left)] = find(right)
    changed = True
    while changed:
        changed = False
        known: dict[Term, Term] = {}
        for term in terms:
            if not term.children:
                continue
            key = term.with_children(tuple(find(child) for child in term.children))
            other = known.setdefault(key, term)
            if find(other) != find(term):
                leader[find(other)] = find(term)
                changed = True
    return find(derivation.source) == find(derivation.target)


def with_sides_changed(step: Step, after: Term) -> Step:
    """The step with another right side: what a wrong rule would have claimed."""
    return replace(step, after=after, instance=replace(step.instance, right=after))
