"""The e-graph does not depend on names or the order of rules."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from bbrewrite.egraph.view import FrozenGraph
from bbrewrite.rules.rules import Rule, RuleSet
from tests import programs
from tests.egraph.saturation import SHIPPED, run


def signature(graph: FrozenGraph) -> dict[str, int]:
    """A number for each root that depends on the terms it represents and not on numbers of classes."""
    colours = dict.fromkeys(graph.classes, 0)
    for _ in range(len(graph.classes)):
        colours = {
            number: hash(
                frozenset((node.head, tuple(colours[child] for child in node.children)) for node in found.nodes)
            )
            for number, found in graph.classes.items()
        }
    return {name: colours[number] for name, number in graph.roots.items()}


MAKERS = [programs.attention, programs.layernorm_matmul, programs.rmsnorm_swiglu]


@pytest.mark.parametrize("make", MAKERS, ids=["attention", "layernorm", "swiglu"])
def test_same_input_same_graph(make) -> None:  # type: ignore[no-untyped-def]
    assert run(make()) == run(make())


@pytest.mark.parametrize("make", MAKERS, ids=["attention", "layernorm", "swiglu"])
@pytest.mark.parametrize("fast_math", [False, True])
def test_names_and_order_of_rules_do_not_matter(make, fast_math: bool) -> None:  # type: ignore[no-untyped-def]
    usual = run(make(), fast_math=fast_math)
    shuffled: list[Rule] = list(SHIPPED.rules)
    random.Random(3).shuffle(shuffled)
    renamed = tuple(replace(rule, name=f"r{number}") for number, rule in enumerate(shuffled))
    other = run(make(), RuleSet(renamed, SHIPPED.table), fast_math=fast_math)
    assert signature(other) == signature(usual)
    assert (other.report.nodes, other.report.classes) == (usual.report.nodes, usual.report.classes)
    assert signature(run(make(), RuleSet(renamed[1:], SHIPPED.table), fast_math=fast_math)).keys() == usual.roots.keys()
