"""Scalar functions of the interpreter, on which the reference rests, against mpmath at 60 digits.

Points are of all magnitudes, those where a function turns, and corners: zeros, infinities and NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

from bbrewrite.core.elements import Element
from bbrewrite.core.operators import builtin_table
from bbrewrite.interpret.scalar_functions import apply_function, convert

TABLE = builtin_table()
REALS: Any = mpmath.mp.clone()
REALS.dps = 60
NAN, INFINITY = math.nan, math.inf
UNDEFINED = None

# Functions of one number, as formulas over the reals; None where there is no real value.
ONE: dict[str, Callable[[Any], Any]] = {
    "widened": lambda x: x,
    "negate": lambda x: -x,
    "exp": REALS.exp,
    "log": lambda x: REALS.log(x) if x > 0 else UNDEFINED,
    "log1p": lambda x: REALS.log(1 + x) if x > -1 else UNDEFINED,
    "expm1": lambda x: REALS.exp(x) - 1,
    "sqrt": lambda x: REALS.sqrt(x) if x >= 0 else UNDEFINED,
    "rsqrt": lambda x: 1 / REALS.sqrt(x) if x > 0 else UNDEFINED,
    "recip": lambda x: 1 / x if x else UNDEFINED,
    "abs": abs,
    "sign": REALS.sign,
    "floor": REALS.floor,
    "tanh": REALS.tanh,
    "sigmoid": lambda x: 1 / (1 + REALS.exp(-x)),
    "erf": REALS.erf,
    "sin": REALS.sin,
    "cos": REALS.cos,
    "relu": lambda x: max(x, REALS.mpf(0)),
    "silu": lambda x: x / (1 + REALS.exp(-x)),
    "gelu": lambda x: x / 2 * REALS.erfc(-x / REALS.sqrt(2)),
    "gelu_tanh": lambda x: x / (1 + REALS.exp(-2 * REALS.sqrt(2 / REALS.pi) * (x + REALS.mpf("0.044715") * x * x * x))),
    "softplus": lambda x: x + REALS.log(1 + REALS.exp(-x)) if x > 0 else REALS.log1p(REALS.exp(x)),
}
TWO: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b if b else UNDEFINED,
    "exact_quotient": lambda a, b: a / b if b else UNDEFINED,
    "maximum": max,
    "minimum": min,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "power": lambda a, b: _power(a, b),
}
# Values at corners; where NumPy follows IEEE 754, so do we.
CORNERS: dict[str, list[tuple[tuple[float, ...], float]]] = {
    "power": [
        ((0, 0), 1),
        ((0, 2), 0),
        ((0, -1), INFINITY),
        ((-2, 3), -8),
        ((-2, -2), 0.25),
        ((-8, 1 / 3), NAN),
        ((INFINITY, 0), 1),
        ((INFINITY, -1), 0),
        ((-INFINITY, 3), -INFINITY),
        ((2, INFINITY), INFINITY),
        ((2, -INFINITY), 0),
        ((0.5, INFINITY), 0),
        ((NAN, 0), 1),
        ((1, NAN), 1),
        ((NAN, 1), NAN),
        ((10, 400), INFINITY),
        ((10, -400), 0),
    ],
    "floor": [((-0.5,), -1), ((-3,), -3), ((1e300,), 1e300), ((-INFINITY,), -INFINITY), ((NAN,), NAN)],
    "sign": [((-0.0,), 0), ((5e-324,), 1), ((-INFINITY,), -1), ((NAN,), NAN)],
    "log": [((0,), -INFINITY), ((-1,), NAN), ((INFINITY,), INFINITY), ((NAN,), NAN)],
    "log1p": [((-1,), -INFINITY), ((-2,), NAN), ((1e-300,), 1e-300), ((INFINITY,), INFINITY), ((NAN,), NAN)],
    "expm1": [((1e-300,), 1e-300), ((-INFINITY,), -1), ((INFINITY,), INFINITY), ((800,), INFINITY), ((NAN,), NAN)],
    "exp": [((-INFINITY,), 0), ((INFINITY,), INFINITY), ((800,), INFINITY), ((-800,), 0), ((NAN,), NAN)],
    "sqrt": [((0,), 0), ((-1,), NAN), ((INFINITY,), INFINITY)],
    "rsqrt": [((0,), INFINITY), ((-1,), NAN), ((INFINITY,), 0)],
    "recip": [((0,), INFINITY), ((INFINITY,), 0), ((-INFINITY,), -0.0)],
    "divide": [((0, 0), NAN), ((-1, 0), -INFINITY), ((1, INFINITY), 0)],
    "erf": [((-INFINITY,), -1), ((INFINITY,), 1), ((NAN,), NAN)],
    "tanh": [((-INFINITY,), -1), ((INFINITY,), 1), ((NAN,), NAN)],
    "sigmoid": [((-INFINITY,), 0), ((INFINITY,), 1), ((-800,), 0), ((NAN,), NAN)],
    "softplus": [((-INFINITY,), 0), ((INFINITY,), INFINITY), ((1e300,), 1e300), ((NAN,), NAN)],
    "relu": [((-INFINITY,), 0), ((INFINITY,), INFINITY), ((NAN,), NAN)],
    "silu": [((INFINITY,), INFINITY), ((NAN,), NAN)],
    "gelu": [((INFINITY,), INFINITY), ((NAN,), NAN)],
    "gelu_tanh": [((INFINITY,), INFINITY), ((NAN,), NAN)],
    "maximum": [((NAN, 1), NAN), ((1, NAN), NAN), ((-INFINITY, 1), 1)],
    "minimum": [((NAN, 1), NAN), ((1, NAN), NAN), ((INFINITY, 1), 1)],
    "sin": [((INFINITY,), NAN), ((0,), 0)],
    "cos": [((INFINITY,), NAN), ((0,), 1)],
}
# Relative to the value, but for arguments that rounding moves: there relative to how much.
TOLERANCE = 8 * 2.0**-52


def _power(a: Any, b: Any) -> Any:
    if (not a and b < 0) or (a < 0 and b != REALS.floor(b)):
        return UNDEFINED
    return REALS.mpf(1) if not b else a**b


def _points() -> list[float]:
    generator = np.random.default_rng(0)
    magnitudes = [*np.exp2(generator.uniform(-30, 9, 30)), 2.0**-60, 0.5, 1.0, 1.5, 5.0, 7.25, 0.9, 20.0, 36.0, 37.5]
    return [0.0, *map(float, magnitudes), *(-float(m) for m in magnitudes)]


def _found(name: str, *operands: float) -> float:
    with np.errstate(all="ignore"):
        arrays = [np.float64(operand) for operand in operands]
        return float(apply_function(TABLE, name, arrays, [Element.F64] * len(arrays), exact=True))


def _assert_close(found: float, exact: Any, margin: float = 1.0) -> None:
    if exact is UNDEFINED:
        assert not math.isfinite(found)
        return
    if abs(exact) > REALS.mpf(np.finfo(np.float64).max):
        assert math.isinf(found)
        return
    assert abs(found - REALS.mpf(exact)) <= margin * TOLERANCE * abs(exact) + 2.0**-1070


def _condition(name: str, x: float) -> float:
    """How many times more than its argument the value changes, relatively: what is rounded inside a formula."""
    exponentiated = {"silu": abs(x), "gelu": x * x, "gelu_tanh": x * x * (1 + x * x / 20), "softplus": abs(x)}
    return 1 + exponentiated.get(name, 0.0)


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_number(name: str) -> None:
    for x in _points():
        _assert_close(_found(name, x), ONE[name](REALS.mpf(x)), _condition(name, x))


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_numbers(name: str) -> None:
    points = _points()[::4]
    for a in points:
        for b in (*points[::3], 0.0, 1.0, -1.0, 2.0, 0.5, -3.0):
            _assert_close(_found(name, a, b), TWO[name](REALS.mpf(a), REALS.mpf(b)))


@pytest.mark.parametrize(("name", "operands", "value"), [(n, *case) for n, cases in CORNERS.items() for case in cases])
def test_corners(name: str, operands: tuple[float, ...], value: float) -> None:
    np.testing.assert_equal(_found(name, *operands), value)


def test_every_function_is_tried() -> None:
    logical = {"and", "or", "not", "where"}
    assert ONE.keys() | TWO.keys() | logical == TABLE.functions.keys()


def test_truth_values() -> None:
    """Anything but 0 is true; `where` passes the chosen branch through, whatever the other one is."""
    assert [_found("and", a, b) for a, b in ((2, 3), (2, 0), (0, 0))] == [1, 0, 0]
    assert [_found("or", a, b) for a, b in ((2, 3), (-2, 0), (0, 0))] == [1, 1, 0]
    assert [_found("not", a) for a in (0, 0.5, NAN)] == [1, 0, 0]
    assert _found("where", 0, NAN, 3) == 3
    assert _found("where", -1, 2, INFINITY) == 2
    assert math.isnan(_found("where", 1, NAN, 3))


def test_conversions() -> None:
    """To integers by truncation, to bool by whether it is 0; narrow floats are computed in f32."""
    given = np.array([-1.75, -0.5, 0.0, 0.5, 2.999])
    assert convert(given, Element.I32).tolist() == [-1, 0, 0, 0, 2]
    assert convert(given, Element.BOOL).tolist() == [True, True, False, True, True]
    assert convert(given, Element.F16).dtype == np.float32
    assert convert(given, Element.BF16, exact=True).dtype == np.float64
