"""Resolves values of the array level that are no calls: numbers, names, reads and operators.

Calls are resolved in `array_expressions.py`, which completes the class here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from bbrewrite.core.addresses import Address, index_address, make_address
from bbrewrite.core.arrays import ArrayExpression, Call, Element, Literal, Position, SizeOf
from bbrewrite.core.elements import Element as ElementType
from bbrewrite.core.spans import Span
from bbrewrite.core.types import result_element
from bbrewrite.lang import syntax
from bbrewrite.lang.address_syntax import AddressError, parse_address
from bbrewrite.lang.array_types import number_element
from bbrewrite.lang.diagnostics import Related, counted
from bbrewrite.lang.functions import function_of
from bbrewrite.lang.parser import GREATEST_DEPTH
from bbrewrite.lang.scope import LIBRARY, REDUCTIONS, Scope, function_names

_GREATEST_SIZE = 10_000


@dataclass(frozen=True)
class Resolved:
    """A checked expression, the element type of its values, and where each free index is used first.

    `depth` and `size` measure it as a tree: `def`s can make short texts very large.
    """

    expression: ArrayExpression
    element: ElementType | None
    free: Mapping[str, Span] = field(default_factory=dict[str, Span])
    depth: int = 1
    size: int = 1


@dataclass(frozen=True)
class Environment:
    """What names mean inside a `def` while it is expanded, before the program's names."""

    parameters: Mapping[str, Resolved | None] = field(default_factory=dict[str, "Resolved | None"])
    indices: Mapping[str, str] = field(default_factory=dict[str, str])
    calls: tuple[Related, ...] = ()


