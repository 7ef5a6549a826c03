"""Which sets of lists are tried together where there are many of them."""

from __future__ import annotations

import pytest

from bbrewrite.core.spans import Source
from bbrewrite.egraph.inline import inline
from bbrewrite.egraph.saturate import saturate
from bbrewrite.egraph.siblings import sibling_pairs
from bbrewrite.lang.programs import parse_program
from bbrewrite.plan.extraction.lists import Lists
from bbrewrite.plan.extraction.sets import sets_tried
from bbrewrite.request import make_request
from tests.plan.pipelines import shipped_rules

FUNCTIONS = ("tanh", "exp", "relu", "abs", "sigmoid", "sin")


def lists_of(siblings: int) -> Lists:
    """The lists of outputs that all read one input."""
    outputs = [f"output Y{n}[m, k] = {FUNCTIONS[n]}(X[m, k])" for n in range(siblings)]
    text = "\n".join(["program siblings", "index m = 40, k = 50", "input X[m, k] : f32", *outputs, ""])
    rules = shipped_rules()
    blocks = make_request(parse_program(Source("test", text), rules.table), rules, threads=2).blocks
    inlined = inline(blocks)
    pairs = sibling_pairs(blocks)
    graph = saturate(inlined.roots, inlined.indices, blocks.tensors, blocks.assumptions, rules, siblings=pairs)
    return Lists(graph, blocks, inlined.indices, rules.table)


@pytest.mark.parametrize("count", [2, 4, 6])
def test_of_many_sets_those_without_a_gap_are_tried(count: int) -> None:
    lists = lists_of(count)
    runs = {tuple(f"Y{n}" for n in range(first, last)) for last in range(count + 1) for first in range(last)}
    stored = {tuple(sorted(lists.stored_as(name))) for name in sets_tried(lists, few=0)}
    assert stored == runs


@pytest.mark.parametrize("count", [2, 4, 6])
def test_of_few_sets_none_is_left_out(count: int) -> None:
    lists = lists_of(count)
    every = {tuple(sorted(lists.stored_as(name))) for name in sets_tried(lists, few=1000)}
    assert len(every) == 2**count - 1
