"""Conditions on positions that become bounds of a row's columns: which, and that they mean what they say."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bbrewrite.codegen.cpp.program import print_programs
from bbrewrite.core.operators import builtin_table
from bbrewrite.core.terms import Apply, IndexValue, Number, Read, Size, Term
from bbrewrite.plan.kernel import KernelProgram
from tests.built import built
from tests.codegen.kernel_cases import entrywise, indices, op, output, read, tensor

TABLE = builtin_table()
M = op("row_spread", IndexValue("m"), to="n")
N = op("col_spread", IndexValue("n"), to="m")
H, SIZE = IndexValue("h"), Size("m")
FAR = 1 << 40
RELATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}


def _shown(condition: Term, name: str) -> KernelProgram:
    """Y = X where the condition holds, else -1, in blocks of 5 by 9."""
    value = op("where", condition, read("X", "h", "m", "n"), -1)
    table = indices(h=None, m=5, n=9)
    return entrywise(name, value, table, "h m n", tensor("X", "h m n"), output("Y", "h m n"))


def _entries(h: Any) -> Any:
    return np.arange(h.size, dtype=np.float32).reshape(h.shape) % 7


def _text(condition: Term) -> str:
    return print_programs([_shown(condition, "shown")], TABLE).text


def _value(term: Term, h: Any, m: Any, n: Any, size: int) -> Any:
    match term:
        case Number(value):
            return int(value)
        case Read():
            return _entries(h)
        case Apply("not", (inner,)):
            return ~_value(inner, h, m, n, size)
        case IndexValue(index):
            return {"h": h, "m": m, "n": n}[index]
        case Size():
            return size
        case Apply("row_spread" | "col_spread", (inner,)):
            return _value(inner, h, m, n, size)
        case Apply(name, (left, right)):
            values = (_value(operand, h, m, n, size) for operand in (left, right))
            functions = RELATIONS | {
                "add": operator.add,
                "subtract": operator.sub,
                "multiply": operator.mul,
                "and": operator.and_,
                "or": operator.or_,
            }
            return functions[name](*values)
        case _:
            raise AssertionError(term)


SIDES = {
    "causal": (N, M),
    "window": (op("subtract", M, N), Number(4.0)),
    "turned round": (Number(4.0), op("subtract", N, M)),
    "from the end": (op("add", N, M), SIZE),
    "of a head": (N, op("add", H, 3)),
    "fixed": (N, Number(7.0)),
    "twice the row": (N, op("multiply", M, 2)),
    "always far": (op("add", N, FAR), M),
    "never far": (op("subtract", N, FAR), M),
}


@pytest.mark.parametrize("side", SIDES)
def test_bounds_mean_what_comparisons_say(side: str) -> None:
    left, right = SIDES[side]
    conditions = [op(name, left, right) for name in RELATIONS]
    assert all("bb::column_bound(" in _text(condition) for condition in conditions)
    _check(conditions)


def test_conditions_made_of_comparisons_keep_every_part() -> None:
    """Of entries nothing is known as a bound: what is joined with them must not be taken for the whole."""
    causal, window = op("less_equal", N, M), op("less", op("subtract", M, N), 4)
    small = op("less", read("X", "h", "m", "n"), 3)
    pairs = [(causal, small), (small, causal), (causal, window), (op("not", causal), small)]
    joined = [op(name, *pair) for pair in pairs for name in ("and", "or")]
    _check([*joined, *(op("not", condition) for condition in joined), op("not", causal), op("not", small)])


def _check(conditions: list[Term]) -> None:
    programs = [_shown(condition, f"shown_{number}") for number, condition in enumerate(conditions)]
    extents = {"h": 3, "m": 13, "n": 22}
    h, m, n = np.meshgrid(*map(np.arange, extents.values()), indexing="ij")
    x = _entries(h)
    for condition, one in zip(conditions, built(programs, TABLE), strict=True):
        want = np.where(_value(condition, h, m, n, extents["m"]), x, -1)
        np.testing.assert_array_equal(one.run({"X": x}, extents, 2)["Y"], want)


@pytest.mark.parametrize(
    "condition",
    [
        pytest.param(op("less", op("multiply", N, 2), M), id="several columns at a time"),
        pytest.param(op("equal", N, M), id="one column"),
        pytest.param(op("less", op("subtract", N, N), M), id="no column"),
        pytest.param(op("less", read("X", "h", "m", "n"), N), id="of entries"),
        pytest.param(op("less", N, 2.5), id="of a fraction"),
    ],
)
def test_other_conditions_are_evaluated_entry_by_entry(condition: Term) -> None:
    assert "bb::column_bound(" not in _text(condition)
