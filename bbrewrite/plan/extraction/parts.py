"""The parts of a program: outputs that have nothing to do with each other.

Two outputs are of one part where some kernel could store a list of both, or both could read one list. What one part
costs says nothing about another, so each is planned by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bbrewrite.plan.extraction.extract import KernelForm


def parts(outputs: Mapping[str, str], kernels: Iterable[KernelForm]) -> tuple[dict[str, str], ...]:
    """Outputs, each with its list, by part, in their order."""
    touched: dict[str, set[str]] = {}
    for kernel in kernels:
        for name in kernel.stores:
            touched.setdefault(name, set()).update(kernel.stores, kernel.lists_read)
    found: list[tuple[set[str], dict[str, str]]] = []
    for output, name in outputs.items():
        lists, members = reachable(name, touched), {output: name}
        meeting = [part for part in found if part[0] & lists]
        for part in meeting:
            lists |= part[0]
            members = part[1] | members
        found = [part for part in found if part not in meeting] + [(lists, members)]
    place = {output: position for position, output in enumerate(outputs)}
    members_in_order = [dict(sorted(part.items(), key=lambda item: place[item[0]])) for _, part in found]
    return tuple(sorted(members_in_order, key=lambda part: min(map(place.__getitem__, part))))


def reachable(name: str, touched: Mapping[str, set[str]]) -> set[str]:
    """The lists that plans for a list may store: itself, and what follows by one step or by several."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        current = waiting.pop()
        if current not in found:
            found.add(current)
            waiting += touched.get(current, set())
    return found
