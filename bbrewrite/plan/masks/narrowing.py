"""Narrows the loops of a nest to the blocks that a mask does not hide.

An iteration is *idle* where it leaves every state as it was. The conditions of the loop's `where`s are assumed to be
false (or true) in the whole block, and constants are propagated through the body: -inf into a maximum, the exponential
of it, 0, into a sum. If every state comes out unchanged the iteration is idle in such a block, and only blocks in which
the condition may hold somewhere are visited. Nothing here knows of softmax or attention: what is neutral is what the
monoids' identities say.

What hides a block also hides infinities and NaN of the inputs there: they meet nothing but weights of 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Role, Tensor
from bbrewrite.core.terms import Apply, Local, Read, Term, rewrite_bottom_up, walk
from bbrewrite.core.types import Typing
from bbrewrite.plan.kernel import Let, Loop, Statement, Update, walk_statements
from bbrewrite.plan.masks.constants import UNKNOWN, Entries, EntriesOf, Unchanged, either
from bbrewrite.plan.masks.linear_conditions import linear_condition
from bbrewrite.plan.masks.visible import ALWAYS, AllOf, AnyOf, Condition, LoopBounds, Nonnegative, visible_blocks

type _Known = dict[str, Entries]
# Conditions, each with the value that it is assumed to have in a whole block.
type _Assumption = Mapping[Term, bool]


def may_narrow(terms: Iterator[Term], typing: Typing) -> bool:
    """Whether a kernel of these terms has a condition that could narrow a loop."""
    return any(_is_choice(term) and _is_usable(term.children[0], typing) for term in terms)


class Narrowing:
    """Bounds the loops of nests that compute the same terms: what is known of their statements is found once."""

    def __init__(self, table: OperatorTable, typing: Typing, tensors: Mapping[str, Tensor]) -> None:
        """`typing` is that of terms without locals."""
        finite = frozenset(t.name for t in tensors.values() if t.role in (Role.INPUT, Role.WEIGHT))
        self._terms = _Terms(table, typing, finite)

    def of(self, body: tuple[Statement, ...], grid: tuple[str, ...]) -> tuple[Statement, ...]:
        """The nest with bounds on the loops that have idle iterations."""
        return _Narrower(body, self._terms).block(body, {}, frozenset(grid))


def with_ranges_only(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """The nest with those of its bounds alone that are ranges of positions: what tensors hold bounds nothing."""
    result: list[Statement] = []
    for statement in body:
        if isinstance(statement, Loop):
            bounds = None if statement.bounds is None else replace(statement.bounds, test=ALWAYS)
            usable = bounds is not None and not bounds.reads and bounds != LoopBounds()
            statement = replace(statement, body=with_ranges_only(statement.body), bounds=bounds if usable else None)
        result.append(statement)
    return tuple(result)


def _is_choice(term: Term) -> bool:
    return isinstance(term, Apply) and term.operator == "where"


def _is_usable(condition: Term, typing: Typing) -> bool:
    return any(linear_condition(condition, holds, typing) != ALWAYS for holds in (True, False))


class _Terms:
    """What is known of terms. Nests of one kernel ask the same again and again."""

    def __init__(self, table: OperatorTable, typing: Typing, finite_tensors: frozenset[str]) -> None:
        self.typing = typing
        self._table = table
        self._finite_tensors = finite_tensors
        self._entries: dict[object, Entries] = {}
        self._conditions: dict[Term, tuple[Term, ...]] = {}

    def entries(
        self, expression: Term, known: _Known, assumption: _Assumption, resolve: Callable[[Term], Term]
    ) -> Entries:
        """`resolve` replaces locals in terms by what they are defined as, which is how conditions are assumed."""
        locals = {name: known[name] for name in sorted(expression.local_names) if name in known}
        resolved = resolve(expression) if assumption else None
        key = (expression, resolved, tuple(locals.items()), tuple(assumption.items()))
        if key not in self._entries:

            def assumed(term: Term) -> bool | None:
                return assumption.get(resolve(term)) if assumption else None

            self._entries[key] = EntriesOf(self._table, locals, assumed, self._finite_tensors).of(expression)
        return self._entries[key]

    def conditions(self, resolved: Term) -> tuple[Term, ...]:
        """The conditions of a term's `where`s that could narrow a loop."""
        if resolved not in self._conditions:
            conditions = dict.fromkeys(term.children[0] for term in walk(resolved) if _is_choice(term))
            self._conditions[resolved] = tuple(c for c in conditions if _is_usable(c, self.typing))
        return self._conditions[resolved]


