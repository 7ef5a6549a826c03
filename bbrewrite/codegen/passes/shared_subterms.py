"""Which parts of a statement several of its steps would compute again. What becomes of them, `flatten.py` decides."""

from __future__ import annotations

from collections import defaultdict

from bbrewrite.codegen.scalars import work_of
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.terms import Apply, Term, walk
from bbrewrite.core.types import Typing


def shared_subterms(expression: Term, typing: Typing, table: OperatorTable, costly: float) -> frozenset[Term]:
    """Subterms, of `costly` work or more, that more than one step of the statement would compute.

    Steps begin at the expression itself and at folds and products, whose operands belong to them; walking from users to
    operands, a subterm that two steps reach becomes a step of its own.
    """
    order = list(reversed(list(walk(expression))))
    steps: dict[Term, set[Term]] = defaultdict(set)
    steps[expression].add(expression)
    shared: set[Term] = set()
    for node in order:
        begins = isinstance(node, Apply) and bool(table.operators[node.operator].fold)
        if (
            not begins
            and isinstance(node, Apply)
            and len(steps[node]) > 1
            and typing.block(node).axes
            and work_of(node, table) >= costly
        ):
            shared.add(node)
            begins = True
        for child in node.children:
            steps[child] |= {node} if begins else steps[node]
    return frozenset(shared)
