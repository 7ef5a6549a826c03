"""The sets of lists that kernels are looked for that store them together.

Lists that are siblings of each other are paired in every combination: ten of them in a thousand sets. Where there are
so many, a set serves that has no gap: none of its siblings stands between two of its members in the program's order.
Which kernels store a set is for `extract.py` to say.
"""

from __future__ import annotations

from collections.abc import Iterable

from bbrewrite.plan.extraction.lists import Lists

# Up to so many sets none is left out: five lists that are siblings of each other make 26.
FEW_SETS = 32


def sets_tried(lists: Lists, few: int = FEW_SETS) -> tuple[str, ...]:
    """The names under which lists are stored, alone or together, without those of sets with a gap if they are many."""
    stored = {name: lists.stored_as(name) for name in lists.by_name}
    sets = {frozenset(members) for members in stored.values() if len(members) > 1}
    if len(sets) <= few:
        return tuple(stored)
    place = lists.places

    def has_gap(members: Iterable[str]) -> bool:
        inside = frozenset(members)
        places = sorted(place[name] for name in inside if name in place)
        between = (name for name in place if places and places[0] < place[name] < places[-1] and name not in inside)
        return any(inside | {name} in sets for name in between)

    return tuple(name for name, members in stored.items() if len(members) == 1 or not has_gap(members))
