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
from tests.egraph.saturation import SHIPPED

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
        for rules in (SHIPPED, none):
            assert _graph(part, rules, prepared, fast_math) == _graph(part, rules, None, fast_math)


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
