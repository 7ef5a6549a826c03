"""Scalar functions of the operator table on NumPy arrays, entry by entry.

Values are computed in compute types: narrow floats as f32, integers as 64 bits, bare numbers as f64 until they
meet another value. `exact` makes every float an f64, which is how the reference works. Shapes are the
callers' business: operands broadcast as in NumPy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bbrewrite.core.elements import Element, wider
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.terms import Apply, Cast, Local, Number, Term
from bbrewrite.core.types import result_element

type Array = npt.NDArray[Any]

_CONNECTIVES = frozenset({"and", "or", "not"})
_FOLDS: Mapping[str, np.ufunc] = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


def compute_dtype(element: Element | None, exact: bool = False) -> np.dtype[Any]:
    """The NumPy type in which values of an element type are computed."""
    if element is None or (exact and element.is_float):
        return np.dtype(np.float64)
    return element.compute_type.numpy_type


def apply_function(
    table: OperatorTable,
    name: str,
    operands: Sequence[Array],
    elements: Sequence[Element | None],
    exact: bool = False,
) -> Array:
    """The function's values, in the compute type of its result."""
    function = table.functions[name]
    if function.body is not None:
        named = dict(zip(function.parameters, zip(operands, elements, strict=True), strict=True))
        return _evaluate_body(table, function.body, named, exact)[0]
    assert function.numpy is not None
    result = compute_dtype(result_element(function, tuple(elements)), exact)
    converted = _converted(function.type_rule, name, operands, elements, result, exact)
    return np.asarray(function.numpy(*converted)).astype(result, copy=False)


def convert(values: Array, element: Element, exact: bool = False) -> Array:
    """The values in another element type's compute type: to bool by `!= 0`, to integers by truncation."""
    if element is Element.BOOL:
        return values if values.dtype == np.bool_ else values != 0
    return values.astype(compute_dtype(element, exact), copy=False)


def fold_axes(fold: str, values: Array, axes: tuple[int, ...]) -> Array:
    """The values combined by a built-in monoid along some axes; its identity where there are none."""
    ufunc = _FOLDS[fold]
    if not axes:
        return values
    initial = identity_of({"sum": 0.0, "prod": 1.0, "max": -np.inf, "min": np.inf}[fold], values.dtype)
    # NumPy's own identities keep pairwise summation; max and min have none. Down columns it adds up one by one, so
    # f32 is summed as f64.
    if fold in ("sum", "prod"):
        wide = np.float64 if fold == "sum" and values.dtype == np.float32 else values.dtype
        return np.asarray(ufunc.reduce(values, axis=axes, dtype=wide)).astype(values.dtype, copy=False)
    return np.asarray(ufunc.reduce(values, axis=axes, initial=initial))


def identity_of(value: float, dtype: np.dtype[Any]) -> Any:
    """A monoid's identity in a type: integers and bools have no infinity, their extreme stands for it."""
    if dtype.kind == "f" or np.isfinite(value):
        return dtype.type(value)
    if dtype.kind == "b":
        return dtype.type(value > 0)
    limits = np.iinfo(dtype)
    return dtype.type(limits.max if value > 0 else limits.min)


def _converted(
    rule: str,
    name: str,
    operands: Sequence[Array],
    elements: Sequence[Element | None],
    result: np.dtype[Any],
    exact: bool,
) -> list[Array]:
    if name in _CONNECTIVES:
        return [convert(operand, Element.BOOL) for operand in operands]
    if rule == "select":
        condition, *branches = operands
        return [convert(condition, Element.BOOL), *(branch.astype(result, copy=False) for branch in branches)]
    if rule != "bool":
        return [operand.astype(result, copy=False) for operand in operands]
    # Comparisons: integers against floats compare as numbers, bare numbers take the float's type.
    common: Element | None = None
    for element in elements:
        common = wider(common, element)
    if common is None or not common.is_float:
        return list(operands)
    dtype = compute_dtype(common, exact)
    return [
        operand.astype(dtype, copy=False) if element is None or element.is_float else operand
        for operand, element in zip(operands, elements, strict=True)
    ]


def _evaluate_body(
    table: OperatorTable, body: Term, named: Mapping[str, tuple[Array, Element | None]], exact: bool
) -> tuple[Array, Element | None]:
    """A user's function: elementwise operators over its parameters."""
    match body:
        case Number(value):
            return np.asarray(value), None
        case Local(name):
            return named[name]
        case Cast(element, value):
            return convert(_evaluate_body(table, value, named, exact)[0], Element(element), exact), Element(element)
        case Apply(operator, operands):
            function = table.operators[operator].function
            values = [_evaluate_body(table, operand, named, exact) for operand in operands]
            elements = tuple(element for _, element in values)
            array = apply_function(table, function, [array for array, _ in values], elements, exact)
            return array, result_element(table.functions[function], elements)
        case _:
            raise AssertionError(body)