class Values(ABC):
    """Resolves expressions in a scope. Results of None stand for faults that have been reported."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._named_functions = function_names(scope.table)
        # While a `def` is checked before any call: the indices that stand for its index parameters, and that
        # element types are not known.
        self._stand_ins = frozenset[str]()
        self._is_general = False

    @abstractmethod
    def _call(self, node: syntax.CallSyntax, inside: Environment) -> Resolved | None:
        """The meaning of a call."""

    def _fault(
        self, code: str, message: str, span: Span, inside: Environment, hint: str = "", *related: Related
    ) -> None:
        self._scope.report(code, message, span, hint, (*related, *inside.calls))

    def _resolve(self, node: syntax.Expression, inside: Environment) -> Resolved | None:
        found = self._find(node, inside)
        if found is not None and found.depth > GREATEST_DEPTH:
            message = f"with its `def`s expanded this nests more than {GREATEST_DEPTH} deep"
            self._fault("too-deep", message, node.span, inside, "give a part of it a definition of its own")
            return None
        if found is not None and found.size > _GREATEST_SIZE:
            message = f"with its `def`s expanded this has more than {_GREATEST_SIZE} operations"
            self._fault("too-large", message, node.span, inside, "give a part of it a definition of its own")
            return None
        return found

    def _find(self, node: syntax.Expression, inside: Environment) -> Resolved | None:
        match node:
            case syntax.NumberSyntax(value, span):
                self._scope.check_number(node)
                return Resolved(Literal(value, span), number_element(value))
            case syntax.NameSyntax(name, span):
                return self._name(name, span, inside)
            case syntax.Operation():
                operands = [self._resolve(operand, inside) for operand in node.operands]
                return self._apply(function_of(node), operands, node.span, inside)
            case syntax.Indexed():
                return self._read(node, inside)
            case syntax.CallSyntax():
                return self._call(node, inside)
            case syntax.MapSyntax(span=span) | syntax.ReduceSyntax(span=span):
                self._fault("level", "`map` and `reduce` belong to block programs", span, inside, "write `sum[k](x)`")
                return None

    def _name(self, name: str, span: Span, inside: Environment) -> Resolved | None:
        if name in inside.parameters:
            return inside.parameters[name]
        index = self._index_name(name, inside)
        if index is not None:
            return Resolved(Position(index, span), ElementType.INDEX, {index: span})
        tensor = self._scope.tensors.get(name)
        if tensor is None:
            self._unknown_value(name, span, inside)
            return None
        if tensor.indices:
            rank = counted(len(tensor.indices), "index", "indices")
            message = f"`{name}` has {rank}; name them all"
            self._fault("rank", message, span, inside, f"write `{name}[{', '.join(tensor.indices)}]`")
            return None
        return Resolved(Element(name, (), span), tensor.element)

    def _unknown_value(self, name: str, span: Span, inside: Environment) -> None:
        if name in (*REDUCTIONS, *LIBRARY, *self._named_functions, "size"):
            over = "[k]" if name in REDUCTIONS or name in LIBRARY else ""
            argument = "k" if name == "size" else "x"
            hint = f"write `{name}{over}({argument})`"
            self._fault("wrong-kind", f"`{name}` is a function and needs arguments", span, inside, hint)
            return
        if name == "nan":
            self._fault("unknown-name", "there is no number `nan`", span, inside)
            return
        values = [*self._scope.tensors, *self._scope.indices, *inside.parameters, *inside.indices]
        self._scope.report_unknown(name, span, "a tensor or index", values)

    def _index_name(self, name: str, inside: Environment) -> str | None:
        if name in inside.parameters:
            return None
        if name in inside.indices:
            return inside.indices[name]
        return name if name in self._scope.indices else None

    def _read(self, node: syntax.Indexed, inside: Environment) -> Resolved | None:
        base = node.base
        if not isinstance(base, syntax.NameSyntax):
            self._fault("wrong-kind", "only tensors are indexed", node.span, inside, "name the value in a definition")
            return None
        tensor = None if base.name in inside.parameters else self._scope.tensors.get(base.name)
        if tensor is None:
            if base.name in inside.parameters:
                message = f"`{base.name}` is a parameter, a value; it has no indices"
                self._fault("wrong-kind", message, node.span, inside)
            elif base.name in (*REDUCTIONS, *LIBRARY) and base.name not in self._scope.broken:
                message = f"`{base.name}[...]` needs an argument in brackets"
                self._fault("wrong-kind", message, node.span, inside, f"write `{base.name}[k](x)`")
            else:
                self._scope.report_unknown(base.name, node.span, "a tensor", self._scope.tensors)
            return None
        if len(node.addresses) != len(tensor.indices):
            rank = counted(len(tensor.indices), "index", "indices")
            message = f"`{base.name}` has {rank}; {len(node.addresses)} given"
            hint = f"write `{base.name}[{', '.join(tensor.indices)}]`" if tensor.indices else f"write `{base.name}`"
            declared = Related(self._scope.names[base.name].span, "declared here")
            self._fault("rank", message, node.span, inside, hint, declared)
            return None
        free: dict[str, Span] = {}
        addresses: list[Address] = []
        for axis, expression in zip(tensor.indices, node.addresses, strict=True):
            address = self._address(expression, axis, base.name, inside)
            if address is None:
                return None
            for name in sorted(address.index_names):
                free.setdefault(name, expression.span)
            addresses.append(address)
        return Resolved(Element(base.name, tuple(addresses), node.span), tensor.element, free)

    def _address(self, node: syntax.Expression, axis: str, tensor: str, inside: Environment) -> Address | None:
        def resolve(part: syntax.Expression) -> Address | None:
            value = self._resolve(part, inside)
            return None if value is None else self._value_address(value, part.span, inside)

        try:
            address = parse_address(node, resolve)
        except AddressError as error:
            if error.message:
                self._fault("address", error.message, error.span, inside, error.hint)
            return None
        plain = address.plain_index
        if plain is None or not self._stand_ins.isdisjoint((plain, axis)):
            return address
        return address if self._scope.check_extents(plain, axis, tensor, node.span, inside.calls) else None

    def _value_address(self, value: Resolved, span: Span, inside: Environment) -> Address | None:
        match value.expression:
            case Position(index):
                return index_address(index)
            case SizeOf(index):
                return make_address([], [(index, 1)])
            case Literal(number) if number.is_integer():
                return make_address([], [], int(number))
            case _:
                message = "a tensor is addressed by indices and numbers, not by computed values"
                self._fault("address", message, span, inside)
                return None

    def _apply(self, name: str, operands: list[Resolved | None], span: Span, inside: Environment) -> Resolved | None:
        good = [operand for operand in operands if operand is not None]
        if len(good) < len(operands):
            return None
        conditions = len(good) if name in ("and", "or", "not") else 1 if name == "where" else 0
        for position in range(conditions):
            checked = self._condition(good[position], name, span, inside)
            if checked is None:
                return None
            good[position] = checked
        function = self._scope.table.functions[name]
        elements = tuple(operand.element for operand in good)
        free = merged(good)
        depth = 1 + max(operand.depth for operand in good)
        size = 1 + sum(operand.size for operand in good)
        expression = Call(name, tuple(operand.expression for operand in good), span)
        return Resolved(expression, result_element(function, elements), free, depth, size)

    def _condition(self, value: Resolved, name: str, span: Span, inside: Environment) -> Resolved | None:
        """A truth value; whole numbers, as masks are often kept, count as true where they are not 0."""
        if value.element is ElementType.BOOL or self._is_general:
            return value
        if value.element is None or value.element in (ElementType.I32, ElementType.INDEX):
            call = Call("not_equal", (value.expression, Literal(0.0)), span)
            return Resolved(call, ElementType.BOOL, value.free, value.depth + 1, value.size + 2)
        what = "the first argument of `where`" if name == "where" else f"an operand of `{name}`"
        message = f"{what} is a truth value; this is {value.element}"
        self._fault("type", message, span, inside, "compare it with something: `x != 0`")
        return None


def merged(operands: list[Resolved]) -> dict[str, Span]:
    """Where each index that an operand depends on is used first."""
    free: dict[str, Span] = {}
    for operand in operands:
        for index, span in operand.free.items():
            free.setdefault(index, span)
    return free
