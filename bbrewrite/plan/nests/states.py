"""The components of a monoid's state, and which of them depend on which.

A running maximum that rescales a sum is read by the sum's combination and not the other way round. Nothing here
knows of loops but `required_outside`, which says what a loop order must respect.
"""

from __future__ import annotations

from bbrewrite.core.operators import Monoid
from bbrewrite.core.terms import Local, Reduce, Term


def substituted(term: Term, names: dict[str, Term]) -> Term:
    """The term with named leaves replaced (not inside the replacements)."""
    if isinstance(term, Local):
        return names.get(term.name, term)
    if term.local_names.isdisjoint(names):
        return term
    return term.with_children(tuple(substituted(child, names) for child in term.children))


def closure(monoid: Monoid, component: int) -> set[int]:
    """The components on whose states a component's combination depends, itself included."""
    found: set[int] = set()
    pending = [component]
    while pending:
        current = pending.pop()
        if current in found:
            continue
        found.add(current)
        mentioned = monoid.combine[current].local_names
        pending += [
            other
            for other in range(len(monoid.state))
            if monoid.left[other] in mentioned or monoid.right[other] in mentioned
        ]
    return found


def needed_components(monoid: Monoid) -> tuple[int, ...]:
    """The components that the result needs."""
    finished = monoid.finish.local_names
    needed: set[int] = set()
    for component, name in enumerate(monoid.state):
        if name in finished:
            needed |= closure(monoid, component)
    return tuple(sorted(needed))


def components_read_by_others(monoid: Monoid, wanted: tuple[int, ...]) -> tuple[int, ...]:
    """Those of the wanted components on whose states others depend."""
    return tuple(
        component
        for component in wanted
        if any(
            other != component and {monoid.left[component], monoid.right[component]} & monoid.combine[other].local_names
            for other in wanted
        )
    )


def required_outside(term: Reduce, monoid: Monoid) -> frozenset[str]:
    """Indices whose loops must be around the reduction's: those of the states that other states read."""
    if len(monoid.state) == 1:
        return frozenset()
    arguments = dict(zip(monoid.parameters, term.operands, strict=True))
    bases = components_read_by_others(monoid, needed_components(monoid))
    elements = [substituted(monoid.element[component], arguments) for component in bases]
    return frozenset[str]().union(*(element.free for element in elements)) - {term.index}
