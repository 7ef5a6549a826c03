"""Kinds of values in rules: what is generic stays so."""

from __future__ import annotations

import pytest

from bbrewrite.core.spans import Source
from bbrewrite.lang.diagnostics import InputError
from bbrewrite.rules.load import parse_rules


@pytest.mark.parametrize(
    "body",
    [
        "x / x  =>  1",
        "row_scale(row_scale(x, c), d)  =>  row_scale(x, c * d)",
        "row_sum(row_scale(a, c))  =>  row_scale(row_sum(a), c)",
        "row_sum(row_scale(a, c))  =>  row_sum(a) * c",
        "dot(row_shift(a, c), b)  =>  dot(a, b) + outer(c, row_sum(b))",
        "at(map(i, map(j, x)), i)  =>  map(j, x)",
        "first(pair(map(i, a), b))  =>  map(i, a)",
        "reduce(sum, i, at(x, i))  =>  reduce(sum, i, 1 * at(x, i))",
        "exp(x) * 2  =>  exp(x) + exp(x)",
        "where(a < b, a, b)  =>  minimum(a, b)",
        "row_spread(u, n) * row_spread(v, n)  =>  row_spread(u * v, n)",
        "loaded(stored(x))  =>  x",
    ],
)
def test_rules_whose_kinds_fit(body: str) -> None:
    parse_rules([Source("test.rules", f"rule r\n    {body}\n")])


@pytest.mark.parametrize(
    "body",
    [
        "row_sum(x)  =>  x",
        "row_sum(row_sum(x))  =>  row_sum(x)",
        "sum_of(outer(u, v))  =>  sum_of(u) * sum_of(v)",
        "transpose(u + row_sum(x))  =>  u",
        "pair(a, b) + c  =>  c",
        "reduce(sum, i, row_sum(x))  =>  dot(x, x)",
        "at(exp(x), i)  =>  exp(at(x, i))",
    ],
)
def test_rules_whose_kinds_do_not_fit(body: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_rules([Source("test.rules", f"rule r\n    {body}\n")])
    assert [fault.code for fault in caught.value.diagnostics] == ["kind"]
