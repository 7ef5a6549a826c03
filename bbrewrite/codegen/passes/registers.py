"""Values of loops over rows that need no memory: what one pass alone uses, and what is cheaper to compute again.

A row that is written to the nearest cache and read once or twice costs more than a multiplication, and a store costs
twice as much as any other instruction on a vector. What is computed again has the same bits, since nothing is
contracted.
This is an optimisation; the steps mean the same without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from bbrewrite.codegen.access import is_row_contiguous
from bbrewrite.codegen.passes.rows import is_long, single_rows
from bbrewrite.codegen.scalars import work_of
from bbrewrite.codegen.steps import (
    Assign,
    ByFirst,
    Fold,
    Repeat,
    RowPass,
    Rows,
    Step,
    WhereEmpty,
    inner_steps,
    kept_element,
    leaf_name,
    names_read,
    names_written,
    walk_steps,
)
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Local, Read, Term, walk
from bbrewrite.core.types import Typing
from bbrewrite.plan.kernel import LocalBlock

# Vector instructions that are no more work than a store and a load.
_CHEAP = 1.0


def cheap_rows(
    steps: tuple[Step, ...],
    indices: IndexTable,
    tensors: Mapping[str, Tensor],
    typing: Typing,
    table: OperatorTable,
) -> dict[str, Term]:
    """The single rows that take one instruction on entries of one row and are needed after their pass, with what they
    are.
    """
    rows = single_rows(steps)
    found: dict[str, Term] = {}
    for loop in walk_steps(steps):
        if not isinstance(loop, Rows):
            continue
        writes = Counter(step.target.name for step in loop.steps)
        for number, one in enumerate(loop.passes):
            after = [step for later in loop.passes[number + 1 :] for step in later.steps]
            for place, step in enumerate(one.steps):
                name = step.target.name
                written = {user.target.name for user in (*one.steps[place + 1 :], *after)}
                if not (
                    isinstance(step, Assign)
                    and name in rows
                    and writes[name] == 1
                    and any(name in names_read(user) for user in after)
                ):
                    continue
                value = _with_values(step.expression, found)
                kept = {leaf_name(leaf) for leaf in walk(value) if isinstance(leaf, Local | Read)}
                is_cheap = _is_cheap(step, value, indices, tensors, typing, table)
                if is_cheap and kept.isdisjoint(written):
                    found[name] = value
    return found


def without_rows(steps: tuple[Step, ...], values: Mapping[str, Term]) -> tuple[Step, ...]:
    """The steps, with these single rows computed where they are used."""

    def changed(step: Step) -> Step:
        match step:
            case Rows():
                return replace(step, passes=tuple(one for one in map(in_pass, step.passes) if one.steps))
            case Repeat(body=body) | WhereEmpty(body=body) | ByFirst(body=body):
                return replace(step, body=tuple(map(changed, body)))
            case _:
                return step

    def in_pass(one: RowPass) -> RowPass:
        return RowPass(tuple(in_row(step) for step in one.steps if step.target.name not in values))

    def in_row(step: Assign | Fold) -> Assign | Fold:
        if isinstance(step, Assign):
            return replace(step, expression=_with_values(step.expression, values))
        operands = tuple(_with_values(operand, values) for operand in step.fold.children)
        return replace(step, fold=step.fold.with_children(operands))

    return tuple(map(changed, steps))


def _with_values(term: Term, values: Mapping[str, Term]) -> Term:
    if isinstance(term, Local) and term.name in values:
        return values[term.name]
    return term.with_children(tuple(_with_values(child, values) for child in term.children))


def single_entries(steps: tuple[Step, ...]) -> frozenset[str]:
    """The single rows of which one entry at a time is enough: one pass makes it once, and uses it alone."""
    rows = single_rows(steps)
    mentions = Counter(_mentioned(steps))
    found: set[str] = set()
    for one in (one for loop in walk_steps(steps) if isinstance(loop, Rows) for one in loop.passes):
        inside = Counter(_mentioned(one.steps))
        writes = Counter(step.target.name for step in one.steps)
        found |= {name for name in rows if writes[name] == 1 and inside[name] == mentions[name]}
    return frozenset(found)


def _mentioned(steps: tuple[Step, ...]) -> Iterator[str]:
    for step in walk_steps(steps):
        if not inner_steps(step):
            yield from names_read(step) | names_written(step)


def _is_cheap(
    step: Assign,
    value: Term,
    indices: IndexTable,
    tensors: Mapping[str, Tensor],
    typing: Typing,
    table: OperatorTable,
) -> bool:
    """Whether a block's value takes one instruction on entries of one row that lies dense, in the type in which the
    block is kept: of a local block, or, where rows are long, of a tensor whose entries need no conversion.
    """
    assert isinstance(step.target, LocalBlock)
    element = typing.block(value).element
    matrices = [n for n in walk(value) if isinstance(n, Read | Local) and len(typing.block(n).axes) == 2]
    if work_of(value, table) > _CHEAP or len(matrices) != 1 or element is None:
        return False
    (leaf,) = matrices
    if isinstance(leaf, Read):
        tensor, is_turned = tensors[leaf.tensor], typing.block(leaf).axes != step.target.type.axes
        is_converted = tensor.element is not tensor.element.compute_type
        is_dense = is_row_contiguous(leaf, tensor, indices)
        if is_turned or is_converted or not is_dense or not is_long(step.target.type.axes[1], indices):
            return False
    return element.compute_type is kept_element(step.target)