class _Narrower:
    def __init__(self, body: tuple[Statement, ...], terms: _Terms) -> None:
        self._terms = terms
        self._typing = terms.typing
        statements = list(walk_statements(body))
        lets = [s for s in statements if isinstance(s, Let)]
        several = {s.target.name for s in statements if isinstance(s, Update)}
        several |= {let.target.name for place, let in enumerate(lets) if let.target in (x.target for x in lets[:place])}
        self._definitions = {let.target.name: let.expression for let in lets if let.target.name not in several}
        self._resolved: dict[Term, Term] = {}
        # Of the body's loops, which are told apart by where they are: the locals in them, and what holds after them.
        self._locals_in: dict[int, tuple[str, ...]] = {}
        self._after: dict[object, _Known] = {}

    def block(self, body: tuple[Statement, ...], known: _Known, scope: frozenset[str]) -> tuple[Statement, ...]:
        """A list of statements inside loops over `scope`; `known` says what holds before."""
        result: list[Statement] = []
        last = max((place for place, statement in enumerate(body) if isinstance(statement, Loop)), default=-1)
        for place, statement in enumerate(body):
            if isinstance(statement, Loop):
                inside = {**known, **dict.fromkeys(_updated(statement.body), UNKNOWN)}
                inner = self.block(statement.body, inside, scope | {statement.index})
                condition = _in_scope(self._visible(statement, known), scope | {statement.index})
                bounds = visible_blocks(condition, statement.index)
                result.append(replace(statement, body=inner, bounds=bounds))
            else:
                result.append(statement)
            if place < last:
                self._run((statement,), known, {})
        return tuple(result)

    # Finding what hides a block

    def _visible(self, loop: Loop, known: _Known) -> Condition:
        """What must be possible in a block for the loop's iteration to do anything."""
        candidates = self._conditions(loop)
        required: list[Condition] = []
        for condition in candidates:
            for value in (False, True):
                visible = linear_condition(condition, not value, self._typing)
                if visible != ALWAYS and self._is_idle(loop, known, {condition: value}):
                    required.append(visible)
        if not required and len(candidates) > 1 and self._is_idle(loop, known, dict.fromkeys(candidates, False)):
            return AnyOf(tuple(linear_condition(condition, True, self._typing) for condition in candidates))
        return AllOf(tuple(required))

    def _conditions(self, loop: Loop) -> list[Term]:
        """The conditions of the loop's `where`s that change with its index."""
        found: dict[Term, None] = {}
        for statement in walk_statements(loop.body):
            if isinstance(statement, Let | Update):
                for condition in self._terms.conditions(self._resolve(statement.expression)):
                    if loop.index in condition.free:
                        found[condition] = None
        return list(found)

    def _resolve(self, term: Term) -> Term:
        """The term with locals replaced by what they are defined as, where that is one expression."""
        if term not in self._resolved:

            def change(node: Term) -> Term:
                if isinstance(node, Local) and node.name in self._definitions:
                    return self._resolve(self._definitions[node.name])
                return node

            self._resolved[term] = rewrite_bottom_up(term, change)
        return self._resolved[term]

    # Is an iteration idle?

    def _is_idle(self, loop: Loop, known: _Known, assumption: _Assumption) -> bool:
        """Whether an iteration leaves all states unchanged under an assumption on its conditions."""
        statements = list(walk_statements(loop.body))
        inner = {s.index for s in statements if isinstance(s, Loop)}
        lets = [s.target for s in statements if isinstance(s, Let)]
        if not all(isinstance(s, Let | Update | Loop) for s in statements):
            return False
        if any(loop.index in target.list_indices for target in lets):
            return False  # kept for others
        states = _updated(loop.body) - {target.name for target in lets if inner.issuperset(target.list_indices)}
        after: _Known = {**known, **{state: Unchanged(state) for state in states}}
        self._run(loop.body, after, assumption)
        return bool(states) and all(after[state] == Unchanged(state) for state in states)

    def _run(self, body: tuple[Statement, ...], known: _Known, assumption: _Assumption) -> None:
        """Changes `known` from what holds before the statements to what holds after them."""
        for statement in body:
            match statement:
                case Let(target, expression) | Update(target, expression):
                    known[target.name] = self._terms.entries(expression, known, assumption, self._resolve)
                case Loop():
                    self._run_loop(statement, known, assumption)
                case _:
                    pass

    def _run_loop(self, loop: Loop, known: _Known, assumption: _Assumption) -> None:
        """What holds after any number of iterations."""
        before = {name: known[name] for name in self._locals_of(loop) if name in known}
        key = (id(loop), tuple(before.items()), tuple(assumption.items()))
        if key not in self._after:
            self._after[key] = self._settled(loop, before, assumption)
        known.update(self._after[key])

    def _settled(self, loop: Loop, known: _Known, assumption: _Assumption) -> _Known:
        """What holds before and after every iteration, of locals known before the first, and then of others."""
        while True:
            after = dict(known)
            self._run(loop.body, after, assumption)
            joined = {name: either(before, after[name]) for name, before in known.items()}
            if joined == known:
                return {**after, **known}
            known = joined

    def _locals_of(self, loop: Loop) -> tuple[str, ...]:
        """The locals that a loop reads or changes."""
        if id(loop) not in self._locals_in:
            found: set[str] = set()
            for statement in walk_statements(loop.body):
                if isinstance(statement, Let | Update):
                    found |= {statement.target.name, *statement.expression.local_names}
            self._locals_in[id(loop)] = tuple(sorted(found))
        return self._locals_in[id(loop)]


def _updated(body: tuple[Statement, ...]) -> set[str]:
    return {s.target.name for s in walk_statements(body) if isinstance(s, Update)}


def _in_scope(condition: Condition, scope: frozenset[str]) -> Condition:
    """The condition without parts that read what is not at hand: they may be true."""
    match condition:
        case Nonnegative(linear):
            reads = [leaf for leaf, _ in linear.parts if isinstance(leaf, Read)]
            return condition if all(read.free <= scope for read in reads) else ALWAYS
        case AllOf(conditions):
            kept = tuple(inner for c in conditions if (inner := _in_scope(c, scope)) != ALWAYS)
            return kept[0] if len(kept) == 1 else AllOf(kept)
        case AnyOf(conditions):
            kept = tuple(_in_scope(inner, scope) for inner in conditions)
            return ALWAYS if ALWAYS in kept else AnyOf(kept)
