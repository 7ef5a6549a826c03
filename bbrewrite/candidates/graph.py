"""The operator graph of a block program: its definitions, and which reads which.

Positions are those of the program's definitions, in which each reads only earlier ones. A set of positions is convex
where no path leaves it and comes back: only such a set can be computed in one go. An edge can fuse where all its
reads are at plain indices: a list that is read at an expression stays in memory. Nothing is chosen here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from bbrewrite.core.programs import BlockProgram, Role
from bbrewrite.core.terms import Apply, Read, Reduce, walk


@dataclass(frozen=True)
class OperatorGraph:
    """For every definition the positions of the definitions that it reads, in ascending order.

    `sources` are all tensors that a definition reads, by name; `contracts` are the definitions that reduce, and
    `statistics` those that do nothing else: one number, or one vector a row, from what others read whole.
    """

    operands: tuple[tuple[int, ...], ...]
    fusible: frozenset[tuple[int, int]]  # edges, operand first
    sources: tuple[frozenset[str], ...]
    contracts: frozenset[int]
    statistics: frozenset[int]
    kept: frozenset[int]  # definitions that are the program's outputs

    @staticmethod
    def of(program: BlockProgram) -> OperatorGraph:
        """The graph of a program."""
        place = {d.tensor.name: position for position, d in enumerate(program.definitions)}
        reads = [tuple(t for t in walk(d.term) if isinstance(t, Read)) for d in program.definitions]
        operands = [tuple(sorted({place[t.tensor] for t in found if t.tensor in place})) for found in reads]
        stored = {
            (place[t.tensor], position)
            for position, found in enumerate(reads)
            for t in found
            if t.tensor in place and any(address.plain_index is None for address in t.addresses)
        }
        edges = {(operand, position) for position, found in enumerate(operands) for operand in found}
        folds = [{t.index for t in walk(d.term) if isinstance(t, Reduce)} for d in program.definitions]
        statistics = {
            position
            for position, definition in enumerate(program.definitions)
            if folds[position] and not any(isinstance(t, Apply) and t.operator == "dot" for t in walk(definition.term))
        }
        return OperatorGraph(
            tuple(operands),
            frozenset(edges - stored),
            tuple(frozenset(t.tensor for t in found) for found in reads),
            frozenset(position for position, found in enumerate(folds) if found),
            frozenset(statistics),
            frozenset(p for p, d in enumerate(program.definitions) if d.tensor.role is Role.OUTPUT),
        )

    def __len__(self) -> int:
        return len(self.operands)

    @cached_property
    def users(self) -> tuple[tuple[int, ...], ...]:
        """For every definition the positions of those that read it."""
        found: list[list[int]] = [[] for _ in self.operands]
        for position, operands in enumerate(self.operands):
            for operand in operands:
                found[operand].append(position)
        return tuple(map(tuple, found))

    @cached_property
    def needed(self) -> frozenset[int]:
        """The definitions on which an output depends."""
        found: set[int] = set()
        waiting = list(self.kept)
        while waiting:
            position = waiting.pop()
            if position not in found:
                found.add(position)
                waiting.extend(self.operands[position])
        return frozenset(found)

    @cached_property
    def islands(self) -> tuple[frozenset[int], ...]:
        """The needed definitions in groups that have no tensor in common, in the order of their first members."""
        groups: list[tuple[set[int], set[int | str]]] = []
        for position in sorted(self.needed):
            members, touched = {position}, {position, *self.operands[position], *self.sources[position]}
            for group in [group for group in groups if group[1] & touched]:
                groups.remove(group)
                members |= group[0]
                touched |= group[1]
            groups.append((members, touched))
        return tuple(sorted((frozenset(members) for members, _ in groups), key=min))

    def leaving(self, members: Iterable[int]) -> frozenset[int]:
        """The members that something outside needs, or that are outputs of the program."""
        inside = frozenset(members)
        return frozenset(
            m for m in inside if m in self.kept or any(u not in inside and u in self.needed for u in self.users[m])
        )

    def is_convex(self, members: Iterable[int]) -> bool:
        """Whether no path between two members leads through a definition outside."""
        inside = frozenset(members)
        if not inside:
            return True
        last = max(inside)
        # What lies behind the set: it is convex where none of that is read by a member.
        behind: set[int] = set()
        for position in range(min(inside), last + 1):
            operands = self.operands[position]
            reached = any(operand in behind for operand in operands)
            if position in inside:
                if reached:
                    return False
            elif reached or any(operand in inside for operand in operands):
                behind.add(position)
        return True

    def meet(self, one: Iterable[int], other: Iterable[int]) -> bool:
        """Whether two groups have something to gain from each other: an edge that can fuse, or a common source."""
        firsts, others = tuple(one), tuple(other)
        return any((f, o) in self.fusible or self.sources[f] & self.sources[o] for f in firsts for o in others)


def is_cover(graph: OperatorGraph, candidates: Sequence[Sequence[int]]) -> bool:
    """Whether candidates cover every needed definition once, are convex, and can run in the order given."""
    done: set[int] = set()
    for members in candidates:
        if done.intersection(members) or not graph.is_convex(members):
            return False
        done.update(members)
        if any(operand not in done for member in members for operand in graph.operands[member]):
            return False
    return graph.needed <= done
