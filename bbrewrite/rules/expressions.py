"""From syntax trees of expressions to terms: the part that rules, `op`s and `monoid`s share.

Names in index positions are indices, other names are variables; which of them are known is for the caller to
judge, from `Names`. Faults are collected, and a blank stands for what could not be understood.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from lark import Token, Tree

from bbrewrite.core.addresses import index_address
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.spans import Source, Span
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
    rewrite_bottom_up,
)
from bbrewrite.lang.diagnostics import Diagnostic, Related, did_you_mean
from bbrewrite.rules.kinds import Use
from bbrewrite.rules.rules import FACTS
from bbrewrite.rules.syntax import Node, span_of

BLANK = Local("")
# Structural operators and how they are written; the number of arguments follows from the form.
STRUCTURAL = {
    "at": "at(x, i)",
    "map": "map(i, x)",
    "reduce": "reduce(sum, i, x)",
    "pair": "pair(a, b)",
    "first": "first(p)",
    "second": "second(p)",
    "size": "size(i)",
    "cast": "cast(x)",
    "stored": "stored(x)",
    "loaded": "loaded(x)",
}
_KINDS = ("scalar", "vector", "matrix")
_ARITY = {"at": 2, "map": 2, "pair": 2, "first": 1, "second": 1, "size": 1, "cast": 1, "stored": 1, "loaded": 1}


@dataclass(frozen=True)
class Macro:
    """An `op` with structured operators: expanded where it is used. `indices` are the parameters that are indices."""

    name: str
    parameters: tuple[str, ...]
    indices: frozenset[str]
    body: Term


@dataclass
class Names:
    """Variables and indices of one scope, each with the place where it was first seen."""

    variables: dict[str, Span] = field(default_factory=dict[str, Span])
    indices: dict[str, Span] = field(default_factory=dict[str, Span])


@dataclass(frozen=True)
class Vocabulary:
    """What names mean: the operator table and the expanded `op`s. `places` are where users declared theirs."""

    table: OperatorTable
    macros: Mapping[str, Macro]
    places: Mapping[str, Span]

    def meaning(self, name: str) -> str:
        """What a taken name is, or "" for a free one."""
        if name in STRUCTURAL or name in self.table.operators or name in self.macros or name == "inf":
            return "an operator" if name != "inf" else "a number"
        return "a reduction" if name in self.table.monoids else ""

    def written(self, name: str) -> str:
        """How an operator or a reduction is used: `row_scale(matrix, vector)`; "" for what is neither."""
        if name in STRUCTURAL:
            return STRUCTURAL[name]
        if name in self.macros:
            return f"{name}({', '.join(self.macros[name].parameters)})"
        if name in self.table.monoids:
            return f"reduce({name}, i, {', '.join(self.table.monoids[name].parameters)})"
        operator = self.table.operators.get(name)
        if operator is None:
            return ""
        parameters = self.table.functions[operator.function].parameters if operator.is_elementwise else ()
        letters = operator.signatures[0].operands
        kinds = parameters or ("x", "y", "z")[: len(letters)]
        if not operator.is_elementwise:
            kinds = tuple(_KINDS[len(axes)] for axes in letters)
        return f"{name}({', '.join((*kinds, *'ij'[: operator.index_count]))})"

    @property
    def operator_names(self) -> list[str]:
        return sorted({*STRUCTURAL, *self.table.operators, *self.macros})


class Expressions:
    """Reads the expressions of one scope.

    `names` grows with the names that are seen, `uses` with the places of operands, `faults` with what is wrong;
    `told` are taken names of which was told already, in other scopes of one rule.
    """

    def __init__(
        self, source: Source, vocabulary: Vocabulary, faults: list[Diagnostic], told: set[str] | None = None
    ) -> None:
        self.names = Names()
        self.uses: list[Use] = []
        self._told = set[str]() if told is None else told
        self._source = source
        self._vocabulary = vocabulary
        self._faults = faults

    def span(self, node: Node) -> Span:
        return span_of(self._source, node)

    def fault(self, code: str, message: str, node: Node, hint: str = "", related: tuple[Related, ...] = ()) -> Term:
        """Notes a fault; its value stands in for the term."""
        self._faults.append(Diagnostic(code, message, self.span(node), hint, related))
        return BLANK

    def term(self, node: Node) -> Term:
        """The term that a syntax tree spells."""
        assert isinstance(node, Tree)
        match node.data:
            case "number":
                return Number(float(str(node.children[0])))
            case "name":
                return self._name(_token(node.children[0]))
            case "infix":
                left, symbol, right = node.children
                function = self._by_symbol(str(symbol), 2)
                return self._built(Apply(function, (self.term(left), self.term(right))), [left, right])
            case "prefix":
                symbol, operand = node.children
                value = self.term(operand)
                if symbol == "-" and isinstance(value, Number):
                    return Number(-value.value)
                return self._built(Apply(self._by_symbol(str(symbol), 1), (value,)), [operand])
            case "element_of":
                items, *indices = node.children
                term = self.term(items)
                for index in indices:
                    term = At(term, index_address(self._index_token(_token(index))))
                return term
            case "call":
                name, *operands = cast("list[Node | None]", node.children)  # None stands for no operands
                return self._call(_token(name), [operand for operand in operands if operand is not None], node)
            case _:
                raise AssertionError(node.data)

    def index(self, node: Node) -> str:
        """The index that a node names."""
        if isinstance(node, Tree) and node.data == "name":
            return self._index_token(_token(node.children[0]))
        self.fault("index-expected", "an index belongs here: a plain name", node)
        return ""

    def _built(self, term: Term, operands: Sequence[Node]) -> Term:
        """The term, once the places of its operands are noted."""
        self.uses += [Use(term, position, self.span(node)) for position, node in enumerate(operands)]
        return term

    def _name(self, token: Token) -> Term:
        name = str(token)
        if name == "inf":
            return Number(math.inf)
        if not self._is_free(token):
            return BLANK
        if name in self.names.indices:
            note = Related(self.names.indices[name], f"`{name}` is an index here")
            return self.fault("index-as-value", f"`{name}` is an index, a value belongs here", token, "", (note,))
        self.names.variables.setdefault(name, self.span(token))
        return Local(name)

    def _index_token(self, token: Token) -> str:
        name = str(token)
        if not self._is_free(token):
            return ""
        if name in self.names.variables:
            note = Related(self.names.variables[name], f"`{name}` stands for a value here")
            self.fault("value-as-index", f"`{name}` stands for a value, an index belongs here", token, "", (note,))
        self.names.indices.setdefault(name, self.span(token))
        return name

    def _is_free(self, token: Token) -> bool:
        """Whether a name may be a variable or an index."""
        name = str(token)
        meaning = self._vocabulary.meaning(name)
        if meaning:
            place = self._vocabulary.places.get(name)
            notes = (Related(place, f"`{name}` is declared here"),) if place is not None else ()
            message = f"`{name}` is {meaning}{'' if notes else ' of the language'}; a variable needs another name"
            hint = self._vocabulary.written(name)
            if name not in self._told:
                self.fault("name-taken", message, token, f"it is written {hint}" if hint else "", notes)
            self._told.add(name)
            return False
        if not name[0].islower():
            self.fault("variable-case", f"a variable begins with a lower-case letter: `{name}`", token)
            return False
        return True

    def _by_symbol(self, symbol: str, arity: int) -> str:
        functions = self._vocabulary.table.functions.values()
        return next(f.name for f in functions if f.symbol == symbol and f.arity == arity)

    def _call(self, name: Token, operands: list[Node], node: Node) -> Term:
        word = str(name)
        operator = self._vocabulary.table.operators.get(word)
        if word in STRUCTURAL:
            return self._structural(name, operands, node)
        if operator is not None:
            if not self._has_arity(name, operands, operator.arity + operator.index_count, node):
                return BLANK
            written = operands[: operator.arity]
            values = tuple(self.term(operand) for operand in written)
            indices = tuple(self.index(operand) for operand in operands[operator.arity :])
            return self._built(Apply(word, values, indices), written)
        if word in self._vocabulary.macros:
            return self._expanded(self._vocabulary.macros[word], name, operands, node)
        if word in self._vocabulary.table.monoids:
            hint = f"write reduce({word}, i, x) over the blocks of an index"
            if f"row_{word}" in self._vocabulary.table.operators:
                hint += f", or row_{word}(x) inside a block"
            return self.fault("reduction-as-operator", f"`{word}` is a reduction, not an operator", name, hint)
        if word in (*FACTS, "free", "siblings"):
            return self.fault("condition-as-value", f"`{word}` is a condition; it belongs after `where`", name)
        hint = did_you_mean(word, self._vocabulary.operator_names)
        return self.fault("unknown-operator", f"there is no operator `{word}`", name, hint)

    def _has_arity(self, name: Token, operands: list[Node], arity: int, node: Node) -> bool:
        if len(operands) == arity:
            return True
        takes = "no operands" if arity == 0 else f"{arity} operand{'s' * (arity > 1)}"
        given = len(operands) or "none"
        hint = f"it is written {self._vocabulary.written(str(name))}"
        self.fault("wrong-arity", f"`{name}` takes {takes}, {given} given", node, hint)
        return False

    def _structural(self, name: Token, operands: list[Node], node: Node) -> Term:
        word = str(name)
        if word == "reduce":
            return self._reduce(name, operands, node)
        if not self._has_arity(name, operands, _ARITY[word], node):
            return BLANK
        if word == "size":
            return Size(self.index(operands[0]))
        written = operands[1:] if word == "map" else operands[: _ARITY[word] - (word == "at")]
        index = self.index(operands[0]) if word == "map" else ""
        values = [self.term(operand) for operand in written]
        term: Term
        match word:
            case "at":
                term = At(values[0], index_address(self.index(operands[1])))
            case "map":
                term = Map(index, values[0])
            case "pair":
                term = Pair(values[0], values[1])
            case "first" | "second":
                term = Component(int(word == "second"), values[0])
            case "cast":
                term = Cast("", values[0])
            case "stored":
                term = Stored(values[0])
            case _:
                term = Loaded(values[0])
        return self._built(term, written)

    def _reduce(self, name: Token, operands: list[Node], node: Node) -> Term:
        if len(operands) < 3:
            self._has_arity(name, operands, 3, node)
            return BLANK
        first = operands[0]
        monoids = self._vocabulary.table.monoids
        if not (isinstance(first, Tree) and first.data == "name" and str(first.children[0]) in monoids):
            word = str(first.children[0]) if isinstance(first, Tree) and first.data == "name" else ""
            message = f"there is no reduction `{word}`" if word else "the name of a reduction belongs here"
            near = did_you_mean(word, monoids)
            hint = f"{near + ' ' if near else ''}there are {', '.join(sorted(monoids))}"
            return self.fault("unknown-reduction", message, first, hint)
        monoid = monoids[str(first.children[0])]
        values = operands[2:]
        if len(values) != len(monoid.parameters):
            form = f"reduce({monoid.name}, i, {', '.join(monoid.parameters)})"
            wanted, hint = len(monoid.parameters) + 2, f"it is written {form}"
            message = f"`reduce({monoid.name}, …)` takes {wanted} operands, {len(operands)} given"
            return self.fault("wrong-arity", message, node, hint)
        index = self.index(operands[1])
        return self._built(Reduce(monoid.name, index, tuple(self.term(value) for value in values)), values)

    def _expanded(self, macro: Macro, name: Token, operands: list[Node], node: Node) -> Term:
        if not self._has_arity(name, operands, len(macro.parameters), node):
            return BLANK
        values: dict[str, Term] = {}
        indices: dict[str, str] = {}
        for parameter, operand in zip(macro.parameters, operands, strict=True):
            if parameter in macro.indices:
                indices[parameter] = self.index(operand)
            else:
                values[parameter] = self.term(operand)
        return substituted(macro.body, values, indices)


def substituted(term: Term, values: Mapping[str, Term], indices: Mapping[str, str] | None = None) -> Term:
    """The term with variables, and indices wherever they stand, replaced."""
    names = indices or {}

    def change(node: Term) -> Term:
        match node:
            case Local(name):
                return values.get(name, node)
            case Size(index):
                return Size(names.get(index, index))
            case Map(index, body):
                return Map(names.get(index, index), body)
            case Reduce(monoid, index, operands):
                return Reduce(monoid, names.get(index, index), operands)
            case At(items, address):
                return At(items, address.renamed(names))
            case Apply(operator, operands, attributes) if attributes:
                return Apply(operator, operands, tuple(names.get(index, index) for index in attributes))
            case _:
                return node

    return rewrite_bottom_up(term, change)


def _token(node: object) -> Token:
    assert isinstance(node, Token)
    return node
