"""From syntax trees of rules to checked rules: every name is bound, every attribute known, every name used once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from lark import Token, Tree

from bbrewrite.core.spans import Source, Span
from bbrewrite.core.terms import Apply, Cast, Local, Number, Size, Term, walk
from bbrewrite.lang.diagnostics import Diagnostic, Related, did_you_mean
from bbrewrite.rules.expressions import Expressions, Vocabulary, substituted
from bbrewrite.rules.kinds import Use, kind_fault
from bbrewrite.rules.rules import (
    FACTS,
    PHASES,
    Comparison,
    Condition,
    Fact,
    IsConst,
    IsScalar,
    NotFree,
    Rule,
    RuleTest,
    Siblings,
)
from bbrewrite.rules.syntax import Node, documentation_above, span_of

_ATTRIBUTES = ("@phase(NAME)", '@fast_math("why")')
_CONDITIONS = (
    "`i not in free(c)`, `a is const`, `a is scalar`, a comparison of numbers and extents, "
    + ", ".join(f"`{fact}(x)`" for fact in FACTS)
    + ", `siblings(x, y)`"
)
_COMPARED = ("add", "subtract", "multiply", "divide", "negate")

type Named = tuple[tuple[str, Term], ...]


def check_rules(
    trees: list[tuple[Source, Tree[Token]]], vocabulary: Vocabulary, faults: list[Diagnostic]
) -> tuple[Rule, ...]:
    """The rules; what is wrong with them is added to `faults`."""
    rules: list[Rule] = []
    seen: dict[str, Span] = {}
    for source, tree in trees:
        rule = _RuleReader(source, tree, vocabulary, faults).read()
        if rule.name in seen:
            note = Related(seen[rule.name], f"`{rule.name}` is first declared here")
            message = f"there are two rules named `{rule.name}`"
            faults.append(Diagnostic("duplicate-rule", message, rule.span, related=(note,)))
        seen.setdefault(rule.name, rule.span)
        rules.append(rule)
    return tuple(rules)


@dataclass
class _Attributes:
    phase: str = "fuse"
    fast_math: str | None = None


class _RuleReader:
    """Reads one rule."""

    def __init__(self, source: Source, tree: Tree[Token], vocabulary: Vocabulary, faults: list[Diagnostic]) -> None:
        self._source = source
        self._tree = tree
        self._vocabulary = vocabulary
        self._faults = faults
        self._left_is_known = True

    def read(self) -> Rule:
        attributes = [node for node in self._tree.children if isinstance(node, Tree) and node.data == "attribute"]
        name, meaning, body, *clauses = self._tree.children[len(attributes) :]
        assert isinstance(name, Token)
        assert isinstance(body, Tree)
        first = attributes[0].meta.line if attributes else name.line or 1
        settings = self._attributes(attributes)
        both_ways = any(isinstance(node, Token) and node.type == "BOTH_WAYS" for node in body.children)

        faults = len(self._faults)
        left = self._reader()
        matches = self._matches(left, body)
        self._left_is_known = len(self._faults) == faults
        right = self._reader()
        lets = self._lets(right, clauses, left)
        rewrites = self._rewrites(right, body, lets, matches)
        self._check_bound(right, left, extra=(*lets, *(name for name, _ in matches)), side="left")
        self._check_casts(rewrites, body)
        if both_ways:
            self._check_bound(left, right, extra=(), side="right")
        conditions = self._conditions(left, matches, clauses, lets)
        if len(self._faults) == faults:
            self._check_kinds(matches, rewrites, conditions, [*left.uses, *right.uses], name)
        tests = tuple(self._test(clause) for clause in clauses if isinstance(clause, Tree) and clause.data == "test")
        return Rule(
            str(name),
            str(meaning)[1:-1] if meaning else "",
            documentation_above(self._source, first),
            span_of(self._source, name),
            matches,
            rewrites,
            both_ways,
            conditions,
            settings.phase,
            settings.fast_math,
            tests,
        )

    def _reader(self) -> Expressions:
        return Expressions(self._source, self._vocabulary, self._faults)

    def _fault(self, code: str, message: str, node: Node, hint: str = "", related: tuple[Related, ...] = ()) -> None:
        self._faults.append(Diagnostic(code, message, span_of(self._source, node), hint, related))

    def _attributes(self, nodes: list[Tree[Token]]) -> _Attributes:
        found = _Attributes()
        for node in nodes:
            name, value = node.children
            given = value.children[0] if isinstance(value, Tree) else None
            quoted = isinstance(given, Token) and given.type == "MEANING"
            match str(name):
                case "phase" if given is not None and str(given) in PHASES:
                    found.phase = str(given)
                case "phase":
                    hint = did_you_mean(str(given), PHASES) if given else ""
                    message = f"a phase is one of {', '.join(PHASES)}"
                    self._fault("unknown-phase", message, value if isinstance(value, Tree) else node, hint)
                case "fast_math" if quoted:
                    found.fast_math = str(given)[1:-1]
                case "fast_math":
                    self._fault("attribute", '`@fast_math` says why, in quotes: @fast_math("loses …")', node)
                case word:
                    assert isinstance(name, Token)
                    hint = did_you_mean(word, ("phase", "fast_math"))
                    allowed = f"there is no attribute `@{word}`; there are {' and '.join(_ATTRIBUTES)}"
                    self._fault("unknown-attribute", allowed, name, hint)
        return found

    def _matches(self, reader: Expressions, body: Tree[Token]) -> Named:
        if body.data == "simple":
            node = body.children[0]
            sides = [node] if len(body.children) == 2 else [node, body.children[2]]
            for side in sides:
                self._check_not_bare(side)
            return (("", reader.term(node)),)
        found: dict[str, Term] = {}
        for binding in body.children:
            if not (isinstance(binding, Tree) and binding.data == "binding"):
                continue
            name, pattern = binding.children
            assert isinstance(name, Token)
            if str(name) in found:
                self._fault("name-taken", f"`{name}` is matched twice", name)
            if self._vocabulary.meaning(str(name)):
                self._fault("name-taken", f"`{name}` is {self._vocabulary.meaning(str(name))}", name)
            self._check_not_bare(pattern)
            found[str(name)] = reader.term(pattern)
        return tuple(found.items())

    def _check_not_bare(self, node: Node) -> None:
        if isinstance(node, Tree) and node.data == "name" and str(node.children[0]) != "inf":
            hint = "write the operator whose values the rule rewrites"
            self._fault("bare-variable", f"`{node.children[0]}` alone matches everything", node, hint)

    def _lets(self, reader: Expressions, clauses: list[Node], left: Expressions) -> dict[str, Term]:
        found: dict[str, Term] = {}
        for clause in clauses:
            if not (isinstance(clause, Tree) and clause.data == "lets"):
                continue
            for binding in clause.children:
                assert isinstance(binding, Tree)
                name, value = binding.children
                assert isinstance(name, Token)
                earlier = left.names.variables.get(str(name)) or left.names.indices.get(str(name))
                if earlier is not None:
                    note = Related(earlier, "it is bound here")
                    self._fault("name-taken", f"`{name}` already has a meaning in this rule", name, "", (note,))
                found[str(name)] = substituted(reader.term(value), found)
        return found

    def _rewrites(self, reader: Expressions, body: Tree[Token], lets: dict[str, Term], matches: Named) -> Named:
        if body.data == "simple":
            return (("", substituted(reader.term(body.children[-1]), lets)),)
        known = dict(matches)
        found: list[tuple[str, Term]] = []
        for change in body.children:
            if not (isinstance(change, Tree) and change.data == "change"):
                continue
            name, value = change.children
            assert isinstance(name, Token)
            if str(name) not in known:
                hint = did_you_mean(str(name), known)
                self._fault("unbound-name", f"`{name}` is none of the matched: {', '.join(known)}", name, hint)
            found.append((str(name), substituted(reader.term(value), lets)))
        return tuple(found)

    def _check_bound(self, users: Expressions, binders: Expressions, extra: tuple[str, ...], side: str) -> None:
        known = {*binders.names.variables, *binders.names.indices, *extra}
        used = {**users.names.variables, **users.names.indices}
        for name, span in used.items():
            if name not in known and not self._left_is_known:
                continue  # the left side holds a fault already, and names that could not be read
            if name not in known:
                hint = did_you_mean(name, known)
                self._faults.append(Diagnostic("unbound-name", f"`{name}` is not on the {side} side", span, hint))
                continue
            self._check_same_kind(name, users, binders)

    def _check_same_kind(self, name: str, users: Expressions, binders: Expressions) -> None:
        """An index stays an index, a value a value."""
        index, value = binders.names.indices.get(name), binders.names.variables.get(name)
        if name in users.names.variables and index is not None:
            span, what, note = (
                users.names.variables[name],
                "an index, a value belongs here",
                Related(index, "bound here"),
            )
        elif name in users.names.indices and value is not None:
            span, what, note = users.names.indices[name], "a value, an index belongs here", Related(value, "bound here")
        else:
            return
        self._faults.append(Diagnostic("index-as-value", f"`{name}` is {what}", span, related=(note,)))

    def _check_kinds(
        self, matches: Named, rewrites: Named, conditions: tuple[Condition, ...], uses: list[Use], name: Token
    ) -> None:
        """Matched names are variables too: each is what its pattern is, and what replaces it."""
        patterns = {Local(matched): pattern for matched, pattern in matches}
        sides = [(patterns[Local(matched)], term) for matched, term in rewrites if Local(matched) in patterns]
        scalars = frozenset(condition.term for condition in conditions if isinstance(condition, IsScalar))
        fault = kind_fault(sides, scalars, uses, span_of(self._source, name), self._vocabulary.table)
        if fault is not None:
            self._faults.append(fault)

    def _check_casts(self, rewrites: Named, body: Tree[Token]) -> None:
        if any(isinstance(node, Cast) for _, term in rewrites for node in walk(term)):
            self._fault("cast", "a cast may be matched, not made: values are rounded where they are stored", body)

    def _conditions(
        self, left: Expressions, matches: Named, clauses: list[Node], lets: dict[str, Term]
    ) -> tuple[Condition, ...]:
        found: list[Condition] = []
        for clause in clauses:
            if not (isinstance(clause, Tree) and clause.data == "conditions"):
                continue
            for node in clause.children[1:]:
                reader = self._reader()
                assert isinstance(node, Tree)
                condition = self._condition(reader, node)
                self._check_bound(reader, left, extra=tuple(name for name, _ in matches), side="left")
                if condition is not None:
                    found.append(condition)
        return tuple(found)

    def _condition(self, reader: Expressions, node: Tree[Token]) -> Condition | None:
        if node.data == "not_free":
            return NotFree(reader.index(node.children[0]), reader.term(node.children[1]))
        if node.data == "is_kind":
            return self._kind_condition(reader, node)
        (inner,) = node.children
        assert isinstance(inner, Tree)
        if inner.data == "call":
            name, *operands = [child for child in cast("list[Node | None]", inner.children) if child is not None]
            if str(name) in FACTS and len(operands) == 1:
                return Fact(str(name), reader.term(operands[0]))
            if str(name) == "siblings" and len(operands) == 2:
                return Siblings(reader.term(operands[0]), reader.term(operands[1]))
        if inner.data == "infix":
            symbol = inner.children[1]
            if isinstance(symbol, Token) and symbol.type == "COMPARISON":
                return self._comparison(reader, inner)
        word = str(inner.children[0]) if inner.data == "call" else ""
        hint = did_you_mean(word, (*FACTS, "siblings")) if word else ""
        self._fault("unknown-condition", f"this is no condition; there are {_CONDITIONS}", inner, hint)
        return None

    def _kind_condition(self, reader: Expressions, node: Tree[Token]) -> Condition | None:
        term, word = reader.term(node.children[0]), node.children[1]
        match str(word):
            case "const":
                return IsConst(term)
            case "scalar":
                return IsScalar(term)
            case other:
                hint = did_you_mean(other, ("const", "scalar"))
                self._fault(
                    "unknown-condition", "a value may be asked whether it `is const` or `is scalar`", word, hint
                )
                return None

    def _comparison(self, reader: Expressions, node: Tree[Token]) -> Condition:
        term = reader.term(node)
        for part in walk(term):
            if part is term or isinstance(part, Number | Local | Size):
                continue
            if not (isinstance(part, Apply) and part.operator in _COMPARED):
                message = "a comparison is of numbers, variables that are numbers, size(i), and + - * / on them"
                self._fault("comparison", message, node)
                break
        return Comparison(term)

    def _test(self, node: Tree[Token]) -> RuleTest:
        reader = self._reader()
        left = reader.term(node.children[0])
        last = node.children[1]
        right = None if isinstance(last, Token) else reader.term(last)
        return RuleTest(left, right, span_of(self._source, node))
