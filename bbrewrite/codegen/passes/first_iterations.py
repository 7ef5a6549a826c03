"""Sums of products that need not start at zero: the first product is stored, and only later ones are added.

This holds for a block that is filled with zeros for one loop over blocks, which does nothing with it but add one
product an iteration. Where the loop has no iteration the block is filled as before. This is an optimisation; the steps
mean the same without it.
"""

from __future__ import annotations

from dataclasses import replace

from bbrewrite.codegen.steps import Assign, Product, Remark, Repeat, Step, WhereEmpty, names_read, names_written
from bbrewrite.core.terms import Number


def without_fills(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps, with such fills left for loops without iterations."""
    result: list[Step] = []
    for step in steps:
        if not isinstance(step, Repeat):
            result.append(step)
            continue
        loop = replace(step, body=without_fills(step.body))
        # Some processor's share of a shared loop may be empty, and a mask may hide the first block, or all.
        is_whole = not step.shared and step.bounds is None
        for product in [inner for inner in loop.body if isinstance(inner, Product) and is_whole]:
            fill = _fill_place(result, loop, product)
            if fill is not None:
                empty = WhereEmpty(loop.index, tuple(result[fill - 1 : fill + 1]))
                result[fill - 1 : fill + 1] = [empty]
                first = replace(product, sets_first=loop.index)
                loop = replace(loop, body=tuple(first if inner is product else inner for inner in loop.body))
        result.append(loop)
    return tuple(result)


def _fill_place(before: list[Step], loop: Repeat, product: Product) -> int | None:
    """Where in the list before the loop the product's target is filled with zeros, if only for this product."""
    name = product.target.name
    if not product.accumulate or name in names_read(replace(product, accumulate=False)):
        return None
    if any(name in names_read(inner) | names_written(inner) for inner in loop.body if inner is not product):
        return None
    for place in reversed(range(1, len(before))):
        step = before[place]
        if name in names_read(step) | names_written(step):
            filled = (
                isinstance(step, Assign) and step.expression == Number(0.0) and isinstance(before[place - 1], Remark)
            )
            return place if filled else None
    return None
