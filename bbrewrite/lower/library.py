"""Library functions written out as their steps: an array program without library calls, of the same meaning.

    softmax[n](x)      M = max x;  E = exp(x - M);  c = sum E;  E / c
    log_softmax[n](x)  M = max x;  c = sum exp(x - M);  (x - M) - log(c)
    logsumexp[n](x)    M = max x;  c = sum exp(x - M);  M + log(c)
    layer_norm[k](x)   mu = mean x;  v = mean (x - mu)^2;  (x - mu) * rsqrt(v + eps)
    rms_norm[k](x)     q = mean x*x;  x * rsqrt(q + eps)
    l2_norm[k](x)      q = sum x*x;  x * recip(sqrt(q))
    variance[k](x)     mu = mean x;  mean (x - mu)^2

Each step is a definition of its own, and so is the call where it stands inside a larger expression. A row whose
entries are all -inf is shifted by 0 and never divided by its sum of 0, which makes the first three total. Steps
that hold sums keep the compute type, since a sum of squares of f16 values rarely fits into f16.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from bbrewrite.core.addresses import index_address
from bbrewrite.core.arrays import (
    ArrayDefinition,
    ArrayExpression,
    ArrayProgram,
    Call,
    Element,
    Fold,
    LibraryCall,
    Literal,
)
from bbrewrite.core.elements import Element as ElementType
from bbrewrite.core.elements import stored_element
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Role, Tensor
from bbrewrite.core.spans import Span
from bbrewrite.lower.array_expressions import element_of, free_indices, needed

_RESULT_STEMS = {
    "softmax": "P",
    "log_softmax": "L",
    "logsumexp": "L",
    "layer_norm": "N",
    "rms_norm": "N",
    "l2_norm": "N",
    "variance": "v",
}


def expand_library_calls(program: ArrayProgram, table: OperatorTable) -> ArrayProgram:
    """The program with every library call as steps, and without definitions that no output needs."""
    expansion = _Expansion(program, table)
    for definition in needed(program.definitions):
        expansion.definition(definition)
    return replace(program, definitions=tuple(expansion.definitions))


class _Expansion:
    """Collects definitions; `names` are all names in use."""

    def __init__(self, program: ArrayProgram, table: OperatorTable) -> None:
        self.definitions: list[ArrayDefinition] = []
        self._table = table
        self._tensors: dict[str, Tensor] = {tensor.name: tensor for tensor in program.inputs}
        self._number_type = ElementType.F32  # in which steps keep numbers that no tensor gives a type
        self._names = {*program.tensors, *(index.name for index in program.indices), *table.operators, *table.monoids}

    def definition(self, definition: ArrayDefinition) -> None:
        """Adds a definition after the steps that it needs."""
        expression = definition.expression
        order = definition.tensor.indices
        self._number_type = ElementType.F64 if definition.tensor.element is ElementType.F64 else ElementType.F32
        if isinstance(expression, LibraryCall):
            expanded = self._steps(expression, order)
        else:
            expanded = self._expression(expression, order)
        self._add(replace(definition, expression=expanded))

    def _add(self, definition: ArrayDefinition) -> None:
        self._tensors[definition.tensor.name] = definition.tensor
        self.definitions.append(definition)

    def _expression(self, expression: ArrayExpression, order: tuple[str, ...]) -> ArrayExpression:
        """The expression without library calls. `order` lists the indices around it, outermost first."""
        match expression:
            case LibraryCall():
                element = self._element(expression)
                result = self._steps(expression, order)
                indices = tuple(name for name in self._layout(expression, order) if name in free_indices(expression))
                return self._step(_RESULT_STEMS[expression.function], result, indices, element, expression.span)
            case Call():
                return replace(expression, operands=tuple(self._expression(o, order) for o in expression.operands))
            case Fold():
                inner = (*(name for name in order if name not in expression.indices), *expression.indices)
                return replace(expression, body=self._expression(expression.body, inner))
            case _:
                return expression

    def _element(self, expression: ArrayExpression) -> ElementType:
        element = element_of(expression, self._tensors, self._table)
        return self._number_type if element in (None, ElementType.NUMBER) else stored_element(element)

    def _step(
        self, stem: str, expression: ArrayExpression, indices: tuple[str, ...], element: ElementType, span: Span | None
    ) -> Element:
        """Defines a step under a fresh name and reads it."""
        name = self._fresh(stem)
        self._add(ArrayDefinition(Tensor(name, indices, element, Role.BUFFER), expression, span))
        return Element(name, tuple(map(index_address, indices)), span)

    def _fresh(self, stem: str) -> str:
        name, number = stem, 0
        while name in self._names:
            number += 1
            name = f"{stem}{number}"
        self._names.add(name)
        return name

    def _steps(self, call: LibraryCall, order: tuple[str, ...]) -> ArrayExpression:
        """Adds a call's steps and gives the expression of its result."""
        bound = call.indices
        operand = self._expression(call.operand, (*(name for name in order if name not in bound), *bound))
        free = free_indices(operand)
        around = self._layout(call, order)
        whole = tuple(name for name in around if name in free or name in bound)
        rest = tuple(name for name in around if name in free and name not in bound)
        element = self._element(operand)
        x = operand if isinstance(operand, Element) else self._step("x", operand, whole, element, call.span)
        steps = _Steps(
            x=x,
            bound=bound,
            eps=call.eps or 0.0,
            matrix=lambda stem, e: self._step(stem, e, whole, self._element(e), call.span),
            vector=lambda stem, e: self._step(stem, e, rest, self._element(e), call.span),
            wide_vector=lambda stem, e: self._step(stem, e, rest, _wide(self._element(e)), call.span),
            span=call.span,
        )
        return _RECIPES[call.function](steps)

    @staticmethod
    def _layout(call: LibraryCall, order: tuple[str, ...]) -> tuple[str, ...]:
        """The indices around a call: in the order of its operand where that is a read, so that no step transposes."""
        addresses = call.operand.addresses if isinstance(call.operand, Element) else ()
        read = [name for address in addresses if (name := address.plain_index) is not None]
        return tuple(dict.fromkeys([*read, *order, *call.indices]))


