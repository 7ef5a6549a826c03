"""Products of bf16 that come straight from memory: their operands stay bf16, where nothing is lost by that.

A processor that multiplies bf16 pairwise does so at twice the rate of single precision, and other processors read half
the memory. A left operand that was computed is rounded for that where all it comes from is bf16.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from bbrewrite.codegen.access import classify, is_row_contiguous
from bbrewrite.core.elements import Element
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Apply, Local, Read, Term, untransposed, walk
from bbrewrite.core.widening import unwidened
from bbrewrite.plan.kernel import Kernel, Let, Loop, Statement, Store, Update, walk_statements, with_expressions
from bbrewrite.plan.nests.natural_types import NaturalTypes


def are_narrow(left: Term, right: Term, tensors: Mapping[str, Tensor], indices: IndexTable) -> bool:
    """Whether the operands of a product are blocks of bf16 tensors, the left one with dense rows."""
    return (
        isinstance(left, Read)
        and isinstance(right, Read)
        and tensors[left.tensor].element is tensors[right.tensor].element is Element.BF16
        and is_row_contiguous(left, tensors[left.tensor], indices)
        and classify(right, indices).placed
    )


def is_rounded(left: Term, right: Term, tensors: Mapping[str, Tensor], natural: NaturalTypes) -> bool:
    """Whether the left operand of a product is rounded to bf16, the type of the tensor that the right one reads.

    `natural` types terms by what they come from. Storing the definition that is computed would round it as well.
    """
    narrow = isinstance(right, Read) and tensors[right.tensor].element is Element.BF16
    return narrow and natural.element(left) is Element.BF16


def with_narrow_operands(kernel: Kernel) -> Kernel:
    """The kernel with such products reading memory where local blocks only hold what was loaded from it."""
    tensors = {tensor.name: tensor for tensor in kernel.reads if tensor not in kernel.writes}
    statements = [s for s in walk_statements(kernel.body) if isinstance(s, Let | Update)]
    assigned = Counter(statement.target.name for statement in statements)
    loads = {
        statement.target.name: statement.expression
        for statement in statements
        if isinstance(statement, Let)
        and isinstance(statement.expression, Read)
        and statement.expression.tensor in tensors
        and assigned[statement.target.name] == 1
    }

    def source(term: Term) -> Term:
        return loads.get(term.name, term) if isinstance(term, Local) else term

    def changed(term: Term) -> Term:
        if not (isinstance(term, Apply) and term.operator == "dot"):
            return term
        left, right = map(unwidened, term.operands)
        inner = untransposed(right)
        if not are_narrow(source(left), source(inner), tensors, kernel.indices):
            return term
        right = source(right) if inner is right else Apply("transpose", (source(inner),))
        return Apply("dot", (source(left), right))

    body = with_expressions(kernel.body, changed)
    return kernel if body == kernel.body else replace(kernel, body=_without_unused(body, frozenset(loads)))


def _without_unused(body: tuple[Statement, ...], loads: frozenset[str]) -> tuple[Statement, ...]:
    """The statements without loads that nothing uses any more, and without loops that are empty then."""
    used = {
        leaf.name
        for statement in walk_statements(body)
        if isinstance(statement, Let | Update | Store)
        for leaf in walk(statement.expression)
        if isinstance(leaf, Local)
    }

    def kept(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        result: list[Statement] = []
        for statement in body:
            if isinstance(statement, Loop):
                inner = kept(statement.body)
                result += [replace(statement, body=inner)] if inner else []
            elif not (isinstance(statement, Let) and statement.target.name in loads - used):
                result.append(statement)
        return tuple(result)

    return kept(body)
