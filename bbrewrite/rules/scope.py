"""Which loops the names of a rule stand in, on either side.

An index that only names a loop on one side must not be free on the other, where it would stand for nothing: that is an
error. A variable that stands inside `map(i, …)` or `reduce(…, i, …)` may depend on i. Outside that loop the same name
would mean another i, or none; inside a loop that it was not in, its own i would be captured. A warning tells of that
where no condition speaks of it: the missing condition may follow from what the rule says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from bbrewrite.core.spans import Span
from bbrewrite.core.terms import At, Component, Local, Map, Pair, Reduce, Term, walk
from bbrewrite.lang.diagnostics import Diagnostic, Related
from bbrewrite.rules.conditions import may_depend
from bbrewrite.rules.kinds import Use
from bbrewrite.rules.rules import Condition, NotFree

type Loops = frozenset[str]


@dataclass(frozen=True)
class Side:
    """The terms of one side of a rule, and where each name of it is first written."""

    terms: tuple[Term, ...]
    variables: Mapping[str, Span]
    indices: Mapping[str, Span]


def scope_warnings(before: Side, after: Side, conditions: Sequence[Condition]) -> Iterator[Diagnostic]:
    """What leaves or enters a loop on the way from one side to the other, at its place after the rewrite."""
    old, new = _occurrences(before.terms), _occurrences(after.terms)
    for name, places in new.items():
        if name not in old:
            continue
        stated = {c.index for c in conditions if isinstance(c, NotFree) and Local(name) in set(walk(c.term))}
        around, among = _common(old[name]), frozenset[str]().union(*old[name])
        left = frozenset[str]().union(*(around - place for place in places)) - stated
        entered = frozenset[str]().union(*(place - among for place in places)) - stated
        if left or entered:
            yield _warning(name, sorted(left), sorted(entered), before, after)


def escaped_indices(before: Side, after: Side) -> Iterator[Diagnostic]:
    """Faults: indices that only name a loop on one side and are free on the other."""
    known = frozenset[str]().union(*(term.free for term in before.terms))
    for index in sorted(frozenset[str]().union(*(term.free for term in after.terms)) - known):
        if index in before.indices and index in after.indices:
            note = Related(before.indices[index], "the loop")
            message = f"`{index}` is used outside the loop that it names"
            hint = "outside, the name stands for no index of this rule"
            yield Diagnostic("escaped-index", message, after.indices[index], hint, (note,))


def rebound_warnings(uses: Iterable[Use]) -> Iterator[Diagnostic]:
    """A warning for each loop of which an inner loop over the same index takes everything that could depend on it.

    Beside other variables an inner loop may well be over the same index: sum_i (x_i / max_i x_i).
    """
    for use in uses:
        match use.parent:
            case Map(index) | Reduce(_, index):
                body = use.operand
            case _:
                continue
        inner = (node.index for node in walk(body) if isinstance(node, Map | Reduce))
        if index in inner and index not in body.free and not may_depend(body, index):
            message = f"`{index}` is bound again inside the loop over `{index}`, where nothing else can depend on it"
            hint = "give one of the two loops another name: two names may stand for one index"
            yield Diagnostic("scope", message, use.span, hint, severity="warning")


def loops_of_variables(terms: Iterable[Term]) -> dict[str, Loops]:
    """The loops inside which each variable stands everywhere, in order of first occurrence."""
    return {name: _common(places) for name, places in _occurrences(terms).items()}


def _warning(name: str, left: list[str], entered: list[str], before: Side, after: Side) -> Diagnostic:
    span = after.variables[name]
    notes = (Related(before.variables[name], "it stands here before"),)
    if left and entered:
        out, into = left[0], entered[0]
        message = (
            f"`{name}` comes from the loop `{out}` and is used in the loop `{into}`: the loops around it must match"
        )
        hint = f"name both loops `{into}`, so that the rule asks for lists over one index"
        return Diagnostic("scope", message, span, hint, notes, "warning")
    needed = " and ".join(f"`where {index} not in free({name})`" for index in left or entered)
    loops = " and ".join(f"`{index}`" for index in left or entered)
    one = len(left or entered) == 1
    does, loops, it = "leaves" if left else "enters", f"the loop{'' if one else 's'} {loops}", "it" if one else "them"
    message = f"`{name}` {does} {loops} and may depend on {it}"
    return Diagnostic("scope", message, span, f"add {needed}", notes, "warning")


def _occurrences(terms: Iterable[Term]) -> dict[str, set[Loops]]:
    """For each variable the sets of loops inside which it stands."""
    found: dict[str, set[Loops]] = {}
    for term in terms:
        for name, loops in _visited(term, frozenset(), ()):
            found.setdefault(name, set()).add(loops)
    return found


def _common(places: Set[Loops]) -> Loops:
    first, *others = places
    return first.intersection(*others)


def _visited(term: Term, loops: Loops, reads: tuple[str | None, ...]) -> Iterator[tuple[str, Loops]]:
    """`reads` are the indices at which the list that a term makes is read at once: at(map(i, x), i) leaves i free."""
    match term:
        case Local(name):
            yield name, loops
        case At(items, address):
            yield from _visited(items, loops, (address.plain_index, *reads))
        case Map(index, body):
            inner = loops - {index} if reads and reads[0] == index else loops | {index}
            yield from _visited(body, inner, reads[1:])
        case Reduce(_, index, operands):
            for operand in operands:
                yield from _visited(operand, loops | {index}, ())
        case Pair() | Component():
            for child in term.children:
                yield from _visited(child, loops, reads)
        case _:
            for child in term.children:
                yield from _visited(child, loops, ())
