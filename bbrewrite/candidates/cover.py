"""The search for a cover: candidates grow atom by atom while planning them shows a use.

What a candidate is worth is what its plan costs; candidates of one class are planned once. Whether a candidate grows
past an atom, and whether it is kept whole, is decided once for each kind: classes that differ in extents within a
factor of two are of one kind. So the number of plans depends on how many kinds of operators stand side by side, not on
how many operators there are. Where launches cost more than all work, as many neighbours as may be are planned together
first: one kernel that takes no longer than two launches is better than any two. Everything is counted, nothing timed:
one program always has one cover. So that many candidates can be planned at once, the search may look ahead: it walks
through the program as if what is not planned yet were as good as can be, and notes what it asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bbrewrite.candidates.graph import OperatorGraph
from bbrewrite.candidates.order import Atom, atoms_in_order
from bbrewrite.candidates.subprogram import Candidate, make_candidate
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
    candidate; `definitions` bounds the size of a candidate of what is larger, and `grown` that of one which grows while
    planning shows a use: larger ones are rarely kept whole, and take longest to plan.
    """

    whole: int = 16
    definitions: int = 14
    grown: int = 10


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


@dataclass(frozen=True)
class _Worth:
    """What the search reads of a candidate's plan."""

    seconds: float
    kernels: int


# What is not planned yet is taken for as good as can be while the search looks ahead.
_HOPED_FOR = _Worth(0.0, 1)


def cover[P: Planned](
    program: BlockProgram,
    plan: Callable[[Sequence[BlockProgram]], Sequence[P]],
    bounds: Bounds | None = None,
    alone: Alone | None = None,
    tolerance: float = TOLERANCE,
    looks_ahead: bool = False,
) -> tuple[Chosen[P], ...]:
    """Candidates for every definition that an output needs, in an order in which they can run. Times nearer than
    `tolerance` are taken for equal.

    `plan` is called for one candidate after another; if the search looks ahead, which changes nothing in the cover,
    first for many at once, a few of which may turn out not to be needed.
    """
    return _Search(program, plan, bounds or Bounds(), alone, tolerance, looks_ahead).run()


@dataclass(eq=False)
class _Walk:
    """One walk through the program: what was decided on it, and what it asked for.

    A walk that looks ahead decides by guesses too. `is_adrift` tells that the run at hand may end elsewhere once they
    are settled, so that it is not known where those after it begin: they are followed, but not planned as a whole.
    """

    grows: dict[object, bool] = field(default_factory=dict[object, bool])  # by kind of the neighbours together
    # By kind of a run: whether it is no worse than its atoms and pairs.
    is_whole: dict[object, bool] = field(default_factory=dict[object, bool])
    asked: set[object] = field(default_factory=set[object])  # the classes that decisions needed
    missing: dict[object, Candidate] = field(default_factory=dict[object, Candidate])  # by class: those not planned yet
    guessed: set[object] = field(default_factory=set[object])  # the kinds of which it was guessed whether they grow
    is_adrift: bool = False


