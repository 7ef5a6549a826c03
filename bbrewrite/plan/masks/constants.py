"""What a block's entries are known to be, all of them alike: a number, what they were before, or merely finite.

This is constant propagation over whole blocks: conditions that are assumed to be false (or true) everywhere make a
`where` a constant, and constants go on through operators. A monoid's identity is neutral in its combination, which
leaves the other operand as it is. Which assumptions are made, and why, is said elsewhere (`narrowing.py`).

A *weight* of 0 is the exponential of -inf, which is what hidden entries have: it hides whatever it multiplies. Any
other 0 hides only what is finite if inputs are, and only in block products.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bbrewrite.core.operators import Operator, OperatorTable, ScalarFunction
from bbrewrite.core.terms import Apply, Cast, IndexValue, Local, Number, Read, Size, Term


@dataclass(frozen=True)
class Constant:
    """Every entry is this number (a truth value counts as 0 or 1)."""

    value: float
    is_weight: bool = False


@dataclass(frozen=True)
class Unchanged:
    """The local block of this name, as it was when the iteration began."""

    name: str


@dataclass(frozen=True)
class Bounded:
    """Never +inf or NaN where inputs are finite, and no infinity at all where it `is_finite`."""

    is_finite: bool


@dataclass(frozen=True)
class Unknown:
    """Nothing is known."""


type Entries = Constant | Unchanged | Bounded | Unknown

UNKNOWN = Unknown()
FINITE = Bounded(True)
_FALSE, _TRUE = Constant(0.0), Constant(1.0)
# Functions of finite numbers that are finite, but for overflow.
_FINITE_FUNCTIONS = frozenset(
    {"add", "subtract", "multiply", "negate", "abs", "sign", "floor", "maximum", "minimum", "where", "exp", "expm1"}
    | {"tanh", "sigmoid", "erf", "sin", "cos", "relu", "silu", "gelu", "gelu_tanh", "softplus"}
)


class EntriesOf:
    """Evaluates terms. `locals` gives what is known of local blocks, `assumed` of conditions;
    `finite_tensors` names the tensors whose entries are finite where inputs are.
    """

    def __init__(
        self,
        table: OperatorTable,
        locals: Mapping[str, Entries],
        assumed: Callable[[Term], bool | None],
        finite_tensors: frozenset[str],
    ) -> None:
        self._table = table
        self._locals = locals
        self._assumed = assumed
        self._finite_tensors = finite_tensors
        self._done: dict[Term, Entries] = {}

    def of(self, term: Term) -> Entries:
        """What is known of a term's entries."""
        if term not in self._done:
            self._done[term] = self._of(term)
        return self._done[term]

    def _of(self, term: Term) -> Entries:
        assumed = self._assumed(term)
        if assumed is not None:
            return _TRUE if assumed else _FALSE
        match term:
            case Number(value):
                return Constant(float(value))
            case Size() | IndexValue():
                return FINITE
            case Read(tensor):
                return FINITE if tensor in self._finite_tensors else UNKNOWN
            case Local(name):
                return self._locals.get(name, UNKNOWN)
            case Cast(_, value):
                return self.of(value)
            case Apply():
                return self._applied(term)
            case _:
                return UNKNOWN

    def _applied(self, term: Apply) -> Entries:
        operator = self._table.operators[term.operator]
        if operator.name == "where" and _is_guarded_negation(term):
            return Bounded(False)
        operands = [self.of(operand) for operand in term.operands]
        if not operator.is_elementwise:
            operands = [self._placed(operator, place, operand) for place, operand in enumerate(operands)]
        function = self._table.functions.get(operator.function)
        result = operands[0] if function is None else self.call(function, operands)
        if not operator.fold:
            return result
        product = operator.function == "multiply"
        if product and any(o == _FALSE for o in operands) and all(o == FINITE or _is_zero(o) for o in operands):
            result = _FALSE
        return self._folded(operator.fold, result)

    @staticmethod
    def _placed(operator: Operator, place: int, operand: Entries) -> Entries:
        """An operand whose layout is not the result's is not the block that it was."""
        signature = operator.signatures[0]
        if isinstance(operand, Unchanged) and signature.operands[place] != signature.result:
            return UNKNOWN
        return operand

    def _folded(self, fold: str, entries: Entries) -> Entries:
        match entries:
            case Constant(value) if value == self._table.monoids[fold].identity[0]:
                return entries
            case Bounded(True) if fold == "sum":
                return FINITE
            case _:
                return UNKNOWN

    def call(self, function: ScalarFunction, operands: Sequence[Entries]) -> Entries:
        """A scalar function's result."""
        if function.body is not None:
            inner = dict(zip(function.parameters, operands, strict=True))
            return EntriesOf(self._table, inner, lambda _: None, frozenset()).of(function.body)
        if function.name == "where":
            condition, *branches = operands
            if isinstance(condition, Constant):
                return branches[0 if condition.value else 1]
            if branches[0] == branches[1]:
                return branches[0]
        if all(isinstance(operand, Constant) for operand in operands):
            return _computed(function, [o for o in operands if isinstance(o, Constant)])
        return self._partly_known(function, operands)

    def _partly_known(self, function: ScalarFunction, operands: Sequence[Entries]) -> Entries:
        constants = {operand.value for operand in operands if isinstance(operand, Constant)}
        match function.name:
            case "and" if 0.0 in constants:
                return _FALSE
            case "or" if constants - {0.0}:
                return _TRUE
            case "equal" if isinstance(operands[0], Unchanged) and operands[0] == operands[1]:
                return _TRUE  # or NaN, which stays NaN
            case "multiply" if any(_is_zero(operand) and operand != _FALSE for operand in operands):
                return Constant(0.0, True)
            case "add" if -math.inf in constants and any(isinstance(operand, Bounded) for operand in operands):
                return Constant(-math.inf)
            case _:
                pass
        for monoid in self._table.monoids.values():
            (combine, *others) = monoid.combine
            if not others and isinstance(combine, Apply) and combine.operator == function.name:
                for mine, other in (operands, reversed(operands)):
                    if isinstance(other, Constant) and other.value == monoid.identity[0]:
                        return mine
        values = operands[1:] if function.name == "where" else operands
        if function.name in _FINITE_FUNCTIONS and all(_is_finite(value) for value in values):
            return FINITE
        bounded = function.name in ("add", "maximum", "minimum", "where")
        return Bounded(False) if bounded and all(_is_bounded(value) for value in values) else UNKNOWN


