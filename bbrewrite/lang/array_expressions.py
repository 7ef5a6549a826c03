"""Resolves and checks expressions of the array level.

Every expression is resolved to its meaning, its element type and the indices on which it depends. Users' `def`s
are expanded here: arguments are resolved where they are written, so no name of the caller is captured by a parameter
of the `def`. Indices are the program's loops: a reduction in a `def` binds its index in the arguments too, as the
reductions of the library do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bbrewrite.core.addresses import Address, index_address, make_address
from bbrewrite.core.arrays import ArrayExpression, Call, Element, Fold, LibraryCall, Literal, Position, SizeOf
from bbrewrite.core.elements import Element as ElementType
from bbrewrite.core.elements import as_float
from bbrewrite.core.spans import Span
from bbrewrite.core.types import result_element
from bbrewrite.lang import syntax
from bbrewrite.lang.address_syntax import AddressError, parse_address
from bbrewrite.lang.diagnostics import Related
from bbrewrite.lang.functions import function_of
from bbrewrite.lang.parser import GREATEST_DEPTH
from bbrewrite.lang.scope import LIBRARY, REDUCTIONS, Scope, function_names, shown_symbols

_DEFAULT_EPS = {"layer_norm": 1e-5, "rms_norm": 1e-5}
_KEEPS_INDICES = ("softmax", "log_softmax", "layer_norm", "rms_norm", "l2_norm")


@dataclass(frozen=True)
class Resolved:
    """A checked expression, the element type of its values, and where each free index is used first."""

    expression: ArrayExpression
    element: ElementType | None
    free: Mapping[str, Span] = field(default_factory=dict[str, Span])
    depth: int = 1


@dataclass(frozen=True)
class Function:
    """A user's `def` whose body is known to be right."""

    statement: syntax.DefStatement


@dataclass(frozen=True)
class _Environment:
    """What names mean inside a `def` while it is expanded, before the program's names."""

    parameters: Mapping[str, Resolved | None] = field(default_factory=dict[str, "Resolved | None"])
    indices: Mapping[str, str] = field(default_factory=dict[str, str])
    calls: tuple[Related, ...] = ()