class _Search[P: Planned]:
    def __init__(
        self,
        program: BlockProgram,
        plan: Callable[[Sequence[BlockProgram]], Sequence[P]],
        bounds: Bounds,
        alone: Alone | None,
        tolerance: float,
        looks_ahead: bool,
    ) -> None:
        self._alone = alone
        self._tolerance = tolerance
        self._looks_ahead = looks_ahead
        self._program = program
        self._plan = plan
        self._bounds = bounds
        self._graph = OperatorGraph.of(program)
        self._atoms = atoms_in_order(self._graph, bounds.definitions)
        self._candidates: dict[tuple[int, ...], Candidate] = {}
        self._planned: dict[object, P] = {}  # by class
        self._walk = _Walk()

    def run(self) -> tuple[Chosen[P], ...]:
        while self._looks_ahead:
            self._cover()
            missing = self._walk.missing
            self._looks_ahead = bool(missing)
            if missing:
                self._planned.update(zip(missing, self._plan([c.program for c in missing.values()]), strict=True))
        return tuple(Chosen(candidate, self._planned[candidate.key]) for candidate in self._cover())

    def _cover(self) -> list[Candidate]:
        """The candidates of a new walk, which knows nothing of the last one but what was planned."""
        self._walk = _Walk()
        found: list[Candidate] = []
        for island in self._graph.islands:
            if len(island) <= self._bounds.whole:
                whole = self._candidate(sorted(island))
                self._worth(whole)
                found.append(whole)
            else:
                found += self._cut([atom for atom in self._atoms if atom[0] in island])
        return found

    def _cut(self, atoms: Sequence[Atom]) -> list[Candidate]:
        """Candidates for atoms in this order."""
        found: list[Candidate] = []
        self._walk.is_adrift = False
        waiting = list(atoms)
        while waiting:
            run = self._launched_once(waiting)
            if run:
                found.append(self._joined(run))
            else:
                run = waiting[:1]
                while len(run) < len(waiting) and self._may_grow(run, waiting[len(run)]):
                    run.append(waiting[len(run)])
                # Where candidates begin has to be known, or many that are large would be planned for nothing.
                found += [] if self._walk.is_adrift else self._settled(run)
            waiting = waiting[len(run) :]
        return found

    def _launched_once(self, atoms: Sequence[Atom]) -> list[Atom]:
        """As many of the first atoms as one candidate may have, where that is one kernel that takes no longer than two
        launches: whatever is cut takes longer. No atoms otherwise; most often what they take alone tells.
        """
        if self._alone is None:
            return []
        run: list[Atom] = []
        for atom in atoms:
            if run and (not _fits(run, atom, self._bounds.definitions) or self._nearest(run, atom) is None):
                break
            run.append(atom)
        if len(run) == 1 or sum(self._alone.work[member] for atom in run for member in atom) > self._alone.launch:
            return []
        if self._walk.is_adrift:
            return run
        worth = self._worth(self._joined(run))
        return run if worth.kernels == 1 and worth.seconds <= 2 * self._alone.launch else []

    def _nearest(self, run: Sequence[Atom], atom: Atom) -> int | None:
        """The place of the last atom of a run that has something to gain from another."""
        return next((p for p in reversed(range(len(run))) if self._graph.meet(run[p], atom)), None)

    def _may_grow(self, run: list[Atom], atom: Atom) -> bool:
        """Whether an atom joins a run: planned with its nearest neighbour in the run it is no worse than apart."""
        most = min(self._bounds.grown, self._bounds.definitions)
        place = self._nearest(run, atom) if _fits(run, atom, most) else None
        if place is None:
            return False
        near = run[place]
        if not self._graph.is_convex([*near, *atom]):
            near = [member for between in run[place:] for member in between]
        together = self._candidate([*near, *atom])
        kind = together.kind
        if kind not in self._walk.grows:
            apart = [self._candidate(near), self._candidate(atom)]
            self._walk.grows[kind] = self._is_no_worse(together, apart)
            if any(part.key in self._walk.missing for part in (together, *apart)):
                self._walk.guessed.add(kind)
        self._walk.is_adrift |= kind in self._walk.guessed
        return self._walk.grows[kind]

    def _settled(self, run: list[Atom]) -> list[Candidate]:
        """A run as one candidate; where its plan is worse than those of its atoms and pairs of them, its halves if
        theirs are better.
        """
        whole = self._joined(run)
        self._worth(whole)
        if len(run) <= 2:
            return [whole]
        kind = whole.kind
        if kind not in self._walk.is_whole:
            self._walk.is_whole[kind] = self._is_no_worse(whole, self._parts(run))
        if self._walk.is_whole[kind]:
            return [whole]
        halves = [*self._settled(run[: len(run) // 2]), *self._settled(run[len(run) // 2 :])]
        return [whole] if self._is_no_worse(whole, halves) else halves

    def _parts(self, run: list[Atom]) -> Sequence[Candidate]:
        """The fastest parts of a run of one atom or two each, of pairs those that were asked for already."""
        fastest: list[tuple[float, list[Candidate]]] = [(0.0, [])]
        for end in range(1, len(run) + 1):
            options = [(end - 1, self._joined(run[end - 1 : end]))]
            pair = self._joined(run[end - 2 : end]) if end > 1 else None
            if pair is not None and pair.key in self._walk.asked:
                options.append((end - 2, pair))
            splits = [(fastest[s][0] + self._worth(part).seconds, [*fastest[s][1], part]) for s, part in options]
            fastest.append(min(splits, key=lambda split: split[0]))
        return fastest[-1][1]

    def _joined(self, run: Sequence[Atom]) -> Candidate:
        return self._candidate([member for atom in run for member in atom])

    def _candidate(self, members: Sequence[int]) -> Candidate:
        key = tuple(members)
        if key not in self._candidates:
            self._candidates[key] = make_candidate(self._program, self._graph, members)
        return self._candidates[key]

    def _worth(self, candidate: Candidate) -> _Worth:
        """What a candidate's plan comes to, which is made now if it has to be."""
        self._walk.asked.add(candidate.key)
        if candidate.key not in self._planned:
            if self._looks_ahead:
                self._walk.missing[candidate.key] = candidate
                return _HOPED_FOR
            (self._planned[candidate.key],) = self._plan([candidate.program])
        plan = self._planned[candidate.key].fused
        return _Worth(plan.seconds, len(plan.kernels.kernels))

    def _is_no_worse(self, whole: Candidate, parts: Sequence[Candidate]) -> bool:
        """Whether one plan is faster than several, or as fast as far as the model tells, with fewer kernels."""
        apart = [self._worth(part) for part in parts]
        together = self._worth(whole)
        seconds = sum(part.seconds for part in apart)
        if together.kernels < sum(part.kernels for part in apart):
            return together.seconds <= seconds * (1 + self._tolerance)
        return together.seconds < seconds


def _fits(run: Sequence[Atom], atom: Atom, most: int) -> bool:
    """Whether a run has at most so many definitions with another atom."""
    return sum(map(len, run)) + len(atom) <= most
