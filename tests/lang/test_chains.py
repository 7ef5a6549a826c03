"""Flat chains of thousands of operands: parsed, printed, lowered and evaluated; short chains and brackets stay."""

from __future__ import annotations

import numpy as np
import pytest

from bbrewrite.core.arrays import Call
from bbrewrite.core.printing import print_block_program
from bbrewrite.core.spans import Source
from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.lang.diagnostics import InputError
from bbrewrite.lang.format_array import print_array_program
from bbrewrite.lang.operations import LONGEST
from bbrewrite.lang.programs import parse_program
from bbrewrite.lower.lowering import lower
from tests.array_programs import TABLE, program, reference, unfused
from tests.plan.pipelines import plan_text, rules_from, shipped_rules

_HEAD = "program chains\nindex m = 3\ninput X[m], Y[m] : f64\n"
_X = np.array([0.5, 1.0, -1.25])
_Y = np.array([2.0, -0.125, 1.0])
_COUNT = 300  # nested, more than any stage could follow


def _text(expression: str) -> str:
    return f"{_HEAD}output Z[m] = {expression}\n"


def _chain(count: int, *cycle: str) -> str:
    """`x op y op ...`: operands and operators taken from the cycle in turn."""
    return "X[m]" + "".join(cycle[position % len(cycle)] for position in range(count))


@pytest.mark.parametrize(
    ("chain", "expected"),
    [
        (_chain(_COUNT, " + 1"), _X + _COUNT),
        (_chain(_COUNT, " + Y[m]", " - 1"), _X + (_Y - 1) * _COUNT / 2),
        (_chain(_COUNT, " - 1", " - Y[m]", " + 3"), _X + (2 - _Y) * _COUNT / 3),
        (_chain(_COUNT, " - 1"), _X - _COUNT),
        (_chain(_COUNT, " * 2", " * 0.5"), _X),
        (f"where({_chain(0)} > 0{' and Y[m] > -1' * _COUNT}, 1, 2)", np.where(_X > 0, 1, 2)),
        (f"where({_chain(0)} > 0{' or Y[m] > 1.5' * _COUNT}, 1, 2)", np.where((_X > 0) | (_Y > 1.5), 1, 2)),
        (" + ".join("X[m] * Y[m]" for _ in range(_COUNT)), _X * _Y * _COUNT),
    ],
    ids=["sum", "alternating", "thirds", "difference", "product", "and", "or", "of products"],
)
def test_values(chain: str, expected: np.ndarray) -> None:
    text = _text(chain)
    for found in (reference(text, {"X": _X, "Y": _Y}), unfused(text, {"X": _X, "Y": _Y})):
        np.testing.assert_allclose(found["Z"], expected, rtol=1e-12)
    parsed = program(text)
    assert parse_program(Source("again", print_array_program(parsed, TABLE)), TABLE) == parsed
    lowered = lower(parsed, TABLE)
    assert parse_program(Source("again", print_block_program(lowered, TABLE)), TABLE) == lowered


@pytest.mark.parametrize("chain", [_chain(300, " + Y[m]", " - 1"), f"where(X[m] > 0{' and X[m] < Y[m]' * 300}, 1, 2)"])
def test_fused(chain: str) -> None:
    text = _text(f"1 - ({chain})")
    planned = plan_text(text, shipped_rules())
    found = run_kernels(planned.plan.kernels, {"X": _X, "Y": _Y}, planned.extents, planned.table)
    np.testing.assert_allclose(found["Z"], reference(text, {"X": _X, "Y": _Y})["Z"], rtol=1e-12)


@pytest.mark.parametrize("symbol", ["+", "-", "*"])
def test_chains_of_a_length_that_people_write_group_to_the_left(symbol: str) -> None:
    expression = program(_text(_chain(LONGEST - 1, f" {symbol} Y[m]"))).definitions[0].expression
    for _ in range(LONGEST - 1):
        assert isinstance(expression, Call)
        expression, right = expression.operands
        assert not isinstance(right, Call)


def test_a_chain_of_divisions_is_nesting() -> None:
    with pytest.raises(InputError, match="nest more than"):
        program(_text(_chain(_COUNT, " / Y[m]")))


def test_a_rule_with_a_long_chain() -> None:
    total = " + ".join(["a * 0", *["b"] * 500])
    rules = rules_from(f"rule zeros\n    {total}  =>  {' + '.join(['b'] * 500)}\n    where finite(a)\n")
    assert [rule.name for rule in rules.rules] == ["zeros"]
    shown = " + ".join(["b"] * 499)
    with pytest.raises(InputError, match=f":{len('    ' + total + '  =>  ' + shown + ' + ') + 1}: .*not on the left"):
        rules_from(f"rule faulty\n    {total}  =>  {shown} + c\n    where finite(a)\n")
