"""Exact numbers: what is undefined, what is equal, and that every function agrees with NumPy's."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from bbrewrite.core.operators import builtin_table
from bbrewrite.fuzz.exact import UNDEFINED, UNKNOWN, Number, are_equal, as_interval, exact_number, sign
from bbrewrite.fuzz.functions import FUNCTIONS
from bbrewrite.fuzz.intervals import to_float

TABLE = builtin_table()
INFINITY = math.inf


def apply(name: str, *operands: float | Fraction) -> Number:
    return FUNCTIONS[name](*(Fraction(x) if math.isfinite(x) else x for x in operands))


@pytest.mark.parametrize(
    ("name", "operands"),
    [
        ("divide", (1, 0)),
        ("divide", (0, 0)),
        ("recip", (0,)),
        ("log", (0,)),
        ("log", (-1,)),
        ("log1p", (-1,)),
        ("power", (-1, 0.5)),
        ("power", (0, -1)),
        ("sqrt", (-4,)),
        ("rsqrt", (0,)),
        ("multiply", (0, INFINITY)),
        ("subtract", (INFINITY, INFINITY)),
        ("add", (INFINITY, -INFINITY)),
        ("divide", (INFINITY, -INFINITY)),
    ],
)
def test_undefined(name: str, operands: tuple[float, ...]) -> None:
    assert apply(name, *operands) is UNDEFINED


@pytest.mark.parametrize(
    ("name", "operands", "value"),
    [
        ("power", (0, 0), 1),
        ("power", (-2, 3), -8),
        ("power", (4, 0.5), 2),
        ("power", (0, 0.5), 0),
        ("exp", (-INFINITY,), 0),
        ("exp", (INFINITY,), INFINITY),
        ("log", (INFINITY,), INFINITY),
        ("divide", (3, -INFINITY), 0),
        ("multiply", (-2, INFINITY), -INFINITY),
        ("maximum", (-INFINITY, 2), 2),
        ("minimum", (-INFINITY, 2), -INFINITY),
        ("sqrt", (Fraction(9, 4),), Fraction(3, 2)),
        ("floor", (-0.5,), -1),
        ("silu", (-INFINITY,), 0),
        ("equal", (-INFINITY, -INFINITY), 1),
        ("where", (1, 2, 3), 2),
    ],
)
def test_value(name: str, operands: tuple[float, ...], value: float) -> None:
    assert apply(name, *operands) == value


def test_only_the_selected_branch_need_be_defined() -> None:
    assert FUNCTIONS["where"](Fraction(0), UNDEFINED, Fraction(3)) == 3
    assert FUNCTIONS["where"](Fraction(1), UNDEFINED, Fraction(3)) is UNDEFINED
    assert FUNCTIONS["where"](UNKNOWN, Fraction(1), Fraction(3)) is UNKNOWN


def test_undefined_outweighs_unknown() -> None:
    assert FUNCTIONS["add"](UNKNOWN, UNDEFINED) is UNDEFINED
    assert FUNCTIONS["add"](UNKNOWN, Fraction(1)) is UNKNOWN


def test_literals_are_the_decimals_as_written() -> None:
    assert exact_number(0.1) == Fraction(1, 10)


def test_exponentials_are_formal() -> None:
    a, b = apply("exp", Fraction(1, 3)), apply("exp", Fraction(2, 3))
    assert are_equal(FUNCTIONS["multiply"](a, b), apply("exp", 1)) is True
    assert FUNCTIONS["subtract"](FUNCTIONS["multiply"](a, a), b) == 0
    assert FUNCTIONS["divide"](a, FUNCTIONS["subtract"](a, a)) is UNDEFINED
    assert FUNCTIONS["log"](a) == Fraction(1, 3)


def test_quotients_of_exponentials_are_equal_by_cross_multiplication() -> None:
    x = Fraction(3, 7)
    half = FUNCTIONS["multiply"](Fraction(1, 2), apply("tanh", x / 2))
    assert are_equal(apply("sigmoid", x), FUNCTIONS["add"](Fraction(1, 2), half)) is True


def test_a_difference_of_1e_60_is_seen() -> None:
    a = apply("log", 2)
    b = FUNCTIONS["add"](a, Fraction(1, 10**60))
    assert are_equal(a, b) is False
    assert are_equal(a, FUNCTIONS["add"](a, Fraction(1, 10**90))) is True


def test_large_exponentials_keep_their_sign_and_others_are_unknown() -> None:
    huge = apply("exp", 10**9)
    assert sign(huge) == 1
    assert FUNCTIONS["exp"](huge) is UNKNOWN
    assert FUNCTIONS["log"](huge) == 10**9


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_agrees_with_numpy(name: str) -> None:
    function = TABLE.functions[name]
    assert function.numpy is not None
    generator = random.Random(name)
    for _ in range(40):
        operands = [Fraction(generator.randint(-24, 24), 8) for _ in range(function.arity)]
        found = FUNCTIONS[name](*operands)
        with np.errstate(all="ignore"):
            if name == "where":
                expected = float(operands[1] if operands[0] else operands[2])
            else:
                expected = float(np.asarray(function.numpy(*(np.float64(x) for x in operands))))
        if found is UNDEFINED:
            assert not math.isfinite(expected)
        else:
            assert to_float(as_interval(found)) == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_every_function_of_the_table_is_known() -> None:
    assert FUNCTIONS.keys() == TABLE.functions.keys()
