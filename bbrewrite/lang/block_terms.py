"""From expressions of the block level to terms: names resolved, loops scoped, numbers of operands checked.

Types are checked afterwards by `core.types`; each term remembers where it was written.
"""

from __future__ import annotations

from bbrewrite.core.addresses import Address, index_address, make_address
from bbrewrite.core.spans import Span
from bbrewrite.core.terms import (
    Apply,
    At,
    Cast,
    Component,
    IndexValue,
    Loaded,
    Map,
    Number,
    Pair,
    Read,
    Reduce,
    Size,
    Stored,
    Term,
)
from bbrewrite.lang import syntax
from bbrewrite.lang.address_syntax import AddressError, parse_address
from bbrewrite.lang.diagnostics import counted, did_you_mean
from bbrewrite.lang.functions import function_of
from bbrewrite.lang.scope import LIBRARY, REDUCTIONS, STORED_ELEMENTS, Scope, shown_symbols

_STRUCTURE = {"pair": 2, "first": 1, "second": 1, "stored": 1, "loaded": 1}


class BlockTerms:
    """Builds terms in a scope. Results of None stand for faults that have been reported.

    `spans` tells where each term was written first.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self.spans: dict[Term, Span] = {}

    def build(self, node: syntax.Expression, loops: tuple[str, ...] = ()) -> Term | None:
        """The term of an expression inside these loops, outermost first."""
        term = self._build(node, loops)
        if term is not None:
            self.spans.setdefault(term, node.span)
        return term

    def _build(self, node: syntax.Expression, loops: tuple[str, ...]) -> Term | None:
        match node:
            case syntax.NumberSyntax(value):
                self._scope.check_number(node)
                return Number(value)
            case syntax.NameSyntax(name, span):
                return self._name(name, span, loops)
            case syntax.Operation():
                return self._apply(function_of(node), node.operands, (), loops)
            case syntax.Indexed():
                return self._indexed(node, loops)
            case syntax.CallSyntax():
                return self._call(node, loops)
            case syntax.MapSyntax(index, body):
                if not self._scope.index(index):
                    return None
                inner = self.build(body, (*loops, index.text))
                return None if inner is None else Map(index.text, inner)
            case syntax.ReduceSyntax():
                return self._reduce(node, loops)

    def _all(self, nodes: tuple[syntax.Expression, ...], loops: tuple[str, ...]) -> tuple[Term, ...] | None:
        terms = [self.build(node, loops) for node in nodes]
        good = tuple(term for term in terms if term is not None)
        return good if len(good) == len(terms) else None

    def _name(self, name: str, span: Span, loops: tuple[str, ...]) -> Term | None:
        if name in self._scope.indices:
            return IndexValue(name) if self._in_loop(name, span, loops) else None
        if name in self._scope.lets:
            named = self._scope.lets[name]
            return named if all(self._in_loop(index, span, loops) for index in sorted(named.free)) else None
        tensor = self._scope.tensors.get(name)
        if tensor is None:
            candidates = [*self._scope.tensors, *self._scope.indices, *self._scope.lets]
            self._scope.report_unknown(name, span, "a tensor or index", candidates)
            return None
        if tensor.indices:
            hint = f"write `{name}[{', '.join(tensor.indices)}]`"
            self._scope.report("rank", f"`{name}` is a list; name its indices", span, hint)
            return None
        return Read(name)

    def _in_loop(self, name: str, span: Span, loops: tuple[str, ...]) -> bool:
        if name in loops:
            return True
        hint = f"put it under `map {name}:` or `reduce sum {name}:`"
        self._scope.report("loose-index", f"no loop around this runs over `{name}`", span, hint)
        return False

    def _indexed(self, node: syntax.Indexed, loops: tuple[str, ...]) -> Term | None:
        addresses: list[Address] = []
        for expression in node.addresses:
            address = self._address(expression, loops)
            if address is None:
                return None
            addresses.append(address)
        if isinstance(node.base, syntax.NameSyntax):
            return self._read(node.base.name, node, addresses)
        items = self.build(node.base, loops)
        for address in addresses:
            items = None if items is None else At(items, address)
            if items is not None:
                self.spans.setdefault(items, node.span)
        return items

    def _read(self, name: str, node: syntax.Indexed, addresses: list[Address]) -> Term | None:
        tensor = self._scope.tensors.get(name)
        if tensor is None:
            self._scope.report_unknown(name, node.span, "a tensor", self._scope.tensors)
            return None
        if len(addresses) != len(tensor.indices):
            message = f"`{name}` has {counted(len(tensor.indices), 'index', 'indices')}; {len(addresses)} given"
            hint = f"write `{name}[{', '.join(tensor.indices)}]`" if tensor.indices else f"write `{name}`"
            self._scope.report("rank", message, node.span, hint)
            return None
        for axis, address, expression in zip(tensor.indices, addresses, node.addresses, strict=True):
            plain = address.plain_index
            if plain is not None and not self._scope.check_extents(plain, axis, name, expression.span):
                return None
        return Read(name, tuple(addresses))

    def _address(self, node: syntax.Expression, loops: tuple[str, ...]) -> Address | None:
        def resolve(part: syntax.Expression) -> Address | None:
            match self.build(part, loops):
                case IndexValue(index):
                    return index_address(index)
                case Size(index):
                    return make_address([], [(index, 1)])
                case None:
                    return None
                case _:
                    message = "a list is addressed by indices and numbers, not by computed values"
                    self._scope.report("address", message, part.span)
                    return None

        try:
            return parse_address(node, resolve)
        except AddressError as error:
            if error.message:
                self._scope.report("address", error.message, error.span, error.hint)
            return None

    def _reduce(self, node: syntax.ReduceSyntax, loops: tuple[str, ...]) -> Term | None:
        monoid = self._scope.table.monoids.get(node.monoid.text)
        if monoid is None:
            names = self._scope.table.monoids
            hint = did_you_mean(node.monoid.text, names) or f"the monoids are {', '.join(names)}"
            self._scope.report("unknown-name", f"there is no monoid `{node.monoid.text}`", node.monoid.span, hint)
        if not self._scope.index(node.index):
            return None
        operands = self._all(node.operands, (*loops, node.index.text))
        if monoid is None or operands is None:
            return None
        if len(operands) != len(monoid.parameters):
            message = f"`{monoid.name}` takes {counted(len(monoid.parameters), 'operand')}; {len(operands)} given"
            self._scope.report("argument", message, node.span)
            return None
        return Reduce(monoid.name, node.index.text, operands)

    def _call(self, node: syntax.CallSyntax, loops: tuple[str, ...]) -> Term | None:
        if not isinstance(node.callee, syntax.NameSyntax):
            hint = ""
            match node.callee:
                case syntax.Indexed(syntax.NameSyntax(name)) if name in (*REDUCTIONS, *LIBRARY):
                    hint = f"`{name}[...]` belongs to array programs"
                case _:
                    pass
            self._scope.report("wrong-kind", "only operators are called", node.span, hint)
            return None
        name = node.callee.name
        for keyword in node.keywords:
            message = f"`{name}` has no argument `{keyword.name.text}`"
            self._scope.report("argument", message, keyword.name.span)
        if name == "size":
            return self._size(node)
        if name in _STRUCTURE or name in STORED_ELEMENTS:
            return self._structure(name, node, loops)
        operator = self._scope.table.operators.get(name)
        if operator is None or name in shown_symbols(self._scope.table):
            self._unknown_operator(name, node.span)
            return None
        given = len(node.arguments)
        if given != operator.arity + operator.index_count:
            takes = counted(operator.arity, "operand") + (" and an index" if operator.index_count else "")
            self._scope.report("argument", f"`{name}` takes {takes}; {given} given", node.span)
            return None
        indices: list[str] = []
        for argument in node.arguments[operator.arity :]:
            if not isinstance(argument, syntax.NameSyntax) or argument.name not in self._scope.indices:
                self._scope.report("argument", f"the last argument of `{name}` is an index", argument.span)
                return None
            if not self._in_loop(argument.name, argument.span, loops):
                return None
            indices.append(argument.name)
        return self._apply(name, node.arguments[: operator.arity], tuple(indices), loops)

    def _apply(
        self, name: str, nodes: tuple[syntax.Expression, ...], indices: tuple[str, ...], loops: tuple[str, ...]
    ) -> Term | None:
        operands = self._all(nodes, loops)
        return None if operands is None else Apply(name, operands, indices)

    def _size(self, node: syntax.CallSyntax) -> Term | None:
        match node.arguments:
            case (syntax.NameSyntax(name, span),):
                return Size(name) if self._scope.index(syntax.Word(name, span)) else None
            case _:
                self._scope.report("argument", "`size` takes the name of one index", node.span, "write `size(k)`")
                return None

    def _structure(self, name: str, node: syntax.CallSyntax, loops: tuple[str, ...]) -> Term | None:
        operands = self._all(node.arguments, loops)
        if operands is None:
            return None
        arity = _STRUCTURE.get(name, 1)
        if len(operands) != arity:
            message = f"`{name}` takes {counted(arity, 'operand')}; {len(operands)} given"
            self._scope.report("argument", message, node.span)
            return None
        match name:
            case "pair":
                return Pair(*operands)
            case "first" | "second":
                return Component(0 if name == "first" else 1, operands[0])
            case "stored":
                return Stored(operands[0])
            case "loaded":
                return Loaded(operands[0])
            case _:
                return Cast(name, operands[0])

    def _unknown_operator(self, name: str, span: Span) -> None:
        symbols = shown_symbols(self._scope.table)
        if name in symbols:
            hint = f"write it with `{symbols[name]}`"
            self._scope.report("unknown-name", f"there is no operator `{name}`", span, hint)
        elif name in REDUCTIONS or name in LIBRARY:
            hint = "a block program writes its steps: `reduce sum k: ...`"
            self._scope.report("level", f"`{name}` belongs to array programs", span, hint)
        else:
            candidates = [*self._scope.table.operators, *_STRUCTURE, *STORED_ELEMENTS, "size"]
            self._scope.report_unknown(name, span, "an operator", candidates)
