"""Evaluates a rule's terms on an instance in float64, written out operator by operator in NumPy.

It shares nothing with the evaluator of `fuzz` nor with the interpreter but the terms, so that a counterexample that
it confirms is one. What is undefined is NaN, where IEEE arithmetic would have an infinity too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.terms import (
    Apply,
    At,
    Cast,
    Component,
    Loaded,
    Local,
    Map,
    Number,
    Pair,
    Reduce,
    Size,
    Stored,
    Term,
)
from bbrewrite.fuzz.instances import Instance
from bbrewrite.fuzz.soundness import Counterexample

type Look = Callable[[str, Mapping[str, int]], Any]


def _where_defined(holds: Any, value: Any) -> Any:
    return np.where(holds, value, math.nan)


_SCALAR: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: _where_defined(b != 0, a / b),
    "exact_quotient": lambda a, b: _where_defined(b != 0, a / b),
    "widened": lambda a: a,
    "power": lambda a, b: _where_defined((a != 0) | (b >= 0), np.float_power(a, b)),
    "negate": lambda a: -a,
    "less": lambda a, b: 1.0 * (a < b),
    "less_equal": lambda a, b: 1.0 * (a <= b),
    "greater": lambda a, b: 1.0 * (a > b),
    "greater_equal": lambda a, b: 1.0 * (a >= b),
    "equal": lambda a, b: 1.0 * (a == b),
    "not_equal": lambda a, b: 1.0 * (a != b),
    "and": lambda a, b: 1.0 * ((a != 0) & (b != 0)),
    "or": lambda a, b: 1.0 * ((a != 0) | (b != 0)),
    "not": lambda a: 1.0 * (a == 0),
    "where": lambda c, a, b: np.where(c != 0, a, b),
    "maximum": np.maximum,
    "minimum": np.minimum,
    "exp": np.exp,
    "log": lambda a: _where_defined(a > 0, np.log(a)),
    "log1p": lambda a: _where_defined(a > -1, np.log1p(a)),
    "expm1": np.expm1,
    "sqrt": np.sqrt,
    "rsqrt": lambda a: _where_defined(a > 0, 1 / np.sqrt(a)),
    "recip": lambda a: _where_defined(a != 0, 1 / a),
    "abs": abs,
    "sign": lambda a: 1.0 * (a > 0) - 1.0 * (a < 0),
    "floor": np.floor,
    "tanh": np.tanh,
    "sigmoid": lambda a: 1 / (1 + np.exp(-a)),
    "erf": np.vectorize(math.erf, otypes=[float]),
    "sin": np.sin,
    "cos": np.cos,
    "relu": lambda a: np.where(a > 0, a, 0.0),
    "silu": lambda a: a / (1 + np.exp(-a)),
    "gelu": lambda a: a / 2 * np.vectorize(math.erfc, otypes=[float])(-a / math.sqrt(2)),
    "gelu_tanh": lambda a: a / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a * a * a))),
    "softplus": lambda a: np.log(1 + np.exp(a)),
}
_BLOCK: dict[str, Callable[..., Any]] = {
    "dot": lambda a, b: a @ b.T,
    "outer": np.outer,
    "transpose": np.transpose,
    "row_scale": lambda a, c: (a.T * c).T,
    "row_shift": lambda a, c: (a.T + c).T,
    "col_scale": lambda a, c: a * c,
    "col_shift": lambda a, c: a + c,
    **{f"row_{name}": lambda a, name=name: getattr(a, name)(1) for name in ("sum", "max", "min", "prod")},
    **{f"col_{name}": lambda a, name=name: getattr(a, name)(0) for name in ("sum", "max", "min", "prod")},
    **{f"{name}_of": lambda a, name=name: getattr(a, name)() for name in ("sum", "max", "min", "prod")},
}
_LOOPS: dict[str, tuple[float, Callable[..., Any]]] = {
    "sum": (0.0, np.add),
    "prod": (1.0, np.multiply),
    "max": (-math.inf, np.maximum),
    "min": (math.inf, np.minimum),
}


def is_confirmed(found: Counterexample, table: OperatorTable) -> bool:
    """Whether the sides differ on the instance: in shape, or at an entry where the left one is a number."""
    instance = found.instance
    left, right = found.plan.claim.sides[found.side]
    with np.errstate(all="ignore"):
        one = dict(_blocks(_value(left, table, instance, _reader(instance), instance.outer)))
        try:
            other = dict(_blocks(_value(right, table, instance, _reader(instance), instance.outer)))
            if found.place is None:
                return any(np.shape(one[key]) != np.shape(other[key]) for key in one)
        except ValueError:  # blocks that do not fit each other
            return found.place is None
    pairs = [np.broadcast_arrays(one[key], other.get(key, other.get(((), ())))) for key in one]
    return any(_differ(float(a), float(b)) for x, y in pairs for a, b in zip(x.flat, y.flat, strict=True))


def _differ(a: float, b: float) -> bool:
    if math.isnan(a) or a == b:
        return False
    return not math.isfinite(a) or not math.isfinite(b) or abs(a - b) > 1e-13 * max(abs(a), abs(b))


def _blocks(value: Any, places: tuple[int, ...] = (), parts: tuple[int, ...] = ()) -> Iterator[tuple[Any, Any]]:
    """Every block with its places in lists and in pairs: a pair of lists and a list of pairs are one."""
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from _blocks(item, (*places, number), parts)
    elif isinstance(value, tuple):
        for number, item in enumerate(value):
            yield from _blocks(item, places, (*parts, number))
    else:
        yield (places, parts), value


def _reader(instance: Instance) -> Look:
    def floats(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return value.astype(float)
        return type(value)(floats(item) for item in value)

    return lambda name, position: floats(instance.value(name, position))


def _value(term: Term, table: OperatorTable, instance: Instance, look: Look, position: Mapping[str, int]) -> Any:
    def of(child: Term, inner: Mapping[str, int] = position) -> Any:
        return _value(child, table, instance, look, inner)

    match term:
        case Number(value):
            return np.float64(value)
        case Size(index):
            return np.float64(instance.indices[index].extent)
        case Local(name):
            return look(name, position)
        case Map(index, body):
            return [of(body, {**position, index: k}) for k in range(instance.indices[index].trips)]
        case At(items, address):
            return of(items)[position[address.plain_index or ""]]
        case Stored(value) | Loaded(value) | Cast(_, value):
            return of(value)
        case Pair(first, second):
            return (of(first), of(second))
        case Component(side, pair):
            return _component(of(pair), side)
        case Reduce(monoid, index, operands):
            inner = [{**position, index: k} for k in range(instance.indices[index].trips)]
            iterations = [[of(operand, p) for operand in operands] for p in inner]
            return _reduced(monoid, iterations, table, instance)
        case Apply(name, operands, indices):
            values = [of(operand) for operand in operands]
            lengths = [instance.indices[index].length(position[index]) for index in indices]
            return _applied(name, values, lengths, table, instance)
        case _:
            raise AssertionError(term)


def _component(value: Any, side: int) -> Any:
    return [_component(item, side) for item in value] if isinstance(value, list) else value[side]


def _applied(name: str, values: list[Any], lengths: list[int], table: OperatorTable, instance: Instance) -> Any:
    if name in _SCALAR:
        return _SCALAR[name](*values)
    if name in _BLOCK:
        return _BLOCK[name](*values)
    if name == "row_spread":
        return np.stack([values[0]] * lengths[0], axis=-1)
    if name == "col_spread":
        return np.stack([values[0]] * lengths[0], axis=0)
    function = table.functions[name]
    assert function.body is not None
    return _over(function.body, dict(zip(function.parameters, values, strict=True)), table, instance)


def _over(term: Term, named: Mapping[str, Any], table: OperatorTable, instance: Instance) -> Any:
    return _value(term, table, instance, lambda name, _: named[name], {})


def _reduced(name: str, iterations: list[list[Any]], table: OperatorTable, instance: Instance) -> Any:
    if name in _LOOPS:
        total, combine = _LOOPS[name]
        for (value,) in iterations:
            total = combine(total, value)
        return total
    monoid = table.monoids[name]
    state: list[Any] = [np.float64(value) for value in monoid.identity]
    for values in iterations:
        given = dict(zip(monoid.parameters, values, strict=True))
        element = [_over(term, given, table, instance) for term in monoid.element]
        sides = dict(zip((*monoid.left, *monoid.right), (*state, *element), strict=True))
        state = [_over(term, sides, table, instance) for term in monoid.combine]
    return _over(monoid.finish, dict(zip(monoid.state, state, strict=True)), table, instance)
