"""Runs the examples that rules carry: `test LEFT => RIGHT` and `test LEFT stays`.

Only the rule itself works on the example. Its variables are opaque values that depend on no index; `at(a, i)`
is one that depends on i. Every index has EXTENT positions.
"""

from __future__ import annotations

from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.terms import Cast, Local, Read, Size, Term, rewrite_bottom_up, walk
from bbrewrite.egraph.compile import engine_text
from bbrewrite.egraph.engine import Engine, Limits
from bbrewrite.egraph.masks import Masks
from bbrewrite.egraph.vocabulary import attributes_of, constructor_of
from bbrewrite.lang.diagnostics import Diagnostic
from bbrewrite.rules.rules import Rule, RuleSet, RuleTest

EXTENT = 8.0
_LIMITS = Limits(nodes=1_000, iterations=10)


def failed_examples(ruleset: RuleSet) -> tuple[Diagnostic, ...]:
    """One diagnostic for each example of the rules that does not come out."""
    return tuple(
        Diagnostic("example", failure, test.span)
        for rule in ruleset.rules
        for test in rule.tests
        if (failure := _failure(rule, test, ruleset.table))
    )


def _failure(rule: Rule, test: RuleTest, table: OperatorTable) -> str:
    """What went wrong, or ""."""
    left = rewrite_bottom_up(test.left, _opaque)
    right = None if test.right is None else rewrite_bottom_up(test.right, _opaque)
    numbers = _index_numbers(left, right)
    masks = Masks.for_count(len(numbers))
    nodes = [node for term in (left, right) if term is not None for node in walk(term)]
    lines = [f"(set (root {number}) {number}) (set (extent {number}) {EXTENT})" for number in numbers.values()]
    lines += [f"(set (free {_spelled(node, numbers)}) {masks.zero})" for node in nodes if isinstance(node, Read)]
    lines.append(f"(let $left {_spelled(left, numbers)})")
    text = engine_text(RuleSet((rule,), table), masks, {constructor_of(node) for node in nodes}, fast_math=True)
    engine = Engine(text + "\n".join(lines), (rule,), masks, _LIMITS)
    engine.saturate()
    if right is None:
        return f"`{rule.name}` applies, but the example says that it stays" if engine.counts[rule.name] else ""
    if engine.holds(f"(= $left {_spelled(right, numbers)})"):
        return ""
    done = "gives something else" if engine.counts[rule.name] else "does not apply"
    return f"`{rule.name}` {done}"


def _opaque(term: Term) -> Term:
    match term:
        case Local(name):
            return Read(name)
        case Cast(_, value):
            return Cast("f16", value)
        case _:
            return term


def _index_numbers(*terms: Term | None) -> dict[str, int]:
    nodes = [node for term in terms if term is not None for node in walk(term)]
    names = {name for node in nodes for name in node.free} | {n.bound_index for n in nodes if n.bound_index}
    names |= {node.index for node in nodes if isinstance(node, Size)}
    return {name: number for number, name in enumerate(sorted(names))}


def _spelled(term: Term, numbers: dict[str, int]) -> str:
    operands = [_spelled(child, numbers) for child in term.children]
    attributes = attributes_of(term, lambda index: str(numbers[index]))
    return f"({' '.join([constructor_of(term).name, *attributes, *operands])})"