def either(a: Entries, b: Entries) -> Entries:
    """What is known of entries of which one of two things is known."""
    if a == b:
        return a
    finite = [x == FINITE or (isinstance(x, Constant) and abs(x.value) < math.inf) for x in (a, b)]
    if all(finite):
        return FINITE
    bounded = [isinstance(x, Bounded) or (isinstance(x, Constant) and x.value < math.inf) for x in (a, b)]
    return Bounded(False) if all(bounded) else UNKNOWN


def _computed(function: ScalarFunction, operands: Sequence[Constant]) -> Entries:
    assert function.numpy is not None
    is_logical = function.name in ("and", "or", "not")
    with np.errstate(all="ignore"):
        values = [np.float64(operand.value) for operand in operands]
        value = float(function.numpy(*([v != 0 for v in values] if is_logical else values)))
    if math.isnan(value):
        return UNKNOWN
    hides = any(operand.is_weight or operand.value == -math.inf for operand in operands)
    return Constant(value, value == 0 and hides and function.type_rule != "bool")


def _is_zero(entries: Entries) -> bool:
    return isinstance(entries, Constant) and entries.value == 0


def _is_finite(entries: Entries) -> bool:
    return entries == FINITE or (isinstance(entries, Constant) and math.isfinite(entries.value))


def _is_bounded(entries: Entries) -> bool:
    return isinstance(entries, Bounded) or (isinstance(entries, Constant) and entries.value < math.inf)


def _is_guarded_negation(term: Apply) -> bool:
    """`where(x == -inf, 0, -x)`: the shift by a maximum, which is never +inf."""
    match term.operands:
        case (Apply("equal", (x, Number(value))), Number(0.0), Apply("negate", (y,))):
            return x == y and value == -math.inf
        case _:
            return False
