"""Users' `op`s and `monoid`s: from syntax trees to entries of the operator table, or to macros.

An `op` of elementwise operators alone becomes a scalar function, and so an operator; any other is expanded
where it is used. Order in the files does not matter: each is declared after those that it uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from lark import Token, Tree

from bbrewrite.core.elements import Element
from bbrewrite.core.operators import Monoid, OperatorTable, ScalarFunction, TypeRule
from bbrewrite.core.spans import Source
from bbrewrite.core.terms import Apply, Local, Number, Term, walk
from bbrewrite.core.types import result_element
from bbrewrite.lang.diagnostics import Diagnostic, Related, did_you_mean
from bbrewrite.rules.expressions import Expressions, Macro, Vocabulary, substituted
from bbrewrite.rules.syntax import Node, span_of

_SECTIONS = ("state", "identity", "element", "combine", "finish")


@dataclass
class Declarations:
    """Declares what rule files add to a table. `vocabulary` is the result; `faults` what was wrong.

    Of `broken` names the declaration is at fault, so what speaks of them is not read.
    """

    vocabulary: Vocabulary
    faults: list[Diagnostic]
    broken: set[str] = field(default_factory=set[str])
    _trees: dict[str, tuple[Source, Tree[Token]]] = field(default_factory=dict[str, tuple[Source, Tree[Token]]])
    _open: list[str] = field(default_factory=list[str])
    _done: set[str] = field(default_factory=set[str])

    def declare_all(self, trees: list[tuple[Source, Tree[Token]]]) -> None:
        """Declares every `op` and `monoid` of the files."""
        for source, tree in trees:
            self._announce(source, tree)
        places = {name: span_of(source, _name_of(tree)) for name, (source, tree) in self._trees.items()}
        self.vocabulary = replace(self.vocabulary, places={**self.vocabulary.places, **places})
        for name in self._trees:
            self._declare(name)

    def unused(self, rules: list[tuple[Source, Tree[Token]]]) -> Iterator[Diagnostic]:
        """A warning for each declaration that no rule and no other declaration names."""
        used = {name for _, tree in [*self._trees.values(), *rules] for name in names_used(tree)}
        for name, (source, tree) in self._trees.items():
            if name not in used:
                kind = "op" if tree.data == "operator" else "monoid"
                message = f"no rule uses the {kind} `{name}`"
                hint = "a program may; if none does, leave it out"
                yield Diagnostic("unused", message, span_of(source, _name_of(tree)), hint, severity="warning")

    def _announce(self, source: Source, tree: Tree[Token]) -> None:
        token = tree.children[0]
        assert isinstance(token, Token)
        name = str(token)
        span = span_of(source, token)
        if name in self._trees:
            other_source, other = self._trees[name]
            note = Related(span_of(other_source, _name_of(other)), f"`{name}` is first declared here")
            self.faults.append(Diagnostic("name-taken", f"`{name}` is declared twice", span, related=(note,)))
        elif self.vocabulary.meaning(name):
            message = f"`{name}` is already {self.vocabulary.meaning(name)} of the language"
            self.faults.append(Diagnostic("name-taken", message, span))
        else:
            self._trees[name] = (source, tree)

    def _declare(self, name: str) -> None:
        if name in self._done:
            return
        source, tree = self._trees[name]
        if name in self._open:
            message = f"`{name}` is defined by itself; a definition has to end"
            self.faults.append(Diagnostic("recursive-definition", message, span_of(source, _name_of(tree))))
            self._done.add(name)
            self.broken.add(name)
            return
        self._open.append(name)
        for used in sorted(names_used(tree) & self._trees.keys()):
            self._declare(used)
        self._open.pop()
        if name in self._done:
            return
        self._done.add(name)
        faults = len(self.faults)
        is_readable = not names_used(tree) & self.broken
        if is_readable and tree.data == "operator":
            self._operator(source, tree)
        elif is_readable:
            self._monoid(source, tree)
        if not is_readable or len(self.faults) > faults:
            self.broken.add(name)

    def _operator(self, source: Source, tree: Tree[Token]) -> None:
        name, *parameters, body = tree.children
        known: dict[str, Token] = {}
        for parameter in parameters:
            assert isinstance(parameter, Token)
            self._parameter(source, parameter, known)
        reader = Expressions(source, self.vocabulary, self.faults)
        term = reader.term(body)
        self._check_known(reader, (*reader.names.variables, *reader.names.indices), known, f"a parameter of `{name}`")
        names = tuple(known)
        if _is_elementwise(term, self.vocabulary.table) and not reader.names.indices:
            function = user_function(str(name), names, term, self.vocabulary.table)
            self.vocabulary = replace(self.vocabulary, table=self.vocabulary.table.with_function(function))
            return
        macro = Macro(str(name), names, frozenset(reader.names.indices), term)
        self.vocabulary = replace(self.vocabulary, macros={**self.vocabulary.macros, macro.name: macro})

    def _parameter(self, source: Source, parameter: Token, known: dict[str, Token]) -> None:
        if str(parameter) in known:
            note = Related(span_of(source, known[str(parameter)]), "first named here")
            message = f"`{parameter}` is named twice"
            self.faults.append(Diagnostic("name-taken", message, span_of(source, parameter), related=(note,)))
        elif self.vocabulary.meaning(str(parameter)):
            message = f"`{parameter}` is {self.vocabulary.meaning(str(parameter))}; a parameter needs another name"
            self.faults.append(Diagnostic("name-taken", message, span_of(source, parameter)))
        known.setdefault(str(parameter), parameter)

    def _check_known(self, reader: Expressions, names: tuple[str, ...], known: Mapping[str, object], what: str) -> None:
        for name in names:
            if name not in known:
                span = reader.names.variables.get(name) or reader.names.indices[name]
                hint = did_you_mean(name, known) or f"known here: {', '.join(known)}"
                self.faults.append(Diagnostic("unbound-name", f"`{name}` is not {what}", span, hint))

    def _monoid(self, source: Source, tree: Tree[Token]) -> None:
        faults = len(self.faults)
        reader = _MonoidReader(self, source, tree)
        monoid = reader.read()
        if len(self.faults) == faults and monoid is not None:
            self.vocabulary = replace(self.vocabulary, table=self.vocabulary.table.with_monoid(monoid))

    def names(self, source: Source, tokens: list[Node]) -> tuple[str, ...]:
        """Names that a section introduces, each once and none taken."""
        known: dict[str, Token] = {}
        for token in tokens:
            assert isinstance(token, Token)
            self._parameter(source, token, known)
        return tuple(str(token) for token in tokens)

    def bodies(self, source: Source, nodes: list[Node], known: tuple[str, ...], lets: Node | None) -> tuple[Term, ...]:
        """Expressions over known names and what `let` adds to them."""
        values: dict[str, Term] = {}
        for binding in lets.children if isinstance(lets, Tree) else ():
            assert isinstance(binding, Tree)
            name, body = binding.children
            if str(name) in (*known, *values):
                message = f"`{name}` already has a meaning in this monoid"
                self.faults.append(Diagnostic("name-taken", message, span_of(source, name)))
            (term,) = self._bodies(source, [body], (*known, *values))
            values[str(name)] = substituted(term, values)
        return tuple(substituted(term, values) for term in self._bodies(source, nodes, (*known, *values)))

    def _bodies(self, source: Source, nodes: list[Node], known: tuple[str, ...]) -> tuple[Term, ...]:
        reader = Expressions(source, self.vocabulary, self.faults)
        terms = tuple(reader.term(node) for node in nodes)
        self._check_known(reader, tuple(reader.names.variables), dict.fromkeys(known), "known here")
        for name, span in reader.names.indices.items():
            self.faults.append(Diagnostic("index-in-monoid", f"a reduction speaks of no index: `{name}`", span))
        return terms


class _MonoidReader:
    """Reads one `monoid`, section by section."""

    def __init__(self, declarations: Declarations, source: Source, tree: Tree[Token]) -> None:
        self._declarations = declarations
        self._source = source
        self._tree = tree
        self._name = _name_of(tree)

    def read(self) -> Monoid | None:
        """The monoid, or None where a fault was noted."""
        sections = self._sections()
        missing = [name for name in _SECTIONS[:4] if name not in sections]
        if missing:
            self._fault(f"the monoid `{self._name}` lacks `{'`, `'.join(missing)}`", self._name)
            return None
        declare = self._declarations
        state = declare.names(self._source, list(sections["state"].children))
        identity = self._identity(sections["identity"], len(state))
        parameters_node, element_node = sections["element"].children
        assert isinstance(parameters_node, Tree)
        assert isinstance(element_node, Tree)
        parameters = declare.names(self._source, list(parameters_node.children))
        element = declare.bodies(self._source, list(element_node.children), parameters, None)
        self._count(len(element), len(state), "element", element_node)
        left_node, right_node, combine_node, lets = sections["combine"].children
        assert isinstance(left_node, Tree)
        assert isinstance(right_node, Tree)
        assert isinstance(combine_node, Tree)
        both = declare.names(self._source, [*left_node.children, *right_node.children])
        left, right = both[: len(left_node.children)], both[len(left_node.children) :]
        self._count(len(left), len(state), "first state of `combine`", left_node)
        self._count(len(right), len(state), "second state of `combine`", right_node)
        combine = declare.bodies(self._source, list(combine_node.children), both, lets)
        self._count(len(combine), len(state), "result of `combine`", combine_node)
        finish: Term = Local(state[0])
        if "finish" in sections:
            (finish,) = declare.bodies(self._source, list(sections["finish"].children), state, None)
        elif len(state) > 1:
            self._fault(f"the monoid `{self._name}` lacks `finish`, which makes one value of its state", self._name)
        return Monoid(str(self._name), state, identity, parameters, element, left, right, combine, finish)

    def _sections(self) -> dict[str, Tree[Token]]:
        found: dict[str, Tree[Token]] = {}
        for section in self._tree.children[1:]:
            assert isinstance(section, Tree)
            if section.data in found:
                self._fault(f"`{section.data}` is given twice", section)
            found.setdefault(str(section.data), section)
        return found

    def _identity(self, section: Tree[Token], count: int) -> tuple[float, ...]:
        reader = Expressions(self._source, self._declarations.vocabulary, self._declarations.faults)
        values: list[float] = []
        for node in section.children:
            term = reader.term(node)
            if isinstance(term, Number):
                values.append(term.value)
            else:
                self._fault("an identity is a number, `inf` or `-inf`", node)
        if len(section.children) != count:
            self._count(len(section.children), count, "identity", section)
        return tuple(values)

    def _count(self, found: int, wanted: int, what: str, node: Node) -> None:
        if found != wanted:
            plural = "s" * (wanted > 1)
            self._fault(f"the state of `{self._name}` has {wanted} component{plural}, the {what} {found}", node)

    def _fault(self, message: str, node: Node) -> None:
        self._declarations.faults.append(Diagnostic("monoid", message, span_of(self._source, node)))


def user_function(name: str, parameters: tuple[str, ...], body: Term, table: OperatorTable) -> ScalarFunction:
    """A scalar function with a body; its type rule and work follow from the body."""
    nodes = [node for node in walk(body) if isinstance(node, Apply)]
    work = sum(table.functions[node.operator].work for node in nodes)
    return ScalarFunction(name, len(parameters), _type_rule(body, table), work, parameters=parameters, body=body)


def _type_rule(body: Term, table: OperatorTable) -> TypeRule:
    """The rule that fits: what the body makes of integers tells."""
    found = _element(body, table)
    if found is Element.BOOL:
        return "bool"
    return "float" if found is not None and found.is_float else "wider"


def _element(term: Term, table: OperatorTable) -> Element | None:
    match term:
        case Local():
            return Element.I32
        case Apply(operator, operands):
            elements = tuple(_element(operand, table) for operand in operands)
            return result_element(table.functions[operator], elements)
        case Number(value):
            return None if value.is_integer() else Element.NUMBER
        case _:
            raise AssertionError(term)


def _is_elementwise(term: Term, table: OperatorTable) -> bool:
    return all(
        isinstance(node, Number | Local) or (isinstance(node, Apply) and table.operators[node.operator].is_elementwise)
        for node in walk(term)
    )


def _name_of(tree: Tree[Token]) -> Token:
    token = tree.children[0]
    assert isinstance(token, Token)
    return token


def names_used(tree: Tree[Token]) -> set[str]:
    """Every word of a declaration but its own name."""
    nodes = [node for node in tree.children[1:] if isinstance(node, Tree)]
    return {str(token) for node in nodes for token in node.scan_values(lambda value: isinstance(value, Token))}
