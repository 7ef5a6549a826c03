"""Keeps one of several accumulators that hold the same value throughout a loop.

The running maximum that rescales a sum is a state of that sum, and often a maximum of its own that is needed after the
loop. Two accumulators are one where they start alike and are updated alike, each taken for the other; the one that is
dropped may be read in the loop by its own update only, since the other may be updated at another place there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations
from operator import is_

from bbrewrite.core.terms import Local, Term
from bbrewrite.plan.kernel import Let, Loop, Statement, Store, Update, walk_statements
from bbrewrite.plan.nests.states import substituted


def with_equal_states_once(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """The statements of a nest without accumulators that repeat others."""
    found = tuple([_with_inner_once(statement) for statement in body])
    pair = _first_pair(found)
    while pair is not None:
        found = _without(found, *pair)
        pair = _first_pair(found)
    return found


def _with_inner_once(statement: Statement) -> Statement:
    """A statement of which all loops inside are without such accumulators."""
    if not isinstance(statement, Loop):
        return statement
    inner = with_equal_states_once(statement.body)
    # Most often nothing is to be left out.
    is_same = len(inner) == len(statement.body) and all(map(is_, inner, statement.body))
    return statement if is_same else replace(statement, body=inner)


def _first_pair(body: tuple[Statement, ...]) -> tuple[str, str] | None:
    """An accumulator that is kept and one that repeats it."""
    for position, loop in enumerate(body):
        if not isinstance(loop, Loop):
            continue
        starts = {s.target.name: s for s in body[:position] if isinstance(s, Let) and not s.target.list_indices}
        updates = [s for s in loop.body if isinstance(s, Update) and s.target.name in starts]
        if len(updates) < 2:
            continue
        names = Counter(update.target.name for update in updates)
        uses = _uses(loop)
        changing = {s.target.name for s in walk_statements(loop.body) if isinstance(s, Update)}
        lets = {s.target.name: s.expression for s in loop.body if isinstance(s, Let) and s.target.name not in changing}
        for kept, other in permutations(updates, 2):
            one, two = starts[kept.target.name], starts[other.target.name]
            if one.expression != two.expression or one.target.type != two.target.type:
                continue
            is_single = names[kept.target.name] == names[other.target.name] == 1
            if not is_single or uses[other.target.name] != 1:
                continue
            renaming: dict[str, Term] = {kept.target.name: Local(other.target.name)}
            if substituted(_inlined(kept, lets), renaming) == _inlined(other, lets):
                return kept.target.name, other.target.name
    return None


def _uses(loop: Loop) -> Counter[str]:
    """How many statements of a loop read a local value or update it."""
    found = Counter[str]()
    for statement in walk_statements((loop,)):
        if isinstance(statement, Let | Update | Store):
            updated = {statement.target.name} if isinstance(statement, Update) else frozenset[str]()
            found.update(statement.expression.local_names | updated)
    return found


def _inlined(update: Update, lets: Mapping[str, Term]) -> Term:
    """The new value of an accumulator, with what was made from the old one in the same iteration written out."""

    def dependent(name: str) -> bool:
        return name in lets and any(used == update.target.name or dependent(used) for used in lets[name].local_names)

    expression = update.expression
    while names := [name for name in expression.local_names if dependent(name)]:
        expression = substituted(expression, {name: lets[name] for name in names})
    return expression


def _without(body: tuple[Statement, ...], kept: str, dropped: str) -> tuple[Statement, ...]:
    """The statements without an accumulator; what reads it reads the other."""
    changed: list[Statement] = []
    for statement in body:
        match statement:
            case Loop():
                changed.append(replace(statement, body=_without(statement.body, kept, dropped)))
            case Let(target) | Update(target) if target.name == dropped:
                pass
            case Let() | Update() | Store():
                changed.append(replace(statement, expression=substituted(statement.expression, {dropped: Local(kept)})))
            case _:
                changed.append(statement)
    return tuple(changed)
