"""Conditions that the number of an iteration settles: `where(layer == 1, a, b)` is `a` in one iteration, `b` in others.

Only what is chosen is left, so an iteration neither reads nor computes what belongs to another. Nothing else is
simplified: algebra is a matter of rules.
"""

from __future__ import annotations

import numpy as np

from bbrewrite.core.arrays import ArrayExpression, Call, Literal
from bbrewrite.core.operators import ScalarFunction, builtin_table

_FUNCTIONS = builtin_table().functions


def settled(expression: ArrayExpression) -> ArrayExpression:
    """The expression, or what a `where` at its top chooses if numbers alone tell what that is."""
    match expression:
        case Call("where", (condition, chosen, other)) if (truth := _value(condition)) is not None:
            return chosen if truth else other
        case _:
            return expression


def _value(expression: ArrayExpression) -> float | bool | None:
    """What the expression is whatever tensors hold and indices are; None where it depends on them."""
    match expression:
        case Literal(value):
            return value
        case Call(name, operands) if name in _FUNCTIONS:
            values = [_value(operand) for operand in operands]
            absorbing = {"and": False, "or": True}.get(name)
            if absorbing is not None and any(value is not None and bool(value) is absorbing for value in values):
                return absorbing
            known = [value for value in values if value is not None]
            return _computed(_FUNCTIONS[name], known) if len(known) == len(values) else None
        case _:
            return None


def _computed(function: ScalarFunction, operands: list[float | bool]) -> float | bool:
    assert function.numpy is not None
    with np.errstate(all="ignore"):
        found = np.asarray(function.numpy(*operands))
    return bool(found) if function.type_rule == "bool" else float(found)
