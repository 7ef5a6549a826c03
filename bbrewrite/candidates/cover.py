"""The search for a cover: candidates grow atom by atom while planning them shows a use.

What a candidate is worth is what its plan costs; candidates of one class are planned once. Whether a candidate grows
past an atom, and whether it is kept whole, is decided once for each kind: classes that differ in extents within a
factor of two are of one kind. So the number of plans depends on how many kinds of operators stand side by side, not on
how many operators there are. Where launches cost more than all work, as many neighbours as may be are planned together
first: one kernel that takes no longer than two launches is better than any two. Everything is counted, nothing timed:
one program always has one cover.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from bbrewrite.candidates.graph import OperatorGraph
from bbrewrite.candidates.order import Atom, atoms_in_order
from bbrewrite.candidates.subprogram import Candidate, kind_key, make_candidate
from bbrewrite.core.programs import BlockProgram
from bbrewrite.plan.plans import Plan
from bbrewrite.plan.target import TOLERANCE


class Planned(Protocol):
    """What planning a candidate gives, as far as the search reads it."""

    @property
    def fused(self) -> Plan: ...


@dataclass(frozen=True)
class Bounds:
    """`whole` is the number of definitions up to which a program, or what shares nothing with the rest of it, is one
    candidate; `definitions` bounds the size of a candidate of what is larger.
    """

    whole: int = 16
    definitions: int = 14


@dataclass(frozen=True)
class Alone:
    """What definitions take by themselves, by position, in seconds beside their launches; and what a launch takes."""

    work: Mapping[int, float]
    launch: float


@dataclass(frozen=True)
class Chosen[P: Planned]:
    """A candidate of the cover with what planning its class gave; the same object for all candidates of a class."""

    candidate: Candidate
    planned: P


def cover[P: Planned](
    program: BlockProgram,
    plan: Callable[[BlockProgram], P],
    bounds: Bounds | None = None,
    alone: Alone | None = None,
    tolerance: float = TOLERANCE,
) -> tuple[Chosen[P], ...]:
    """Candidates for every definition that an output needs, in an order in which they can run. Times nearer than
    `tolerance` are taken for equal.
    """
    return _Search(program, plan, bounds or Bounds(), alone, tolerance).run()


class _Search[P: Planned]:
    def __init__(
        self,
        program: BlockProgram,
        plan: Callable[[BlockProgram], P],
        bounds: Bounds,
        alone: Alone | None,
        tolerance: float,
    ) -> None:
        self._alone = alone
        self._tolerance = tolerance
        self._program = program
        self._plan = plan
        self._bounds = bounds
        self._graph = OperatorGraph.of(program)
        self._planned: dict[object, P] = {}  # by class
        self._grows: dict[object, bool] = {}  # by kind of the neighbours together
        self._whole: dict[object, bool] = {}  # by kind: whether it is no worse than its atoms and pairs

    def run(self) -> tuple[Chosen[P], ...]:
        found: list[Chosen[P]] = []
        atoms = atoms_in_order(self._graph, self._bounds.definitions)
        for island in self._graph.islands:
            if len(island) <= self._bounds.whole:
                found.append(self._chosen(self._candidate(sorted(island))))
            else:
                found += self._cut([atom for atom in atoms if atom[0] in island])
        return tuple(found)

    def _cut(self, atoms: Sequence[Atom]) -> list[Chosen[P]]:
        """Candidates for atoms in this order."""
        found: list[Chosen[P]] = []
        waiting = list(atoms)
        while waiting:
            once = self._launched_once(waiting)
            if once is not None:
                run, whole = once
                found.append(whole)
            else:
                run = waiting[:1]
                while len(run) < len(waiting) and self._may_grow(run, waiting[len(run)]):
                    run.append(waiting[len(run)])
                found += self._settled(run)
            waiting = waiting[len(run) :]
        return found

    def _launched_once(self, atoms: Sequence[Atom]) -> tuple[list[Atom], Chosen[P]] | None:
        """As many of the first atoms as one candidate may have, and the candidate, where it is one kernel that takes no
        longer than two launches: whatever is cut takes longer. None otherwise; most often what they take alone tells.
        """
        if self._alone is None:
            return None
        run: list[Atom] = []
        for atom in atoms:
            if run and (not self._has_room(run, atom) or self._nearest(run, atom) is None):
                break
            run.append(atom)
        if len(run) == 1 or sum(self._alone.work[member] for atom in run for member in atom) > self._alone.launch:
            return None
        whole = self._chosen(self._joined(run))
        plan = whole.planned.fused
        return (run, whole) if len(plan.kernels.kernels) == 1 and plan.seconds <= 2 * self._alone.launch else None

    def _has_room(self, run: Sequence[Atom], atom: Atom) -> bool:
        return sum(map(len, run)) + len(atom) <= self._bounds.definitions

    def _nearest(self, run: Sequence[Atom], atom: Atom) -> int | None:
        """The place of the last atom of a run that has something to gain from another."""
        return next((p for p in reversed(range(len(run))) if self._graph.meet(run[p], atom)), None)

    def _may_grow(self, run: list[Atom], atom: Atom) -> bool:
        """Whether an atom joins a run: planned with its nearest neighbour in the run it is no worse than apart."""
        place = self._nearest(run, atom) if self._has_room(run, atom) else None
        if place is None:
            return False
        near = run[place]
        if not self._graph.is_convex([*near, *atom]):
            near = [member for between in run[place:] for member in between]
        together = self._candidate([*near, *atom])
        kind = kind_key(together.program)
        if kind not in self._grows:
            apart = [self._chosen(self._candidate(near)), self._chosen(self._candidate(atom))]
            self._grows[kind] = self._is_no_worse(self._chosen(together), apart)
        return self._grows[kind]

    def _settled(self, run: list[Atom]) -> list[Chosen[P]]:
        """A run as one candidate; where its plan is worse than those of its atoms and pairs of them, its halves if
        theirs are better.
        """
        whole = self._chosen(self._joined(run))
        if len(run) <= 2:
            return [whole]
        kind = kind_key(whole.candidate.program)
        if kind not in self._whole:
            self._whole[kind] = self._is_no_worse(whole, self._parts(run))
        if self._whole[kind]:
            return [whole]
        halves = [*self._settled(run[: len(run) // 2]), *self._settled(run[len(run) // 2 :])]
        return [whole] if self._is_no_worse(whole, halves) else halves

    def _parts(self, run: list[Atom]) -> Sequence[Chosen[P]]:
        """The fastest parts of a run of one atom or two each, of pairs those that were planned already."""
        fastest: list[tuple[float, list[Chosen[P]]]] = [(0.0, [])]
        for end in range(1, len(run) + 1):
            single = self._chosen(self._joined(run[end - 1 : end]))
            options = [(end - 1, single)]
            pair = self._joined(run[end - 2 : end]) if end > 1 else None
            if pair is not None and pair.key in self._planned:
                options.append((end - 2, self._chosen(pair)))
            splits = [(fastest[s][0] + part.planned.fused.seconds, [*fastest[s][1], part]) for s, part in options]
            fastest.append(min(splits, key=lambda split: split[0]))
        return fastest[-1][1]

    def _joined(self, run: Sequence[Atom]) -> Candidate:
        return self._candidate([member for atom in run for member in atom])

    def _candidate(self, members: Sequence[int]) -> Candidate:
        return make_candidate(self._program, self._graph, members)

    def _chosen(self, candidate: Candidate) -> Chosen[P]:
        if candidate.key not in self._planned:
            self._planned[candidate.key] = self._plan(candidate.program)
        return Chosen(candidate, self._planned[candidate.key])

    def _is_no_worse(self, whole: Chosen[P], parts: Sequence[Chosen[P]]) -> bool:
        """Whether one plan is faster than several, or as fast as far as the model tells, with fewer kernels."""
        seconds = sum(part.planned.fused.seconds for part in parts)
        kernels = sum(len(part.planned.fused.kernels.kernels) for part in parts)
        plan = whole.planned.fused
        fewer = len(plan.kernels.kernels) < kernels
        return plan.seconds <= seconds * (1 + self._tolerance) if fewer else plan.seconds < seconds