def _wide(element: ElementType) -> ElementType:
    return element.compute_type if element.is_float else ElementType.F32


@dataclass(frozen=True)
class _Steps:
    """What a recipe works with: the operand, and how to add a step (over all indices, or without the bound ones)."""

    x: ArrayExpression
    bound: tuple[str, ...]
    eps: float
    matrix: Callable[[str, ArrayExpression], ArrayExpression]
    vector: Callable[[str, ArrayExpression], ArrayExpression]
    wide_vector: Callable[[str, ArrayExpression], ArrayExpression]
    span: Span | None

    def call(self, operator: str, *operands: ArrayExpression) -> ArrayExpression:
        return Call(operator, operands, self.span)

    def fold(self, reduction: str, body: ArrayExpression) -> ArrayExpression:
        return Fold(reduction, self.bound, body, self.span)

    def square_mean(self, body: ArrayExpression) -> ArrayExpression:
        return self.fold("mean", self.call("multiply", body, body))

    def guarded(self, value: ArrayExpression, excluded: float, otherwise: ArrayExpression) -> ArrayExpression:
        """`where(value == excluded, 0, otherwise)`."""
        constant = Literal(excluded, self.span)
        return self.call("where", self.call("equal", value, constant), Literal(0.0, self.span), otherwise)

    def shifted(self, maximum: ArrayExpression) -> ArrayExpression:
        """`x - maximum`, and x itself where everything is -inf."""
        return self.call("add", self.x, self.guarded(maximum, -math.inf, self.call("negate", maximum)))


def _softmax(s: _Steps) -> ArrayExpression:
    maximum = s.vector("M", s.fold("max", s.x))
    weights = s.matrix("E", s.call("exp", s.shifted(maximum)))
    total = s.wide_vector("c", s.fold("sum", weights))
    return s.call("multiply", weights, s.guarded(total, 0.0, s.call("recip", total)))


def _log_softmax(s: _Steps) -> ArrayExpression:
    maximum = s.vector("M", s.fold("max", s.x))
    total = s.wide_vector("c", s.fold("sum", s.call("exp", s.shifted(maximum))))
    return s.call("subtract", s.shifted(maximum), s.guarded(total, 0.0, s.call("log", total)))


def _logsumexp(s: _Steps) -> ArrayExpression:
    maximum = s.vector("M", s.fold("max", s.x))
    total = s.wide_vector("c", s.fold("sum", s.call("exp", s.shifted(maximum))))
    # The maximum itself, not the guarded shift: -inf + log(0) is -inf, and so is an empty row.
    return s.call("add", maximum, s.call("log", total))


def _layer_norm(s: _Steps) -> ArrayExpression:
    centred, variance = _centred_and_variance(s)
    scale = s.call("rsqrt", s.call("add", s.wide_vector("v", variance), Literal(s.eps, s.span)))
    return s.call("multiply", centred, scale)


def _variance(s: _Steps) -> ArrayExpression:
    return _centred_and_variance(s)[1]


def _centred_and_variance(s: _Steps) -> tuple[ArrayExpression, ArrayExpression]:
    mean = s.wide_vector("mu", s.fold("mean", s.x))
    centred = s.call("add", s.x, s.call("negate", mean))
    return centred, s.square_mean(centred)


def _rms_norm(s: _Steps) -> ArrayExpression:
    squares = s.wide_vector("q", s.square_mean(s.x))
    return s.call("multiply", s.x, s.call("rsqrt", s.call("add", squares, Literal(s.eps, s.span))))


def _l2_norm(s: _Steps) -> ArrayExpression:
    squares = s.wide_vector("q", s.fold("sum", s.call("multiply", s.x, s.x)))
    return s.call("multiply", s.x, s.call("recip", s.call("sqrt", squares)))


_RECIPES: Mapping[str, Callable[[_Steps], ArrayExpression]] = {
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "logsumexp": _logsumexp,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "l2_norm": _l2_norm,
    "variance": _variance,
}
