"""Sibling definitions, which are paired to be made in one loop."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bbrewrite.core.programs import BlockProgram, Definition, Role
from bbrewrite.core.terms import Component, Map, Pair
from bbrewrite.egraph.siblings import sibling_pairs
from bbrewrite.rules.rules import RuleSet
from tests import programs
from tests.egraph.saturation import SHIPPED, A, B, run
from tests.egraph.search import contains
from tests.programs import apply, define, indices, program, tensor


def siblings_program() -> BlockProgram:
    return program(
        "p",
        indices(m=64, n=64),
        [tensor("A", "m n", Role.INPUT), tensor("B", "m n", Role.INPUT)],
        [
            define("E", "m n", apply("exp", A), Role.OUTPUT),
            define("L", "m n", apply("log", A), Role.OUTPUT),
            define("U", "m n", apply("exp", B), Role.OUTPUT),
            define("T", "n m", apply("transpose", A), Role.OUTPUT),
        ],
    )


def test_sibling_definitions_are_paired() -> None:
    source = siblings_program()
    assert sibling_pairs(source) == (("E", "L"),)
    graph = run(source)
    pair = Map("m", Map("n", Pair(apply("exp", A), apply("log", A))))
    assert contains(graph, graph.roots["E"], Component(0, pair))
    assert contains(graph, graph.roots["L"], Component(1, pair))
    assert len(graph.classes[graph.roots["U"]].nodes) == 1
    kept = RuleSet(tuple(r for r in SHIPPED.rules if r.name != "fuse_siblings"), SHIPPED.table)
    alone = run(source, kept)
    assert len(alone.classes[alone.roots["E"]].nodes) == 1


@pytest.mark.parametrize("count", [2, 3, 4])
def test_equal_siblings_are_paired_once(count: int) -> None:
    """Definitions of one value are one class, a sibling of itself: pairs of it with itself must come to an end."""
    twins = [define(f"E{number}", "m n", apply("exp", A), Role.OUTPUT) for number in range(count)]
    others = [define(name, "m n", apply(name, A), Role.OUTPUT) for name in ("sin", "cos")]
    source = program("p", indices(m=64, n=64), [tensor("A", "m n", Role.INPUT)], [*twins, *others, *twins_of(twins)])
    graph = run(source)
    assert graph.report.stopped_by == "saturated"
    assert graph.report.nodes < 120


def twins_of(definitions: list[Definition]) -> list[Definition]:
    """The same values under other names."""
    return [replace(d, tensor=replace(d.tensor, name=f"{d.tensor.name}_again")) for d in definitions]


def test_a_chain_has_no_siblings() -> None:
    assert sibling_pairs(programs.attention()) == ()
    assert sibling_pairs(programs.rmsnorm_swiglu()) == (("A", "C"),)
