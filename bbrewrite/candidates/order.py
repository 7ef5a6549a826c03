"""The order in which a program is cut into candidates, and the atoms that are never cut.

A run of neighbours in an order in which each definition reads only earlier ones is convex, so a cover is a choice of
cuts. The order is the program's, but that a definition without a sum whose only reader can fuse with it stands
directly before that reader: what can become one kernel is then one run. An atom is a statistic together with what
reads it next, and a run of definitions that read one list and not each other: planning the first half of such a
group alone says nothing about the whole.
"""

from __future__ import annotations

from bbrewrite.candidates.graph import OperatorGraph

type Atom = tuple[int, ...]

# More definitions than the projections of a gated attention do not gain from one kernel.
_LARGEST_ATOM = 4


def atoms_in_order(graph: OperatorGraph, largest: int) -> tuple[Atom, ...]:
    """The definitions that outputs need, in atoms of at most `largest`, in the order of cutting."""
    largest = min(largest, _LARGEST_ATOM)
    atoms: list[list[int]] = []
    for position in _order(graph):
        if atoms and len(atoms[-1]) < largest and _belongs(graph, atoms[-1], position):
            atoms[-1].append(position)
        else:
            atoms.append([position])
    return tuple(map(tuple, atoms))


def _order(graph: OperatorGraph) -> list[int]:
    def waits(position: int) -> bool:
        """Whether a definition is made where its reader stands."""
        if position in graph.contracts or position in graph.kept:
            return False
        users = [user for user in graph.users[position] if user in graph.needed]
        return len(users) == 1 and (position, users[0]) in graph.fusible

    order: list[int] = []
    for position in sorted(graph.needed):
        if waits(position):
            continue
        # Those that waited for this one, operands first.
        stack = [position]
        group: list[int] = []
        while stack:
            member = stack.pop()
            group.append(member)
            stack.extend(operand for operand in graph.operands[member] if waits(operand))
        order.extend(sorted(group))
    return order


def _belongs(graph: OperatorGraph, atom: list[int], position: int) -> bool:
    """Whether a definition is of one atom with those directly before it."""
    last = atom[-1]
    if last in graph.statistics:
        return (last, position) in graph.fusible
    # Siblings; all of the atom read one list then.
    common = frozenset[str].intersection(*(graph.sources[member] for member in atom)) & graph.sources[position]
    independent = not any(member in graph.operands[position] for member in atom)
    both_contract = position in graph.contracts and all(member in graph.contracts for member in atom)
    return bool(common) and independent and both_contract and position not in graph.statistics
