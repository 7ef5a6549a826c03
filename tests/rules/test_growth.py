"""Which rules are warned of for making their own next match, and which only look so."""

from __future__ import annotations

import pytest

from bbrewrite.core.spans import Source
from bbrewrite.rules.load import parse_rules

SHRINKING = [
    "tanh(x)  =>  x",
    "exp(log(x))  =>  x",
    "maximum(x, x)  =>  x",
    "x + 0  =>  x",
    "relu(relu(x))  =>  relu(x)",
    "maximum(maximum(x, y), y)  =>  maximum(x, y)",
    "negate(negate(negate(x)))  =>  negate(x)",
    "transpose(transpose(x))  =>  x",
    "row_scale(x, c)  =>  x",
    "at(map(i, x), i)  =>  x",
]
SAME_SIZE = ["exp(x)  =>  log(x)", "dot(row_scale(a, c), b)  =>  row_scale(dot(a, b), c)", "x * x  =>  x ^ 2"]
FEEDING = [
    "tanh(x)  =>  tanh(tanh(x))",
    "exp(x)  =>  exp(x + 0)",
    "x + y  =>  (x + y) + 0",
    "x + y  =>  y + x",
    "(x * y) * z  =>  x * (y * z)",
]


def _codes(rule: str) -> list[str]:
    return [warning.code for warning in parse_rules([Source("r.rules", f"# why\nrule r\n    {rule}\n")]).warnings]


@pytest.mark.parametrize("rule", [*SHRINKING, *SAME_SIZE])
def test_a_rule_that_comes_to_an_end_is_not_warned_of(rule: str) -> None:
    assert "growth" not in _codes(rule)


@pytest.mark.parametrize("rule", FEEDING)
def test_a_rule_that_feeds_itself_is_warned_of(rule: str) -> None:
    assert _codes(rule).count("growth") == 1
