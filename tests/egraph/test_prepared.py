"""Parts of a program are rewritten in shared engines as they are in engines of their own, in any order and number."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bbrewrite.core.programs import BlockProgram
from bbrewrite.egraph.inline import inline
from bbrewrite.egraph.masks import Masks
from bbrewrite.egraph.prepared import PreparedEngines
from bbrewrite.egraph.saturate import saturate
from bbrewrite.egraph.view import FrozenGraph
from bbrewrite.rules.rules import RuleSet
from tests import programs
from tests.egraph.saturation import SHIPPED, A, rules, single
from tests.programs import apply, total

PARTS = [programs.attention(), programs.layernorm_matmul(), programs.rmsnorm_swiglu()]
WHOLE = replace(PARTS[0], definitions=tuple(definition for part in PARTS for definition in part.definitions))


def _graph(part: BlockProgram, rules: RuleSet, prepared: PreparedEngines | None, fast_math: bool) -> FrozenGraph:
    inlined = inline(part)
    given = (inlined.roots, inlined.indices, part.tensors, part.assumptions)
    return saturate(*given, rules, fast_math=fast_math, prepared=prepared)


@pytest.mark.parametrize("fast_math", [False, True])
def test_a_part_has_the_graph_that_it_has_alone(fast_math: bool) -> None:
    prepared = PreparedEngines(WHOLE)
    none = replace(SHIPPED, rules=())
    for part in (*PARTS, *reversed(PARTS)):
        for ruleset in (SHIPPED, none):
            assert _graph(part, ruleset, prepared, fast_math) == _graph(part, ruleset, None, fast_math)


def _with_extents(part: BlockProgram, **extents: int) -> BlockProgram:
    return replace(part, indices=part.indices.with_extents(extents))


@pytest.mark.parametrize(
    ("condition", "is_seen"),
    [("size(n) > 0", False), ("100 <= size(n)", True), ("size(n) * 2 < 128", True), ("size(n) - 1 > 2", True)],
)
def test_parts_that_differ_in_extents_share_a_graph_where_no_rule_sees_it(condition: str, is_seen: bool) -> None:
    """Where two extents are equal it is another program: lists may be read along either index."""
    own = rules(f"rule r\n    reduce(sum, n, x + y) => reduce(sum, n, y + x)\n    where {condition}\n")
    part = single(total("n", apply("add", apply("row_sum", A), 3)), names="m")
    prepared = PreparedEngines(part)
    graphs = [_graph(_with_extents(part, n=n), own, prepared, False) for n in (48, 200, 256)]
    assert graphs == [_graph(_with_extents(part, n=n), own, None, False) for n in (48, 200, 256)]
    assert (graphs[0] is not graphs[1]) == is_seen
    assert graphs[0] is not graphs[2]


def test_what_fails_inside_is_forgotten_too() -> None:
    prepared = PreparedEngines(WHOLE)
    masks = Masks.for_count(len(PARTS[0].indices.entries))

    def failing() -> None:
        with prepared.graph(SHIPPED, masks, False) as graph:
            graph.run_program(*graph.parse_program("(let $mine (Number 1.0))"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    assert _graph(PARTS[0], SHIPPED, prepared, False) == _graph(PARTS[0], SHIPPED, None, False)
    with prepared.graph(SHIPPED, masks, False) as graph:
        assert "$mine" not in graph.freeze().functions
