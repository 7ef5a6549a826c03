"""From the expressions inside index brackets to addresses.

Inside a bracket arithmetic is on whole numbers and `/` is floor division by a positive constant. What is
neither affine nor such a division is reported; what an address names is resolved by the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bbrewrite.core.addresses import Address, make_address
from bbrewrite.core.spans import Span
from bbrewrite.lang import syntax

_OWN_INDEX = "let an index of its own stand for the quotient: `X[2 * p + 1]`; or give the tensor two axes: `X[p, 1]`"


class AddressError(Exception):
    """An expression that is no address. An empty message means that the fault is reported already."""

    def __init__(self, message: str, span: Span, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.span, self.hint = message, span, hint


@dataclass(frozen=True)
class _Linear:
    """floor((affine part) / divisor) while an address is put together."""

    indices: tuple[tuple[str, int], ...] = ()
    sizes: tuple[tuple[str, int], ...] = ()
    offset: int = 0
    divisor: int = 1

    @property
    def is_constant(self) -> bool:
        return not self.indices and not self.sizes

    def scaled(self, factor: int) -> _Linear:
        indices = tuple((name, factor * coefficient) for name, coefficient in self.indices)
        sizes = tuple((name, factor * coefficient) for name, coefficient in self.sizes)
        return _Linear(indices, sizes, factor * self.offset, self.divisor)


def parse_address(expression: syntax.Expression, resolve: Callable[[syntax.Expression], Address | None]) -> Address:
    """The address that an expression denotes.

    `resolve` gives the address of a name or of `size(k)`, or None where it has reported a fault.
    Raises AddressError.
    """
    found = _linear(expression, resolve)
    return make_address(list(found.indices), list(found.sizes), found.offset, found.divisor)


def _linear(node: syntax.Expression, resolve: Callable[[syntax.Expression], Address | None]) -> _Linear:
    match node:
        case syntax.NumberSyntax(value, span):
            if not value.is_integer():
                raise AddressError("positions are whole numbers", span)
            return _Linear(offset=int(value))
        case syntax.Operation("-", (operand,)):
            inner = _linear(operand, resolve)
            if inner.divisor != 1:
                raise AddressError("a division cannot be negated in an address", node.span, _OWN_INDEX)
            return inner.scaled(-1)
        case syntax.Operation("+" | "-" as symbol, (left, right)):
            return _sum(_linear(left, resolve), _linear(right, resolve), symbol, node.span)
        case syntax.Operation("*", (left, right)):
            return _product(_linear(left, resolve), _linear(right, resolve), node.span)
        case syntax.Operation("/", (left, right)):
            return _quotient(_linear(left, resolve), _linear(right, resolve), node.span)
        case syntax.NameSyntax() | syntax.CallSyntax():
            address = resolve(node)
            if address is None:
                raise AddressError("", node.span)
            return _Linear(address.indices, address.sizes, address.offset, address.divisor)
        case _:
            hint = "an address is made of indices, whole numbers, `size(k)`, `+ - *` and `/` by a constant"
            raise AddressError("this is no address", node.span, hint)


def _sum(left: _Linear, right: _Linear, symbol: str, span: Span) -> _Linear:
    if symbol == "-":
        if right.divisor != 1:
            raise AddressError("a division cannot be subtracted in an address", span, _OWN_INDEX)
        right = right.scaled(-1)
    if left.divisor != 1 and right.divisor != 1:
        raise AddressError("an address has one division", span, _OWN_INDEX)
    # floor(a / d) + b = floor((a + d * b) / d)
    divisor = left.divisor * right.divisor
    left, right = left.scaled(right.divisor), right.scaled(left.divisor)
    return _Linear(left.indices + right.indices, left.sizes + right.sizes, left.offset + right.offset, divisor)


def _product(left: _Linear, right: _Linear, span: Span) -> _Linear:
    if not (left.is_constant or right.is_constant):
        raise AddressError("a product of indices is no address", span, "addresses are affine in the indices")
    constant, other = (left, right) if left.is_constant else (right, left)
    if constant.divisor != 1 or other.divisor != 1:
        raise AddressError("a division cannot be multiplied in an address", span, _OWN_INDEX)
    return other.scaled(constant.offset)


def _quotient(left: _Linear, right: _Linear, span: Span) -> _Linear:
    if not right.is_constant or right.divisor != 1:
        raise AddressError("an address is divided by a number only", span)
    if right.offset <= 0:
        raise AddressError("an address is divided by a positive number", span)
    # floor(floor(a / d) / e) = floor(a / (d * e))
    return _Linear(left.indices, left.sizes, left.offset, left.divisor * right.offset)
