"""The operator table: the one definition of every operator and reduction monoid.

An operator is a *scalar function* applied entry by entry, where letters say which entry of each
operand belongs to which entry of the result, and a *fold* over the letters that the result lacks:

    row_scale   rc, r  -> rc   a * b
    dot         rk, ck -> rc   sum over k of a * b
    row_max     rc     -> r    max over c of a

Parser, type checker, e-graph, interpreter, generators and fuzzing all read this table. Users extend
it with `op` and `monoid` in rule files (`OperatorTable.with_function`, `.with_monoid`); an extended
table is a new table. What an operator costs on a machine is not said here, only its relative work.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from bbrewrite.core.terms import Term

type TypeRule = Literal["wider", "float", "bool", "select", "compute"]
type ArrayFunction = Callable[..., Any]


@dataclass(frozen=True)
class ScalarFunction:
    """A function of single numbers.

    `type_rule` gives the result's element type: "wider" of the operands', "float" (the wider, integers
    as f32), "bool", "select" (the wider of all operands but the first), or "compute" (in which a float is computed).
    `cpp` is a C++ expression over {0}, {1}, ...; `work` counts vector instructions for one vector.
    A user's function has `parameters` and a `body` instead of `numpy` and `cpp`.
    """

    name: str
    arity: int
    type_rule: TypeRule
    work: float
    numpy: ArrayFunction | None = None
    cpp: str = ""
    symbol: str = ""  # infix spelling, "" for a function written with a name
    precedence: int = 0
    parameters: tuple[str, ...] = ()
    body: Term | None = None


@dataclass(frozen=True)
class Signature:
    """Axis letters of the operands and of the result; "*" stands for any shape (elementwise).

    A digit in `result` is the axis of that index attribute (`row_spread(v, n)` is r -> r0).
    """

    operands: tuple[str, ...]
    result: str


@dataclass(frozen=True)
class Operator:
    """A block operator: `function` entry by entry, then `fold` (a monoid's name) over the letters
    that the result lacks. `signatures` are tried in order; `index_count` index names follow the operands.
    """

    name: str
    signatures: tuple[Signature, ...]
    function: str  # a scalar function's name; "" for the identity
    fold: str = ""
    index_count: int = 0

    @property
    def arity(self) -> int:
        return len(self.signatures[0].operands)

    @property
    def is_elementwise(self) -> bool:
        return self.signatures[0].result == "*"


@dataclass(frozen=True)
class Monoid:
    """A reduction: a state of several components with an identity and an associative combination.

    `element` gives the state of one loop iteration from the operands named `parameters`;
    `combine` the components of the combined state from those of two states, named `left` and `right`;
    `finish` the result from a state named by `state`. Named leaves are `terms.Local`.
    """

    name: str
    state: tuple[str, ...]
    identity: tuple[float, ...]
    parameters: tuple[str, ...]
    element: tuple[Term, ...]
    left: tuple[str, ...]
    right: tuple[str, ...]
    combine: tuple[Term, ...]
    finish: Term


@dataclass(frozen=True)
class OperatorTable:
    """All operators, scalar functions and monoids by name."""

    functions: Mapping[str, ScalarFunction]
    operators: Mapping[str, Operator]
    monoids: Mapping[str, Monoid] = field(default_factory=lambda: MappingProxyType({}))

    def with_function(self, function: ScalarFunction) -> OperatorTable:
        """A table with one more scalar function and the elementwise operator of the same name."""
        operator = _elementwise(function)
        return replace(
            self,
            functions=MappingProxyType({**self.functions, function.name: function}),
            operators=MappingProxyType({**self.operators, operator.name: operator}),
        )

    def with_monoid(self, monoid: Monoid) -> OperatorTable:
        """A table with one more monoid."""
        return replace(self, monoids=MappingProxyType({**self.monoids, monoid.name: monoid}))


def _elementwise(function: ScalarFunction) -> Operator:
    return Operator(function.name, (Signature(("*",) * function.arity, "*"),), function.name)


def _rsqrt(x: Any) -> Any:
    return 1 / np.sqrt(x)


def _recip(x: Any) -> Any:
    return 1 / np.asarray(x)


def _relu(x: Any) -> Any:
    return np.maximum(x, 0)


def _softplus(x: Any) -> Any:
    result: Any = np.logaddexp(x, 0)
    return result


def _sigmoid(x: Any) -> Any:
    # Only non-positive numbers are exponentiated, so nothing overflows.
    decayed: Any = np.exp(-np.abs(x))
    return _choose(np.asarray(x) >= 0, 1 / (1 + decayed), decayed / (1 + decayed))


_choose: ArrayFunction = np.where
_erf_entry: ArrayFunction = np.frompyfunc(math.erf, 1, 1)
_erfc_entry: ArrayFunction = np.frompyfunc(math.erfc, 1, 1)


def _entry_by_entry(function: ArrayFunction, x: Any) -> Any:
    x = np.asarray(x)
    return np.asarray(function(x.astype(np.float64))).astype(x.dtype)


def _erf(x: Any) -> Any:
    return _entry_by_entry(_erf_entry, x)


def _gelu(x: Any) -> Any:
    # Not 1 + erf, which cancels for negative x.
    return 0.5 * x * _entry_by_entry(_erfc_entry, np.asarray(x) * -math.sqrt(0.5))


def _gelu_tanh(x: Any) -> Any:
    # 1 + tanh(y) = 2 sigmoid(2 y), which cancels nowhere.
    return x * _sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * np.asarray(x) ** 3))


def _silu(x: Any) -> Any:
    return x * _sigmoid(x)


# name, arity, type rule, work, NumPy, C++, infix symbol, precedence
# Precedences, loosest first: or 1, and 2, not 3, comparisons 4, + - 5, * / 6, unary minus 7, ^ 8.
_FUNCTIONS = (
    ScalarFunction("add", 2, "wider", 1, np.add, "({0} + {1})", "+", 5),
    ScalarFunction("subtract", 2, "wider", 1, np.subtract, "({0} - {1})", "-", 5),
    ScalarFunction("multiply", 2, "wider", 1, np.multiply, "({0} * {1})", "*", 6),
    ScalarFunction("divide", 2, "float", 6, np.true_divide, "({0} / {1})", "/", 6),
    ScalarFunction("exact_quotient", 2, "float", 6, np.true_divide, "({0} / {1})"),  # a division that no rule knows
    ScalarFunction("widened", 1, "compute", 0, np.asarray, "({0})"),  # f32, whatever 16 bits it comes from
    ScalarFunction("power", 2, "float", 350, np.power, "bb::pow({0}, {1})", "^", 8),
    ScalarFunction("negate", 1, "wider", 1, np.negative, "(-{0})", "-", 7),
    ScalarFunction("less", 2, "bool", 1, np.less, "({0} < {1})", "<", 4),
    ScalarFunction("less_equal", 2, "bool", 1, np.less_equal, "({0} <= {1})", "<=", 4),
    ScalarFunction("greater", 2, "bool", 1, np.greater, "({0} > {1})", ">", 4),
    ScalarFunction("greater_equal", 2, "bool", 1, np.greater_equal, "({0} >= {1})", ">=", 4),
    ScalarFunction("equal", 2, "bool", 1, np.equal, "({0} == {1})", "==", 4),
    ScalarFunction("not_equal", 2, "bool", 1, np.not_equal, "({0} != {1})", "!=", 4),
    ScalarFunction("and", 2, "bool", 1, np.logical_and, "({0} && {1})", "and", 2),
    ScalarFunction("or", 2, "bool", 1, np.logical_or, "({0} || {1})", "or", 1),
    ScalarFunction("not", 1, "bool", 1, np.logical_not, "(!{0})", "not", 3),
    ScalarFunction("where", 3, "select", 1, np.where, "bb::select({0}, {1}, {2})"),
    ScalarFunction("maximum", 2, "wider", 2, np.maximum, "bb::maximum({0}, {1})"),
    ScalarFunction("minimum", 2, "wider", 2, np.minimum, "bb::minimum({0}, {1})"),
    ScalarFunction("exp", 1, "float", 14, np.exp, "bb::exp({0})"),
    ScalarFunction("log", 1, "float", 26, np.log, "bb::log({0})"),
    ScalarFunction("log1p", 1, "float", 34, np.log1p, "bb::log1p({0})"),
    ScalarFunction("expm1", 1, "float", 18, np.expm1, "bb::expm1({0})"),
    ScalarFunction("sqrt", 1, "float", 10, np.sqrt, "bb::sqrt({0})"),
    ScalarFunction("rsqrt", 1, "float", 14, _rsqrt, "bb::rsqrt({0})"),
    ScalarFunction("recip", 1, "float", 6, _recip, "bb::recip({0})"),
    ScalarFunction("abs", 1, "wider", 1, np.abs, "bb::abs({0})"),
    ScalarFunction("sign", 1, "wider", 3, np.sign, "bb::sign({0})"),
    ScalarFunction("floor", 1, "wider", 1, np.floor, "bb::floor({0})"),
    ScalarFunction("tanh", 1, "float", 20, np.tanh, "bb::tanh({0})"),
    ScalarFunction("sigmoid", 1, "float", 20, _sigmoid, "bb::sigmoid({0})"),
    ScalarFunction("erf", 1, "float", 34, _erf, "bb::erf({0})"),
    ScalarFunction("sin", 1, "float", 30, np.sin, "bb::sin({0})"),
    ScalarFunction("cos", 1, "float", 30, np.cos, "bb::cos({0})"),
    ScalarFunction("relu", 1, "wider", 2, _relu, "bb::relu({0})"),
    ScalarFunction("silu", 1, "float", 21, _silu, "bb::silu({0})"),
    ScalarFunction("gelu", 1, "float", 40, _gelu, "bb::gelu({0})"),
    ScalarFunction("gelu_tanh", 1, "float", 26, _gelu_tanh, "bb::gelu_tanh({0})"),
    ScalarFunction("softplus", 1, "float", 75, _softplus, "bb::softplus({0})"),
)

_STRUCTURED = (
    Operator("dot", (Signature(("rk", "ck"), "rc"),), "multiply", "sum"),
    Operator("outer", (Signature(("r", "c"), "rc"),), "multiply"),
    Operator("transpose", (Signature(("rc",), "cr"),), ""),
    # A column vector is a matrix of one column, so the row operators take it too.
    Operator("row_scale", (Signature(("rc", "r"), "rc"), Signature(("r", "r"), "r")), "multiply"),
    Operator("row_shift", (Signature(("rc", "r"), "rc"), Signature(("r", "r"), "r")), "add"),
    Operator("col_scale", (Signature(("rc", "c"), "rc"),), "multiply"),
    Operator("col_shift", (Signature(("rc", "c"), "rc"),), "add"),
    # A vector repeated along the axis of a named index, and a scalar as the vector of one entry repeated.
    Operator("row_spread", (Signature(("r",), "r0"), Signature(("",), "0")), "", index_count=1),
    Operator("col_spread", (Signature(("c",), "0c"),), "", index_count=1),
    *(
        Operator(f"{prefix}{name}{suffix}", (signature,), "", name)
        for name in ("sum", "max", "min", "prod")
        for prefix, suffix, signature in (
            ("row_", "", Signature(("rc",), "r")),
            ("col_", "", Signature(("rc",), "c")),
            ("", "_of", Signature(("r",), "")),
        )
    ),
)


def _builtin_monoids() -> dict[str, Monoid]:
    from bbrewrite.core.terms import Apply, Local

    def simple(name: str, identity: float, function: str) -> Monoid:
        combine = Apply(function, (Local("a"), Local("b")))
        return Monoid(name, ("s",), (identity,), ("x",), (Local("x"),), ("a",), ("b",), (combine,), Local("s"))

    monoids = (
        simple("sum", 0.0, "add"),
        simple("prod", 1.0, "multiply"),
        simple("max", -math.inf, "maximum"),
        simple("min", math.inf, "minimum"),
    )
    return {monoid.name: monoid for monoid in monoids}


def builtin_table() -> OperatorTable:
    """The operators of the language before any rule file extends them."""
    functions = {function.name: function for function in _FUNCTIONS}
    operators = {function.name: _elementwise(function) for function in _FUNCTIONS}
    operators |= {operator.name: operator for operator in _STRUCTURED}
    return OperatorTable(MappingProxyType(functions), MappingProxyType(operators), MappingProxyType(_builtin_monoids()))
