"""Products that a monoid combines into a state which is an identity before its loop: the first one is the state.

`acc := row_scale(acc, u) + row_scale(dot(a, b), v)` combines sums relative to two maxima. Before the loop `acc` is the
identity's zero, and an identity combined with an element is the element, so that the first iteration can store its
product straight in `acc`: no block is filled, nothing is made aside and nothing combined. A loop that a mask narrows or
that processors share out may begin with any block, or have none; it stays as it is. This is an optimisation; the steps
mean the same without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from bbrewrite.codegen.steps import (
    Assign,
    FirstOrLater,
    Product,
    Remark,
    Repeat,
    Step,
    WhereEmpty,
    inner_steps,
    names_read,
    names_written,
    walk_steps,
)
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.terms import Local, Number, Term
from bbrewrite.plan.kernel import Kernel, LocalBlock, Update, walk_statements


@dataclass(frozen=True)
class _Combination:
    """A state's number in the identity, and its combination with an element, whose names are `left` and `right`."""

    identity: float
    left: str
    right: str
    combine: Term

    def element(self, term: Term, state: str) -> Term | None:
        """What the term combines the state with; None where it does not have the form of the combination."""
        found: list[Term] = []

        def fits(pattern: Term, part: Term) -> bool:
            if pattern.local_names.isdisjoint({self.left, self.right}):
                return state not in part.local_names  # a weight, which another statement may have computed
            if isinstance(pattern, Local):
                found.append(part)
                return pattern.name == self.right or part == Local(state)
            is_alike = type(part) is type(pattern) and len(part.children) == len(pattern.children)
            return (
                is_alike
                and part.with_children(pattern.children) == pattern
                and all(map(fits, pattern.children, part.children))
            )

        elements = [part for part in found if part != Local(state)] if fits(self.combine, term) else []
        return elements[0] if len(elements) == 1 else None


def with_first_elements(steps: tuple[Step, ...], kernel: Kernel, table: OperatorTable) -> tuple[Step, ...]:
    """The steps, with such products stored where they are the first ones."""
    combinations: dict[str, _Combination] = {}
    for statement in walk_statements(kernel.body):
        if isinstance(statement, Update) and statement.combines:
            name, component = statement.combines
            monoid = table.monoids[name]
            combinations[statement.target.name] = _Combination(
                monoid.identity[component], monoid.left[component], monoid.right[component], monoid.combine[component]
            )
    leaves = [step for step in walk_steps(steps) if not inner_steps(step)]
    mentions = Counter(name for step in leaves for name in names_read(step) | names_written(step))
    return _stored(steps, combinations, mentions) if combinations else steps


def _stored(
    steps: tuple[Step, ...], combinations: Mapping[str, _Combination], mentions: Mapping[str, int]
) -> tuple[Step, ...]:
    result: list[Step] = []
    for step in steps:
        if not isinstance(step, Repeat):
            result.append(step)
            continue
        loop = replace(step, body=_stored(step.body, combinations, mentions))
        for product, update in zip(loop.body, loop.body[1:], strict=False):
            if not (
                isinstance(product, Product) and isinstance(update, Assign) and isinstance(update.target, LocalBlock)
            ):
                continue
            combination = combinations.get(update.target.name)
            if combination is None or step.shared or step.bounds is not None:
                continue
            made, state = product.target, update.target
            is_only_for_it = mentions[made.name] == 2 and not product.accumulate
            is_alike = isinstance(made, LocalBlock) and made.type == state.type
            if not (is_only_for_it and is_alike) or combination.element(update.expression, state.name) != Local(
                made.name
            ):
                continue
            fill = _fill_place(result, loop, update, combination.identity)
            if fill is not None:
                result[fill - 1 : fill + 1] = [WhereEmpty(loop.index, tuple(result[fill - 1 : fill + 1]))]
                either = FirstOrLater(loop.index, (replace(product, target=state),), (product, update))
                place = loop.body.index(product)
                loop = replace(loop, body=(*loop.body[:place], either, *loop.body[place + 2 :]))
        result.append(loop)
    return tuple(result)


def _fill_place(before: list[Step], loop: Repeat, update: Assign, identity: float) -> int | None:
    """Where in the list before the loop the state is filled with the identity, if only for this loop and update."""
    name = update.target.name
    if any(name in names_read(inner) | names_written(inner) for inner in loop.body if inner is not update):
        return None
    for place in reversed(range(1, len(before))):
        step = before[place]
        if name in names_read(step) | names_written(step):
            filled = isinstance(step, Assign) and step.expression == Number(identity)
            return place if filled and isinstance(before[place - 1], Remark) else None
    return None
