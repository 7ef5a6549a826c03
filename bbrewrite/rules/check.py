"""From syntax trees of rules to checked rules: every name is bound, every attribute known, every name used once."""

from __future__ import annotations

from collections.abc import Sequence

from lark import Token, Tree

from bbrewrite.core.spans import Source, Span
from bbrewrite.core.terms import Cast, Local, Term, walk
from bbrewrite.lang.diagnostics import Diagnostic, Related, did_you_mean
from bbrewrite.rules.advice import rule_warnings, ruleset_warnings
from bbrewrite.rules.attributes import read_attributes
from bbrewrite.rules.expressions import Expressions, Vocabulary, substituted
from bbrewrite.rules.kind_faults import Equation, kind_fault
from bbrewrite.rules.read_conditions import read_condition
from bbrewrite.rules.rules import Condition, IsScalar, Rule, RuleTest
from bbrewrite.rules.scope import Side, escaped_indices
from bbrewrite.rules.syntax import Node, documentation_above, span_of

type Named = tuple[tuple[str, Term], ...]


def check_rules(
    trees: list[tuple[Source, Tree[Token]]], vocabulary: Vocabulary, faults: list[Diagnostic]
) -> tuple[Rule, ...]:
    """The rules; what is wrong with them, and what is strange about those that are right, is added to `faults`."""
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
    faults += ruleset_warnings(rules)
    return tuple(rules)


