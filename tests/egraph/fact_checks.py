"""Facts, tried on numbers: where an operator's premises hold of its operands, its conclusion holds of its value.

Operands run over a grid of the extended reals, NaN and both infinities among them, at moderate magnitudes: facts
speak of real numbers, not of overflow or underflow.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from bbrewrite.core.operators import builtin_table
from bbrewrite.egraph import facts

GRID = (-math.inf, -3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, math.inf, math.nan)
HOLDS: Mapping[str, Callable[[float], bool]] = {
    # NaN is set aside by all but `finite`.
    "nonzero": lambda x: math.isnan(x) or x != 0,
    "positive": lambda x: math.isnan(x) or x > 0,
    "nonnegative": lambda x: math.isnan(x) or x >= 0,
    "finite": math.isfinite,
}


def derivations() -> list[tuple[str, tuple[str, ...], str]]:
    """Function, premises such as `positive(a)`, conclusion: a line each of the table of facts."""
    found: list[tuple[str, tuple[str, ...], str]] = []
    for line in facts._OF_FUNCTIONS.strip().splitlines():  # the table is the thing under test
        left, conclusion = line.split("=>")
        function, *premises = left.split()
        found.append((function, tuple(premises), conclusion.strip()))
    return found


def counterexample(function: str, premises: tuple[str, ...], conclusion: str) -> tuple[float, ...] | None:
    """Operands that meet the premises and not the conclusion, or None."""
    scalar = builtin_table().functions[function]
    assert scalar.numpy is not None
    for operands in _operands(function, scalar.arity, premises):
        with np.errstate(all="ignore"):
            value = float(scalar.numpy(*map(np.float64, operands)))
        if not HOLDS[conclusion](value):
            return operands
    return None


def _operands(function: str, arity: int, premises: tuple[str, ...]) -> Iterator[tuple[float, ...]]:
    for operands in itertools.product(GRID, repeat=arity):
        given = dict(zip("abc", operands, strict=False))
        if function == "where" and operands[0] not in (0.0, 1.0):
            continue
        if all(HOLDS[premise.partition("(")[0]](given[premise[-2]]) for premise in premises):
            yield operands


def check_function_facts() -> None:
    """Every line of the table holds."""
    for function, premises, conclusion in derivations():
        found = counterexample(function, premises, conclusion)
        assert found is None, f"{function} {' '.join(premises)} => {conclusion} fails at {found}"


def check_monoid_facts() -> None:
    """What the table says that monoids keep, they keep, for two values."""
    combine = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
    for monoid, kept in facts._KEPT_BY_MONOIDS.items():
        for fact, pair in itertools.product(kept, itertools.product(GRID, repeat=2)):
            if all(map(HOLDS[fact], pair)):
                with np.errstate(all="ignore"):
                    value = float(combine[monoid](*pair))
                assert HOLDS[fact](value), f"{monoid} of {pair} is not {fact}"
