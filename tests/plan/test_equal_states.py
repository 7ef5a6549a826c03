"""Accumulators that hold one value throughout a loop are kept once, and only those."""

from __future__ import annotations

from pathlib import Path

import pytest

from bbrewrite.core.terms import Local, Number
from bbrewrite.plan.kernel import Let, Loop, Statement, Store, Update, walk_statements
from bbrewrite.plan.nests.equal_states import with_equal_states_once
from tests.codegen.kernel_cases import block, op, output, read, use
from tests.plan.pipelines import plan_text, shipped_rules

EXAMPLES = Path(__file__).parents[2] / "examples"
HIGH, TOP, TAKEN, NEW = block("high", "m"), block("top", "m"), block("taken", "m"), block("new", "m")
INFINITE = Number(float("-inf"))
ROWS = op("row_max", read("X", "m", "n"))


def nest(*inside: Statement, starts: tuple[Statement, ...] = (Let(HIGH, INFINITE), Let(TOP, INFINITE))):
    return (*starts, Loop("n", inside), Store(output("Y", "m"), op("add", use(HIGH), use(TOP))))


ONE = [
    (Update(HIGH, op("maximum", use(HIGH), ROWS)), Update(TOP, op("maximum", use(TOP), ROWS))),
    # As a rescaled sum has it: the new maximum is named, and the old one read by others.
    (
        Let(NEW, op("maximum", use(HIGH), ROWS)),
        Let(TAKEN, op("subtract", use(NEW), use(HIGH))),
        Update(TOP, op("maximum", use(TOP), ROWS)),
        Update(HIGH, use(NEW)),
    ),
]
TWO = [
    nest(Update(HIGH, op("maximum", use(HIGH), ROWS)), Update(TOP, op("minimum", use(TOP), ROWS))),
    nest(
        Update(HIGH, op("maximum", use(HIGH), ROWS)),
        Update(TOP, op("maximum", use(TOP), ROWS)),
        starts=(Let(HIGH, INFINITE), Let(TOP, Number(0.0))),
    ),
    # Both are read elsewhere in the loop, at places where one was updated and the other not.
    nest(
        Update(HIGH, op("maximum", use(HIGH), ROWS)),
        Let(TAKEN, op("subtract", use(TOP), use(HIGH))),
        Update(TOP, op("maximum", use(TOP), ROWS)),
    ),
    # Each takes the other's old value.
    nest(Update(HIGH, op("maximum", use(TOP), ROWS)), Update(TOP, op("maximum", use(HIGH), ROWS))),
]


def accumulators(body: tuple[Statement, ...]) -> set[str]:
    return {statement.target.name for statement in walk_statements(body) if isinstance(statement, Update)}


@pytest.mark.parametrize("inside", ONE)
def test_equal_accumulators_are_one(inside: tuple[Statement, ...]) -> None:
    body = with_equal_states_once(nest(*inside))
    assert accumulators(body) == {"high"}
    assert body[-1] == Store(output("Y", "m"), op("add", Local("high"), Local("high")))


@pytest.mark.parametrize("body", TWO)
def test_others_are_left_alone(body: tuple[Statement, ...]) -> None:
    assert with_equal_states_once(body) == body


def test_attention_with_sinks_keeps_one_maximum() -> None:
    planned = plan_text((EXAMPLES / "attention_sinks.bb").read_text(), shipped_rules())
    (kernel,) = planned.plan.kernels.kernels
    starts = [s for s in walk_statements(kernel.body) if isinstance(s, Let) and s.expression == INFINITE]
    assert len(starts) == 1
