"""Resolves and checks expressions of the array level.

Every expression is resolved to its meaning, its element type and the indices on which it depends. Users' `def`s
are expanded here: arguments are resolved where they are written, so no name of the caller is captured by a parameter
of the `def`. Indices are the program's loops: a reduction in a `def` binds its index in the arguments too, as the
reductions of the library do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bbrewrite.core.arrays import Fold, LibraryCall, Literal, SizeOf
from bbrewrite.core.elements import Element as ElementType
from bbrewrite.core.elements import as_float
from bbrewrite.core.spans import Span
from bbrewrite.lang import syntax
from bbrewrite.lang.array_types import fold_element
from bbrewrite.lang.array_values import Environment, Resolved, Values, merged
from bbrewrite.lang.diagnostics import Related, counted
from bbrewrite.lang.scope import LIBRARY, REDUCTIONS, STRUCTURE, Scope, shown_symbols

_DEFAULT_EPS = {"layer_norm": 1e-5, "rms_norm": 1e-5}
_KEEPS_INDICES = ("softmax", "log_softmax", "layer_norm", "rms_norm", "l2_norm")


@dataclass(frozen=True)
class Function:
    """A user's `def` whose body is known to be right."""

    statement: syntax.DefStatement


class Expressions(Values):
    """Resolves expressions in a scope, and holds the `def`s seen so far."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self._functions: dict[str, Function] = {}

    def resolve(self, node: syntax.Expression) -> Resolved | None:
        """The meaning of an expression of the program."""
        return self._resolve(node, Environment())

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
        scope.defining = statement.name.text
        # An index parameter stands for any index: while checking, for one whose extent nothing is known about.
        stand_ins = {word.text: f"{word.text} of {statement.name.text}" for word in statement.indices}
        anything = Resolved(Literal(1.0), None)
        parameters = {word.text: anything for word in statement.parameters}
        self._stand_ins = frozenset(stand_ins.values())
        self._is_general = True
        self._resolve(statement.body, Environment(parameters, stand_ins))
        self._stand_ins = frozenset[str]()
        self._is_general = False
        # Entered only now, so that its own name in its body is a use before declaration: recursion has no meaning.
        if scope.declare(statement.name, "def"):
            if len(scope.faults) == before:
                self._functions[statement.name.text] = Function(statement)
            else:
                scope.broken.add(statement.name.text)

    def _bound_indices(self, nodes: tuple[syntax.Expression, ...], inside: Environment) -> tuple[str, ...] | None:
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

    def _call(self, node: syntax.CallSyntax, inside: Environment) -> Resolved | None:
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
        if name not in _DEFAULT_EPS and node.keywords:
            keyword = node.keywords[0].name
            message = f"`{name}` has no argument `{keyword.text}`"
            self._fault("argument", message, keyword.span, inside, "to compare, write `==`")
            return None
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

    def _uncallable(self, name: str, node: syntax.CallSyntax, inside: Environment) -> None:
        symbols = shown_symbols(self._scope.table)
        if name in self._scope.tensors:
            indices = ", ".join(self._scope.tensors[name].indices)
            hint = f"a tensor is read with square brackets: `{name}[{indices}]`" if indices else ""
            self._fault("wrong-kind", f"`{name}` is a tensor and cannot be called", node.span, inside, hint)
        elif name in symbols:
            hint = f"write it with `{symbols[name]}`"
            self._fault("unknown-name", f"there is no function `{name}`", node.span, inside, hint)
        elif name in (*STRUCTURE, *self._scope.table.operators, *self._scope.table.monoids):
            is_reduction = name in ("map", "reduce") or name in self._scope.table.monoids
            hint = f"an array program reduces by {', '.join(REDUCTIONS)}: `sum[k](x)`" if is_reduction else ""
            self._fault("level", f"`{name}` belongs to block programs and rules", node.span, inside, hint)
        else:
            candidates = [*REDUCTIONS, *LIBRARY, *self._functions, *self._named_functions, "size"]
            self._scope.report_unknown(name, node.span, "a function", candidates)

    def _size(self, node: syntax.CallSyntax, inside: Environment) -> Resolved | None:
        match node.arguments:
            case (syntax.NameSyntax(name, span),):
                index = self._index_name(name, inside)
                if index is not None:
                    return Resolved(SizeOf(index, node.span), ElementType.INDEX)
                self._scope.report_unknown(name, span, "an index", self._scope.indices)
            case _:
                self._fault("argument", "`size` takes the name of one index", node.span, inside, "write `size(k)`")
        return None

    def _function(self, name: str, node: syntax.CallSyntax, inside: Environment) -> Resolved | None:
        operands = [self._resolve(argument, inside) for argument in node.arguments]
        arity = self._scope.table.functions[name].arity
        if len(operands) != arity:
            message = f"`{name}` takes {counted(arity, 'argument')}; {len(operands)} given"
            self._fault("argument", message, node.span, inside)
            return None
        return self._apply(name, operands, node.span, inside)

    def _reduction(
        self, name: str, brackets: tuple[syntax.Expression, ...] | None, node: syntax.CallSyntax, inside: Environment
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
        depth, size = operand.depth + 1, operand.size + 1
        if name in REDUCTIONS:
            fold = Fold(name, indices, operand.expression, node.span)
            return Resolved(fold, fold_element(name, operand.element), outside, depth, size)
        if name in _KEEPS_INDICES:
            spans = [expression.span for expression in brackets]
            outside |= {index: operand.free.get(index, span) for index, span in zip(indices, spans, strict=True)}
        call = LibraryCall(name, indices, operand.expression, eps, node.span)
        return Resolved(call, as_float(operand.element), outside, depth, size)

    def _eps(self, name: str, node: syntax.CallSyntax, inside: Environment) -> float | None:
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
        inside: Environment,
    ) -> Resolved | None:  # fmt: skip
        statement = function.statement
        name = statement.name.text
        arguments = [self._resolve(argument, inside) for argument in node.arguments]
        indices = self._bound_indices(brackets or (), inside)
        declared = Related(statement.name.span, "defined here")
        if len(arguments) != len(statement.parameters):
            message = f"`{name}` takes {counted(len(statement.parameters), 'argument')}; {len(arguments)} given"
            self._fault("argument", message, node.span, inside, "", declared)
            return None
        if indices is None:
            return None
        if len(indices) != len(statement.indices):
            takes = counted(len(statement.indices), "index", "indices")
            message = f"`{name}` takes {takes} in square brackets; {len(indices)} given"
            self._fault("argument", message, node.span, inside, "", declared)
            return None
        parameters = {word.text: value for word, value in zip(statement.parameters, arguments, strict=True)}
        names = {word.text: index for word, index in zip(statement.indices, indices, strict=True)}
        calls = (Related(node.span, f"in this use of `{name}`"), *inside.calls)
        found = self._resolve(statement.body, Environment(parameters, names, calls))
        if found is None:
            return None
        # A message about an index of the body helps most at the call.
        argument_free = merged([value for value in arguments if value is not None])
        return replace(found, free={index: argument_free.get(index, node.span) for index in found.free})