class _RuleReader:
    """Reads one rule."""

    def __init__(self, source: Source, tree: Tree[Token], vocabulary: Vocabulary, faults: list[Diagnostic]) -> None:
        self._source = source
        self._tree = tree
        self._vocabulary = vocabulary
        self._faults = faults
        self._left_is_known = True
        self._told: set[str] = set()

    def read(self) -> Rule:
        attributes = [node for node in self._tree.children if isinstance(node, Tree) and node.data == "attribute"]
        name, meaning, body, *clauses = self._tree.children[len(attributes) :]
        assert isinstance(name, Token)
        assert isinstance(body, Tree)
        first = attributes[0].meta.line if attributes else name.line or 1
        settings = read_attributes(self._source, attributes, self._faults)
        both_ways = any(isinstance(node, Token) and node.type == "BOTH_WAYS" for node in body.children)

        faults = len(self._faults)
        left = self._reader()
        matches = self._matches(left, body)
        self._left_is_known = len(self._faults) == faults
        right = self._reader()
        lets = self._lets(right, clauses, left)
        rewrites = self._rewrites(right, body, lets, matches)
        self._check_bound(right, left, extra=(*lets, *(name for name, _ in matches)), side="left")
        self._check_casts((*rewrites, *matches) if both_ways else rewrites, body)
        if both_ways:
            self._check_bound(left, right, extra=(), side="right")
        placed = self._conditions(left, right, matches, clauses)
        conditions = tuple(condition for condition, _ in placed)
        equations = self._equations(matches, rewrites, body)
        if len(self._faults) == faults:
            scalars = frozenset(condition.term for condition in conditions if isinstance(condition, IsScalar))
            fault = kind_fault(equations, scalars, [*left.uses, *right.uses], self._vocabulary.table)
            self._faults += [fault] if fault is not None else []
        sides = (_side(left, matches), _side(right, rewrites))
        if len(self._faults) == faults:
            self._faults += escaped_indices(*sides)
            self._faults += escaped_indices(*reversed(sides)) if both_ways else ()
        tests = tuple(self._test(clause) for clause in clauses if isinstance(clause, Tree) and clause.data == "test")
        rule = Rule(
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
        if len(self._faults) == faults:
            uses = [*left.uses, *right.uses]
            self._faults += rule_warnings(rule, *sides, placed, uses)
        return rule

    def _reader(self) -> Expressions:
        return Expressions(self._source, self._vocabulary, self._faults, self._told)

    def _fault(self, code: str, message: str, node: Node, hint: str = "", related: tuple[Related, ...] = ()) -> None:
        self._faults.append(Diagnostic(code, message, span_of(self._source, node), hint, related))

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
        for name in found:
            inside = reader.names.variables.get(name) or reader.names.indices.get(name)
            if inside is not None:
                message = f"`{name}` names a whole value of this rule, and stands inside a pattern"
                self._faults.append(Diagnostic("name-taken", message, inside, "give one of the two another name"))
        return tuple(found.items())

    def _check_not_bare(self, node: Node) -> None:
        if isinstance(node, Tree) and node.data == "name" and str(node.children[0]) != "inf":
            hint = "write the operator whose values the rule rewrites"
            self._fault("bare-variable", f"`{node.children[0]}` alone matches everything", node, hint)

    def _lets(self, reader: Expressions, clauses: list[Node], left: Expressions) -> dict[str, Term]:
        found: dict[str, Term] = {}
        lets = [clause for clause in clauses if isinstance(clause, Tree) and clause.data == "lets"]
        bindings = [binding for clause in lets for binding in clause.children if isinstance(binding, Tree)]
        names = [str(binding.children[0]) for binding in bindings]
        for place, binding in enumerate(bindings):
            name, value = binding.children
            assert isinstance(name, Token)
            earlier = left.names.variables.get(str(name)) or left.names.indices.get(str(name))
            if earlier is not None:
                note = Related(earlier, "it is bound here")
                self._fault("name-taken", f"`{name}` already has a meaning in this rule", name, "", (note,))
            elif str(name) in found:
                self._fault("name-taken", f"`{name}` is bound twice", name)
            term = reader.term(value)
            unknown = {*names[place:]} - found.keys()
            later = [node.name for node in walk(term) if isinstance(node, Local) and node.name in unknown]
            if later:
                hint = "a `let` is made of what stands before it"
                self._fault("unbound-name", f"`{later[0]}` is not bound yet", value, hint)
            found[str(name)] = substituted(term, found)
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

    def _check_bound(
        self,
        users: Expressions,
        binders: Expressions,
        extra: tuple[str, ...],
        side: str,
        others: tuple[Expressions, ...] = (),
    ) -> None:
        """Every name of `users` is one of `binders` or `extra`; `others` are further users of the binders' names."""
        known = {*binders.names.variables, *binders.names.indices, *extra}
        used = {**users.names.variables, **users.names.indices}
        for name, span in used.items():
            if name not in known and not self._left_is_known:
                continue  # the left side holds a fault already, and names that could not be read
            if name not in known:
                hint = _meant(name, (users, *others), binders, extra, side)
                self._faults.append(Diagnostic("unbound-name", f"`{name}` is not on the {side} side", span, hint))
                continue
            if name in extra and name in users.names.indices:
                message = f"`{name}` names a whole value of this rule, an index belongs here"
                self._faults.append(Diagnostic("value-as-index", message, users.names.indices[name]))
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

    def _equations(self, matches: Named, rewrites: Named, body: Tree[Token]) -> list[Equation]:
        """What the rule equates. Matched names are variables too: each is what its pattern is, and what replaces it."""
        parts = [node for node in body.children if isinstance(node, Tree)]
        if body.data == "simple":
            left, right = (span_of(self._source, part) for part in parts)
            return [Equation(matches[0][1], rewrites[0][1], left, right)]
        spans = {
            str(part.children[0]): span_of(self._source, part.children[1]) for part in parts if part.data == "binding"
        }
        patterns = dict(matches)
        found = [Equation(Local(name), pattern, spans[name], spans[name]) for name, pattern in matches]
        changes = [part for part in parts if part.data == "change"]
        for (name, term), change in zip(rewrites, changes, strict=True):
            if name in patterns:
                place = span_of(self._source, change.children[1])
                found.append(Equation(patterns[name], term, spans[name], place))
        return found

    def _check_casts(self, rewrites: Named, body: Tree[Token]) -> None:
        if any(isinstance(node, Cast) for _, term in rewrites for node in walk(term)):
            self._fault("cast", "a cast may be matched, not made: values are rounded where they are stored", body)

    def _conditions(
        self, left: Expressions, right: Expressions, matches: Named, clauses: list[Node]
    ) -> list[tuple[Condition, Span]]:
        found: list[tuple[Condition, Span]] = []
        for clause in clauses:
            if not (isinstance(clause, Tree) and clause.data == "conditions"):
                continue
            for node in clause.children[1:]:
                reader = self._reader()
                assert isinstance(node, Tree)
                condition = read_condition(reader, node)
                extra = tuple(name for name, _ in matches)
                self._check_bound(reader, left, extra, "left", others=(right,))
                if condition is not None:
                    found.append((condition, span_of(self._source, node)))
        return found

    def _test(self, node: Tree[Token]) -> RuleTest:
        reader = self._reader()
        left = reader.term(node.children[0])
        last = node.children[1]
        right = None if isinstance(last, Token) else reader.term(last)
        return RuleTest(left, right, span_of(self._source, node))


def _side(reader: Expressions, terms: Named) -> Side:
    return Side(tuple(term for _, term in terms), reader.names.variables, reader.names.indices)


def _meant(name: str, users: Sequence[Expressions], binders: Expressions, extra: tuple[str, ...], side: str) -> str:
    """A hint: a name like it, or the one of its kind that one side has and nothing else uses, or all of its kind."""
    is_index = name in users[0].names.indices
    known = [*binders.names.indices] if is_index else [*binders.names.variables, *filter(None, extra)]
    near = did_you_mean(name, known)
    if near:
        return near
    used = {found for user in users for found in (*user.names.variables, *user.names.indices)}
    unused = [found for found in known if found not in used]
    if len(unused) == 1:
        return f"did you mean `{unused[0]}`, which is not used here?"
    if known:
        return f"{'indices' if is_index else 'values'} known here: {', '.join(known)}"
    return f"the {side} side names no {'index' if is_index else 'value'}"
