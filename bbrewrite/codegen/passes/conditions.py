"""Conditions of masks where they are used, instead of in blocks of truth values of their own.

A comparison of positions costs less than to store its result and load it again, and whoever limits work to what a
mask shows (`spans.py`) sees the condition. This is an optimisation; a kernel means the same without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from bbrewrite.codegen.access import classify
from bbrewrite.codegen.scalars import work_of
from bbrewrite.core.elements import Element
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.terms import Apply, IndexValue, Local, Number, Read, Size, Term, rewrite_bottom_up, walk
from bbrewrite.plan.kernel import Kernel, Let, Loop, Statement, Store, Update, walk_statements

# Conditions of at most this work (vector instructions) are repeated where they are used.
_CHEAP = 16.0


def with_conditions_in_place(kernel: Kernel, table: OperatorTable) -> Kernel:
    """The kernel without local blocks that hold nothing but cheap conditions on positions and tensors."""
    statements = [s for s in walk_statements(kernel.body) if isinstance(s, Let | Update)]
    assigned = Counter(statement.target.name for statement in statements)
    written = {tensor.name for tensor in kernel.writes}
    conditions: dict[str, Term] = {}

    def is_condition(term: Term) -> bool:
        leaves = [leaf for leaf in walk(term) if not isinstance(leaf, Apply)]
        plain = all(
            isinstance(leaf, IndexValue | Size | Number)
            or (isinstance(leaf, Read) and leaf.tensor not in written and _is_plain(leaf, kernel))
            for leaf in leaves
        )
        folds = any(isinstance(node, Apply) and table.operators[node.operator].fold for node in walk(term))
        return plain and not folds and work_of(term, table) <= _CHEAP

    # What is made of numbers and extents alone, such as the reciprocal of a divisor, is part of a condition.
    numbers = {
        s.target.name: s.expression
        for s in statements
        if assigned[s.target.name] == 1 and all(isinstance(n, Apply | Number | Size) for n in walk(s.expression))
    }
    for statement in statements:
        if statement.target.type.element is Element.BOOL and assigned[statement.target.name] == 1:
            term = _in_place(statement.expression, numbers | conditions)
            if is_condition(term):
                conditions[statement.target.name] = term

    def rewritten(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        result: list[Statement] = []
        for statement in body:
            if isinstance(statement, Loop):
                inner = rewritten(statement.body)
                result += [replace(statement, body=inner)] if inner else []
            elif isinstance(statement, Let | Update | Store):
                if not (isinstance(statement, Let) and statement.target.name in conditions):
                    result.append(replace(statement, expression=_in_place(statement.expression, conditions)))
            else:
                result.append(statement)
        return tuple(result)

    return replace(kernel, body=rewritten(kernel.body)) if conditions else kernel


def _in_place(term: Term, values: Mapping[str, Term]) -> Term:
    return rewrite_bottom_up(term, lambda node: values.get(node.name, node) if isinstance(node, Local) else node)


def _is_plain(read: Read, kernel: Kernel) -> bool:
    shape = classify(read, kernel.indices)
    return shape.placed and not shape.guarded
