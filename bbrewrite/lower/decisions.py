"""Divisions by which something is decided: they become `exact_quotient`, which no rule rewrites.

147 / 49 is 3, and 147 * (1 / 49) is below it. In most places such a difference is one rounding among many; where a
comparison, a floor, a sign or a conversion to integers depends on it, an entry comes out on the other side. So what
is decided by numbers that nothing has rounded yet (positions, extents, given numbers) is computed as it is written.
What sums and functions such as `exp` have made of floats is rounded anyway, and stays open to rules.

This says nothing of whether a rule is true: `x / s` is `x * recip(s)` over the reals. It says where that is not enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import IntEnum
from math import isinf

from bbrewrite.core.arrays import (
    ArrayDefinition,
    ArrayExpression,
    ArrayProgram,
    Call,
    Element,
    Fold,
    Literal,
    Position,
    SizeOf,
)
from bbrewrite.core.elements import Element as ElementType
from bbrewrite.core.programs import Tensor
from bbrewrite.lower.array_expressions import number_of_positions

_COMPARISONS = frozenset({"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"})
_CONNECTIVES = frozenset({"and", "or", "not"})
# The sign of the result follows from the signs of the operands, however these are rounded.
_OF_SIGNS = frozenset({"multiply", "divide", "negate", "recip", "maximum", "minimum", "abs", "sqrt", "rsqrt", "relu"})
# The sign of the result is known beforehand.
_OF_ONE_SIGN = frozenset({"exp", "sigmoid", "softplus"})
# Whole numbers stay whole, and others are rounded at most once.
_PLAIN = frozenset({"add", "subtract", "multiply", "divide", "negate", "where", "maximum", "minimum", "abs", "relu"})


class Needed(IntEnum):
    """What of a value must come out as written, the least first."""

    NOTHING = 0
    SIGN = 1  # whether it is below, at or above 0
    VALUE = 2


class Rounded(IntEnum):
    """How far a value is from numbers that are exact, the least first."""

    WHOLE = 0  # made of positions, extents, numbers and integers
    GIVEN = 1  # of given floats too, entry by entry
    COMPUTED = 2


def keep_decisions(program: ArrayProgram) -> ArrayProgram:
    """The program with the divisions that decide marked; it holds no repeats and no library calls."""
    marking = _Marking(program)
    marked = [marking.definition(definition) for definition in reversed(program.definitions)]
    return replace(program, definitions=tuple(reversed(marked)))


class _Marking:
    """Goes through definitions from the last to the first, so that all that a definition decides is known."""

    def __init__(self, program: ArrayProgram) -> None:
        self._tensors: Mapping[str, Tensor] = program.tensors
        self._needed: dict[str, Needed] = {}
        self._rounded = {
            tensor.name: Rounded.GIVEN if tensor.element.is_float else Rounded.WHOLE for tensor in program.inputs
        }
        for definition in program.definitions:
            self._rounded[definition.tensor.name] = self._how_rounded(definition.expression)

    def definition(self, definition: ArrayDefinition) -> ArrayDefinition:
        needed = self._needed.get(definition.tensor.name, Needed.NOTHING)
        if not definition.tensor.element.is_float:
            is_bool = definition.tensor.element is ElementType.BOOL
            needed = max(needed, Needed.SIGN if is_bool else Needed.VALUE)
        return replace(definition, expression=self._marked(definition.expression, needed))

    def _marked(self, expression: ArrayExpression, needed: Needed) -> ArrayExpression:
        match expression:
            case Element(tensor):
                self._needed[tensor] = max(self._needed.get(tensor, Needed.NOTHING), needed)
                return expression
            case Fold("mean", indices, body, span) if self._decides(body, needed):
                total = Fold("sum", indices, self._marked(body, needed), span)
                return Call("exact_quotient", (total, number_of_positions(indices, span)), span)
            case Fold(_, _, body):
                return replace(expression, body=self._marked(body, needed))
            case Call(name, operands):
                inner = _of_operands(name, operands, needed)
                marked = tuple(self._marked(o, n) for o, n in zip(operands, inner, strict=True))
                if name == "divide" and self._decides(operands[0], needed):
                    name = "exact_quotient"
                return replace(expression, operator=name, operands=marked)
            case _:
                return expression

    def _decides(self, dividend: ArrayExpression, needed: Needed) -> bool:
        return needed is Needed.VALUE and self._how_rounded(dividend) is not Rounded.COMPUTED

    def _how_rounded(self, expression: ArrayExpression) -> Rounded:
        match expression:
            case Literal() | SizeOf() | Position():
                return Rounded.WHOLE
            case Element(tensor):
                return self._rounded[tensor]
            case Call(name) if name in _COMPARISONS or name in _CONNECTIVES or name in ("floor", "sign"):
                return Rounded.WHOLE
            case Call(name, operands) if name in _PLAIN:
                return max(map(self._how_rounded, operands))
            case Fold(reduction, _, body):
                found = self._how_rounded(body)
                is_made = reduction not in ("max", "min") and found is not Rounded.WHOLE
                return Rounded.COMPUTED if is_made else found
            case _:
                return Rounded.COMPUTED


def _of_operands(name: str, operands: tuple[ArrayExpression, ...], needed: Needed) -> tuple[Needed, ...]:
    """What of each operand must come out as written for what is needed of the result."""
    count = len(operands)
    if name in _COMPARISONS:
        limits = [limit for limit in map(_as_number, operands) if limit is not None]
        if any(map(isinf, limits)):
            return (Needed.NOTHING,) * count
        return (Needed.SIGN if 0 in limits else Needed.VALUE,) * count
    if name in _CONNECTIVES or name == "sign":
        return (Needed.SIGN,) * count
    if name == "floor":
        return (Needed.VALUE,) * count
    if name == "where":
        return (Needed.SIGN, needed, needed)
    if needed is Needed.SIGN and name in _OF_ONE_SIGN:
        return (Needed.NOTHING,) * count
    if needed is Needed.SIGN and name not in _OF_SIGNS:
        return (Needed.VALUE,) * count
    return (needed,) * count


def _as_number(expression: ArrayExpression) -> float | None:
    match expression:
        case Literal(value):
            return value
        case Call("negate", (Literal(value),)):
            return -value
        case _:
            return None