class Expressions:
    """Resolves expressions in a scope. Results of None stand for faults that have been reported."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._functions: dict[str, Function] = {}
        self._named_functions = function_names(scope.table)
        # While a `def` is checked before any call: the indices that stand for its index parameters, and that
        # element types are not known.
        self._stand_ins = frozenset[str]()
        self._is_general = False

    def resolve(self, node: syntax.Expression) -> Resolved | None:
        """The meaning of an expression of the program."""
        return self._resolve(node, _Environment())

    def define(self, statement: syntax.DefStatement) -> None:
        """Checks a `def`, with parameters that fit everywhere, and enters it."""
        scope = self._scope
        words = (*statement.indices, *statement.parameters)
        seen: dict[str, Span] = {}
        for word in words:
            if word.text in seen:
                related = (Related(seen[word.text], "first here"),)
                scope.report("name-clash", f"`{word.text}` is a parameter twice", word.span, related=related)
            seen.setdefault(word.text, word.span)
        before = len(scope.faults)
        # An index parameter stands for any index: while checking, for one whose extent nothing is known about.
        stand_ins = {word.text: f"{word.text} of {statement.name.text}" for word in statement.indices}
        anything = Resolved(Literal(1.0), None)
        parameters = {word.text: anything for word in statement.parameters}
        self._stand_ins = frozenset(stand_ins.values())
        self._is_general = True
        self._resolve(statement.body, _Environment(parameters, stand_ins))
        self._stand_ins = frozenset[str]()
        self._is_general = False
        # Entered only now, so that its own name in its body is a use before declaration: recursion has no meaning.
        if scope.declare(statement.name, "def"):
            if len(scope.faults) == before:
                self._functions[statement.name.text] = Function(statement)
            else:
                scope.broken.add(statement.name.text)

    def _fault(
        self, code: str, message: str, span: Span, inside: _Environment, hint: str = "", *related: Related
    ) -> None:
        self._scope.report(code, message, span, hint, (*related, *inside.calls))

    def _resolve(self, node: syntax.Expression, inside: _Environment) -> Resolved | None:
        found = self._find(node, inside)
        if found is not None and found.depth > GREATEST_DEPTH:
            message = f"with its `def`s expanded this nests more than {GREATEST_DEPTH} deep"
            self._fault("too-deep", message, node.span, inside, "give a part of it a definition of its own")
            return None
        return found

    def _find(self, node: syntax.Expression, inside: _Environment) -> Resolved | None:
        match node:
            case syntax.NumberSyntax(value, span):
                self._scope.check_number(node)
                return Resolved(Literal(value, span), None if value.is_integer() else ElementType.NUMBER)
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

    def _name(self, name: str, span: Span, inside: _Environment) -> Resolved | None:
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
            message = f"`{name}` has {_count(len(tensor.indices))}; name them all"
            self._fault("rank", message, span, inside, f"write `{name}[{', '.join(tensor.indices)}]`")
            return None
        return Resolved(Element(name, (), span), tensor.element)

    def _unknown_value(self, name: str, span: Span, inside: _Environment) -> None:
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

    def _index_name(self, name: str, inside: _Environment) -> str | None:
        if name in inside.parameters:
            return None
        if name in inside.indices:
            return inside.indices[name]
        return name if name in self._scope.indices else None

    def _bound_indices(self, nodes: tuple[syntax.Expression, ...], inside: _Environment) -> tuple[str, ...] | None:
        """The indices in the brackets of a reduction."""
        found: list[str] = []
        for node in nodes:
            name = self._index_name(node.name, inside) if isinstance(node, syntax.NameSyntax) else None
            if name is None:
                if isinstance(node, syntax.NameSyntax):
                    self._scope.report_unknown(node.name, node.span, "an index", self._scope.indices)
                else:
                    self._fault("wrong-kind", "a reduction names the indices it runs over", node.span, inside)
                return None
            if name in found:
                self._fault("repeated-index", f"`{name}` is reduced twice here", node.span, inside)
                return None
            found.append(name)
        return tuple(found)

    def _read(self, node: syntax.Indexed, inside: _Environment) -> Resolved | None:
        base = node.base
        if not isinstance(base, syntax.NameSyntax):
            self._fault("wrong-kind", "only tensors are indexed", node.span, inside, "name the value in a definition")
            return None
        tensor = None if base.name in inside.parameters else self._scope.tensors.get(base.name)
        if tensor is None:
            if base.name in inside.parameters:
                message = f"`{base.name}` is a parameter, a value; it has no indices"
                self._fault("wrong-kind", message, node.span, inside)
            elif base.name in (*REDUCTIONS, *LIBRARY):
                message = f"`{base.name}[...]` needs an argument in brackets"
                self._fault("wrong-kind", message, node.span, inside, f"write `{base.name}[k](x)`")
            else:
                self._scope.report_unknown(base.name, node.span, "a tensor", self._scope.tensors)
            return None
        if len(node.addresses) != len(tensor.indices):
            message = f"`{base.name}` has {_count(len(tensor.indices))}; {len(node.addresses)} given"
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

    def _address(self, node: syntax.Expression, axis: str, tensor: str, inside: _Environment) -> Address | None:
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

    def _value_address(self, value: Resolved, span: Span, inside: _Environment) -> Address | None:
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

    def _call(self, node: syntax.CallSyntax, inside: _Environment) -> Resolved | None:
        match node.callee:
            case syntax.NameSyntax(name):
                brackets = None
            case syntax.Indexed(syntax.NameSyntax(name), brackets):
                pass
            case _:
                self._fault("wrong-kind", "only functions are called", node.span, inside)
                return None
        if name in inside.parameters:
            self._fault("wrong-kind", f"`{name}` is a parameter, a value; it cannot be called", node.span, inside)
            return None
        if name not in ("layer_norm", "rms_norm"):
            for keyword in node.keywords:
                message = f"`{name}` has no argument `{keyword.name.text}`"
                self._fault("argument", message, keyword.name.span, inside)
        if name in REDUCTIONS or name in LIBRARY:
            return self._reduction(name, brackets, node, inside)
        if name in self._functions:
            return self._expand(self._functions[name], brackets, node, inside)
        if name == "size" or name in self._named_functions:
            if brackets is not None:
                hint = f"write `{name}(...)`"
                self._fault("wrong-kind", f"`{name}` takes no index brackets", node.span, inside, hint)
                return None
            return self._size(node, inside) if name == "size" else self._function(name, node, inside)
        self._uncallable(name, node, inside)
        return None

    def _uncallable(self, name: str, node: syntax.CallSyntax, inside: _Environment) -> None:
        symbols = shown_symbols(self._scope.table)
        if name in self._scope.tensors:
            indices = ", ".join(self._scope.tensors[name].indices)
            hint = f"a tensor is read with square brackets: `{name}[{indices}]`" if indices else ""
            self._fault("wrong-kind", f"`{name}` is a tensor and cannot be called", node.span, inside, hint)
        elif name in symbols:
            hint = f"write it with `{symbols[name]}`"
            self._fault("unknown-name", f"there is no function `{name}`", node.span, inside, hint)
        elif name in self._scope.table.operators or name in self._scope.table.monoids:
            self._fault("level", f"`{name}` belongs to block programs and rules", node.span, inside)
        else:
            candidates = [*REDUCTIONS, *LIBRARY, *self._functions, *self._named_functions, "size"]
            self._scope.report_unknown(name, node.span, "a function", candidates)

    def _size(self, node: syntax.CallSyntax, inside: _Environment) -> Resolved | None:
        match node.arguments:
            case (syntax.NameSyntax(name, span),):
                index = self._index_name(name, inside)
                if index is not None:
                    return Resolved(SizeOf(index, node.span), ElementType.INDEX)
                self._scope.report_unknown(name, span, "an index", self._scope.indices)
            case _:
                self._fault("argument", "`size` takes the name of one index", node.span, inside, "write `size(k)`")
        return None

    def _function(self, name: str, node: syntax.CallSyntax, inside: _Environment) -> Resolved | None:
        operands = [self._resolve(argument, inside) for argument in node.arguments]
        arity = self._scope.table.functions[name].arity
        if len(operands) != arity:
            message = f"`{name}` takes {_arguments(arity)}; {len(operands)} given"
            self._fault("argument", message, node.span, inside)
            return None
        return self._apply(name, operands, node.span, inside)

    def _apply(self, name: str, operands: list[Resolved | None], span: Span, inside: _Environment) -> Resolved | None:
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
        numbers = function.type_rule in ("wider", "float") and name not in ("maximum", "minimum")
        on_bool = ElementType.BOOL in elements and set(elements) <= {ElementType.BOOL, None}
        if numbers and on_bool and not self._is_general:
            self._arithmetic_on_bool(name, span, inside)
            return None
        free = _merged(good)
        depth = 1 + max(operand.depth for operand in good)
        expression = Call(name, tuple(operand.expression for operand in good), span)
        return Resolved(expression, result_element(function, elements), free, depth)

    def _arithmetic_on_bool(self, name: str, span: Span, inside: _Environment) -> None:
        symbol = self._scope.table.functions[name].symbol or name
        hint = "write `where(c, 1, 0)` for a truth value as a number, `and` and `or` to combine truth values"
        self._fault("type", f"`{symbol}` needs a number; this is a truth value", span, inside, hint)

    def _condition(self, value: Resolved, name: str, span: Span, inside: _Environment) -> Resolved | None:
        """A truth value; whole numbers, as masks are often kept, count as true where they are not 0."""
        if value.element is ElementType.BOOL or self._is_general:
            return value
        if value.element is None or value.element in (ElementType.I32, ElementType.INDEX):
            call = Call("not_equal", (value.expression, Literal(0.0)), span)
            return Resolved(call, ElementType.BOOL, value.free, value.depth + 1)
        what = "the first argument of `where`" if name == "where" else f"an operand of `{name}`"
        message = f"{what} is a truth value; this is {value.element}"
        self._fault("type", message, span, inside, "compare it with something: `x != 0`")
        return None

    def _reduction(
        self, name: str, brackets: tuple[syntax.Expression, ...] | None, node: syntax.CallSyntax, inside: _Environment
    ) -> Resolved | None:
        if brackets is None:
            hint = f"write `{name}[k](x)`"
            if name in ("max", "min") and len(node.arguments) > 1:
                hint = f"the larger or smaller of several values is `{name}imum(a, b)`"
            self._fault("argument", f"`{name}` needs the indices it runs over", node.span, inside, hint)
            return None
        indices = self._bound_indices(brackets, inside)
        operands = [self._resolve(argument, inside) for argument in node.arguments]
        if len(operands) != 1:
            hint = "write `eps = ...`" if name in _DEFAULT_EPS and len(operands) == 2 else ""
            self._fault("argument", f"`{name}` takes one argument; {len(operands)} given", node.span, inside, hint)
            return None
        eps = self._eps(name, node, inside)
        operand = operands[0]
        if operand is None or indices is None:
            return None
        outside = {index: span for index, span in operand.free.items() if index not in indices}
        depth = operand.depth + 1
        if name in REDUCTIONS:
            fold = Fold(name, indices, operand.expression, node.span)
            return Resolved(fold, _fold_element(name, operand.element), outside, depth)
        if name in _KEEPS_INDICES:
            spans = [expression.span for expression in brackets]
            outside |= {index: operand.free.get(index, span) for index, span in zip(indices, spans, strict=True)}
        call = LibraryCall(name, indices, operand.expression, eps, node.span)
        return Resolved(call, as_float(operand.element), outside, depth)

    def _eps(self, name: str, node: syntax.CallSyntax, inside: _Environment) -> float | None:
        eps = _DEFAULT_EPS.get(name)
        if eps is None:
            return None
        for position, keyword in enumerate(node.keywords):
            span = keyword.name.span
            if keyword.name.text != "eps":
                self._fault("argument", f"`{name}` has no argument `{keyword.name.text}`", span, inside, "it has `eps`")
                continue
            if position and node.keywords[0].name.text == "eps":
                self._fault("argument", "`eps` is given twice", span, inside)
            value = self._resolve(keyword.value, inside)
            if value is None:
                continue
            if not isinstance(value.expression, Literal) or not 0 <= value.expression.value < float("inf"):
                self._fault("argument", "`eps` is a number, 0 or more", keyword.value.span, inside)
                continue
            eps = value.expression.value
        return eps

    def _expand(
        self, function: Function, brackets: tuple[syntax.Expression, ...] | None, node: syntax.CallSyntax,
        inside: _Environment,
    ) -> Resolved | None:  # fmt: skip
        statement = function.statement
        name = statement.name.text
        arguments = [self._resolve(argument, inside) for argument in node.arguments]
        indices = self._bound_indices(brackets or (), inside)
        declared = Related(statement.name.span, "defined here")
        if len(arguments) != len(statement.parameters):
            message = f"`{name}` takes {_arguments(len(statement.parameters))}; {len(arguments)} given"
            self._fault("argument", message, node.span, inside, "", declared)
            return None
        if indices is None:
            return None
        if len(indices) != len(statement.indices):
            message = f"`{name}` takes {_count(len(statement.indices))} in square brackets; {len(indices)} given"
            self._fault("argument", message, node.span, inside, "", declared)
            return None
        parameters = {word.text: value for word, value in zip(statement.parameters, arguments, strict=True)}
        names = {word.text: index for word, index in zip(statement.indices, indices, strict=True)}
        calls = (Related(node.span, f"in this use of `{name}`"), *inside.calls)
        found = self._resolve(statement.body, _Environment(parameters, names, calls))
        if found is None:
            return None
        # A message about an index of the body helps most at the call.
        argument_free = _merged([value for value in arguments if value is not None])
        return replace(found, free={index: argument_free.get(index, node.span) for index in found.free})


def _merged(operands: list[Resolved]) -> dict[str, Span]:
    free: dict[str, Span] = {}
    for operand in operands:
        for index, span in operand.free.items():
            free.setdefault(index, span)
    return free


def _fold_element(name: str, element: ElementType | None) -> ElementType | None:
    if name == "mean":
        return as_float(element)
    counts = element is ElementType.BOOL and name in ("sum", "prod")
    return ElementType.I32 if counts else element


def _count(number: int) -> str:
    return "no indices" if number == 0 else "1 index" if number == 1 else f"{number} indices"


def _arguments(number: int) -> str:
    return "1 argument" if number == 1 else f"{number} arguments"
