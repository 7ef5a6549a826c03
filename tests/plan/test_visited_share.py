"""What narrowed loops visit, counted: against masks looked at entry by entry, and against loops run one by one."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np
import pytest

from bbrewrite.core.terms import IndexValue
from bbrewrite.plan.costs.traffic import kernel_traffic
from bbrewrite.plan.masks.visible import (
    ALWAYS,
    AllOf,
    Condition,
    Linear,
    LoopBounds,
    Nonnegative,
    Quotient,
    visible_blocks,
)
from bbrewrite.plan.masks.visited_share import NarrowedLoop, counted_together, visited_share
from tests.plan.pipelines import plan_text, shipped_rules

_CAUSAL_SUM = """\
program test
index m = 16, n = 16
input X[m, n], V[n] : f64
output O[m] : f64 = sum[n](where({condition}, X[m, n] * V[n], 0))
"""


def _blocks(extent: int, block: int) -> list[slice]:
    return [slice(start, min(start + block, extent)) for start in range(0, extent, block)]


@pytest.mark.parametrize(("m", "n"), [(16, 16), (18, 18), (13, 30), (30, 16), (3, 2), (1, 9)])
@pytest.mark.parametrize(
    ("condition", "is_visible"),
    [
        ("n <= m", lambda m, n: n <= m),
        ("n < 6", lambda m, n: n < 6),
        ("(n <= m and m - n < 7)", lambda m, n: (n <= m) & (m - n < 7)),
        ("(n <= m or n < 6)", lambda m, n: (n <= m) | (n < 6)),
        ("(n <= m and (m - n < 3 or n < 6))", lambda m, n: (n <= m) & ((m - n < 3) | (n < 6))),
    ],
)
def test_bytes_are_those_of_the_elements_in_visited_blocks(condition: str, is_visible: object, m: int, n: int) -> None:
    """What depends on the loop alone is loaded for every block of rows, what depends on both once."""
    block = 4
    plan = plan_text(_CAUSAL_SUM.format(condition=condition), shipped_rules(), block=block, m=m, n=n)
    (kernel,) = plan.plan.kernels.kernels
    tensors = {tensor.name: tensor for tensor in (*kernel.reads, *kernel.writes)}
    loaded = kernel_traffic(kernel, tensors, plan.extents, plan.table, 1).loaded
    assert callable(is_visible)
    visible = np.broadcast_to(is_visible(np.arange(m)[:, None], np.arange(n)[None, :]), (m, n))
    visited = [(r, c) for r, c in product(_blocks(m, block), _blocks(n, block)) if visible[r, c].any()]
    assert loaded["V"] == 8 * sum(c.stop - c.start for _, c in visited)
    assert loaded["X"] == 8 * sum((r.stop - r.start) * (c.stop - c.start) for r, c in visited)


def _visits(
    loops: Sequence[NarrowedLoop], blocks: dict[str, int], extents: dict[str, int], elements: frozenset[str]
) -> float:
    """The share by running the loops, every block an iteration."""
    names = sorted(frozenset[str]().union(*(loop.indices for loop in loops)))
    visited = in_all = 0
    for numbers in product(*(range(-(-extents[name] // blocks[name])) for name in names)):
        at = dict(zip(names, numbers, strict=True))
        spans = {name: _blocks(extents[name], blocks[name])[number] for name, number in at.items()}
        amount = prod(spans[name].stop - spans[name].start if name in elements else 1 for name in names)
        in_all += amount
        visited += amount * all(_is_visited(loop, at[loop.index], blocks[loop.index], spans) for loop in loops)
    return visited / in_all


def _is_visited(loop: NarrowedLoop, number: int, block: int, spans: dict[str, slice]) -> bool:
    def greatest(linear: Linear) -> int:
        ends = {name: (span.start, span.stop - 1) for name, span in spans.items()}
        return linear.offset + sum(c * ends[next(iter(leaf.free))][c > 0] for leaf, c in linear.parts)

    def is_possible(condition: Condition) -> bool:
        match condition:
            case Nonnegative(linear):
                return greatest(linear) >= 0
            case AllOf(conditions):
                return all(map(is_possible, conditions))
            case _:
                raise AssertionError

    begin, end = loop.bounds.begin, loop.bounds.end
    after = begin is None or (isinstance(begin, Quotient) and number >= -greatest(begin.linear.times(-1)) // block)
    before = end is None or (isinstance(end, Quotient) and number * block < greatest(end.linear))
    return after and before and is_possible(loop.bounds.test)


def _random_loop(draw: random.Random, index: str, scope: list[str]) -> NarrowedLoop:
    """A loop that begins, ends or is tested by one index around it, or by none."""

    def linear(sign: int) -> Linear:
        others = [(IndexValue(draw.choice(scope)), -sign)] if scope and draw.random() < 0.8 else []
        return Linear(((IndexValue(index), sign), *others), draw.randint(-4, 9))

    bounds = LoopBounds()
    while bounds == LoopBounds():
        sides = [visible_blocks(Nonnegative(linear(sign)), index) for sign in (1, -1) if draw.random() < 0.6]
        begin = next((b.begin for b in sides if b is not None and b.begin is not None), None)
        end = next((b.end for b in sides if b is not None and b.end is not None), None)
        test = AllOf((Nonnegative(linear(1)), Nonnegative(linear(-1)))) if draw.random() < 0.3 else ALWAYS
        bounds = LoopBounds(begin, end, test)
    return NarrowedLoop(index, bounds, frozenset(scope))


@pytest.mark.parametrize("seed", range(60))
def test_loops_inside_each_other_are_counted_as_they_run(seed: int) -> None:
    draw = random.Random(seed)
    names = ["a", "b", "c", "d"]
    blocks = {name: draw.randint(1, 4) for name in names}
    extents = {name: draw.randint(1, 13) for name in names}
    scope, loops = [names[0]], list[NarrowedLoop]()
    for name in names[1:]:
        if draw.random() < 0.7 or not loops:
            loops.append(_random_loop(draw, name, scope))
        scope.append(name)
    elements = frozenset(name for name in names if draw.random() < 0.5)
    found = visited_share(loops, blocks, extents, elements)
    assert found == pytest.approx(_visits(loops, blocks, extents, elements), abs=1e-12)


def test_loops_that_have_nothing_in_common_are_counted_apart() -> None:
    def loop(index: str, outer: str) -> NarrowedLoop:
        bounds = visible_blocks(Nonnegative(Linear(((IndexValue(outer), 1), (IndexValue(index), -1)))), index)
        assert bounds is not None
        return NarrowedLoop(index, bounds, frozenset({"a", "b", outer}))

    one, other, inside = loop("c", "a"), loop("d", "b"), loop("e", "c")
    assert counted_together((one, other)) == ((one,), (other,))
    assert counted_together((one, other, inside)) == ((other,), (one, inside))


def test_of_more_blocks_than_are_looked_at_an_even_choice_stands_for_all() -> None:
    bounds = visible_blocks(Nonnegative(Linear(((IndexValue("m"), 1), (IndexValue("n"), -1)))), "n")
    assert bounds is not None
    loop = NarrowedLoop("n", bounds, frozenset({"m"}))
    blocks, extents = {"m": 1, "n": 1}, {"m": 9001, "n": 9001}
    assert visited_share((loop,), blocks, extents) == pytest.approx(9002 / 9001 / 2, abs=1e-12)
    assert visited_share((loop,), blocks, extents, most=100) == pytest.approx(0.5, abs=0.01)
