"""Prints what was inferred of a rule: its indices, what each variable is and on which loops it may depend."""

from __future__ import annotations

from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.terms import Local
from bbrewrite.rules.inference import Inference
from bbrewrite.rules.rules import IsScalar, NotFree, Rule
from bbrewrite.rules.scope import loops_of_variables


def signature(rule: Rule, table: OperatorTable) -> str:
    """`hoist(x[i]: matrix or vector, c: vector) -> matrix or vector`: x may depend on i, c does not."""
    scalars = frozenset(condition.term for condition in rule.conditions if isinstance(condition, IsScalar))
    patterns = [term for _, term in rule.matches]
    sides = [(Local(name), term) for name, term in rule.matches if name]
    sides += [(dict(rule.matches)[name], term) for name, term in rule.rewrites]
    found = Inference(table, scalars).solve(patterns, sides)
    apart = {(c.term, c.index) for c in rule.conditions if isinstance(c, NotFree)}
    variables = ", ".join(
        f"{name}{_loops([index for index in sorted(loops) if (Local(name), index) not in apart])}: "
        f"{found.shown(Local(name))}"
        for name, loops in loops_of_variables(patterns).items()
    )
    results = ", ".join(f"{name}: {found.shown(term)}" if name else found.shown(term) for name, term in rule.matches)
    return f"{rule.name}({variables}) {'<->' if rule.both_ways else '->'} {results}"


def _loops(indices: list[str]) -> str:
    return f"[{', '.join(indices)}]" if indices else ""
