"""Looks for the fastest plan by measurement, within a time budget.

First the plans that store other lists are measured, then, around the fastest so far, the same with loops unrolled and
other schedules of its kernels, in the order in which the model expects them to be fast. Candidates are built a few at a
time and take turns with the best so far, so that all meet the same disturbances; only one that stays ahead in a second
round of more runs takes its place. A candidate whose results are wrong is set aside, whatever its time. A large program
is tuned class by class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import Any

import numpy.typing as npt

from bbrewrite.codegen.cpp.program import Source, print_programs
from bbrewrite.core.arrays import ArrayProgram
from bbrewrite.fusion import Fusion, fuse, plan_space
from bbrewrite.inputs import draw_inputs
from bbrewrite.lang.diagnostics import Diagnostic, InputError, counted
from bbrewrite.memory import check_memory
from bbrewrite.plan.plans import Plan
from bbrewrite.request import Request
from bbrewrite.runtime.library import CompiledProgram
from bbrewrite.runtime.module import build_all, signature_of
from bbrewrite.timing import run_in_turns
from bbrewrite.tuning.store import Winner, keep_winner
from bbrewrite.verify.compare import compare_outputs, hold_nan
from bbrewrite.verify.exact import evaluate_exactly

type Array = npt.NDArray[Any]
type Outputs = dict[str, Array]

# What the model expects to take so much longer than the plan it would choose is not measured.
_MOST_EXPECTED = 2.0
# A plan that is faster by less than this is not told from the other.
_AHEAD = 0.98
_BATCH = 2  # built and measured together
_RUNS, _RUNS_MS = 9, 400.0
_FINAL_RUNS, _FINAL_MS = 25, 1200.0


@dataclass(frozen=True)
class Tuned:
    """What came of tuning one program, or one class of a large one. Times are lower quartiles of runs in turns.

    `wrong` counts the candidates that were set aside for their results.
    """

    name: str
    winner: Winner
    wrong: int

    @property
    def is_own(self) -> bool:
        """Whether the model's own choice was not beaten."""
        return self.winner.milliseconds == self.winner.own_milliseconds


def tune(
    request: Request, budget: float, seed: int, step: Callable[[str], None] = lambda _: None
) -> tuple[Fusion, tuple[Tuned, ...]]:
    """Tunes a program for the host and keeps what was found for later runs; also returns the model's own fusion.

    `budget` is in seconds, shared among classes. `step` is told how things stand. Raises InputError, and
    CompilerMissing.
    """
    check_memory(request.blocks, request.extents)
    if 0 in request.extents.values():
        empty = next(name for name, extent in request.extents.items() if extent == 0)
        raise InputError([Diagnostic("empty", f"--tune: size({empty}) is 0, so there is nothing to measure")])
    step("saturating and planning")
    fusion = fuse(replace(request, tuned=False))
    found: list[Tuned] = []
    end = monotonic() + budget
    for number, part in enumerate(fusion.classes):
        share = (end - monotonic()) / (len(fusion.classes) - number)
        name = request.program.name if len(fusion.classes) == 1 else f"class {number + 1} of {len(fusion.classes)}"
        tuned = _Tuner(part, seed, name, monotonic() + share, step).run()
        if tuned is not None:
            keep_winner(part.request, tuned.winner)
            found.append(tuned)
    return fusion, tuple(found)


@dataclass(frozen=True)
class _Contender:
    """A plan that was built and whose results are right."""

    plan: Plan
    call: Callable[[], Outputs]


class _Tuner:
    """Tunes what is planned as a whole."""

    def __init__(self, part: Fusion, seed: int, name: str, end: float, step: Callable[[str], None]) -> None:
        self._part = part
        self._request = part.request
        self._name = name
        self._end = end
        self._step = step
        self._arrays = draw_inputs(self._request.program, self._request.extents, seed, self._request.given)
        self._seen: set[str] = set()  # texts of sources: other choices may come to the same code
        self._measured = 0
        self._wrong = 0

    def run(self) -> Tuned | None:
        """The fastest plan found; None where the model's own choice gives wrong results, which is no matter of time."""
        space = plan_space(self._part)
        chosen, *others = space.pareto()
        self._step(f"{self._name}: evaluating the reference")
        self._unfused = self._built([self._source(self._part.unfused)])[0]()
        self._reference = self._exact_outputs()
        own = next((contender for batch in self._batches([chosen]) for contender in batch), None)
        if own is None:
            return None
        best = self._fastest(own, others)
        while (better := self._fastest(best, space.near(best.plan), first_only=True)) is not best:
            best = better
        own_ms, best_ms = self._times([own, best], _FINAL_RUNS, _FINAL_MS)
        if best is own or best_ms > own_ms * _AHEAD:
            best, best_ms = own, own_ms
        return Tuned(self._name, Winner(best.plan.choice, best_ms, own_ms, self._measured), self._wrong)

    def _fastest(self, best: _Contender, plans: Sequence[Plan], first_only: bool = False) -> _Contender:
        """The fastest of a contender and plans, as far as time allows; or the first plan that is faster."""
        limit = best.plan.seconds * _MOST_EXPECTED
        for batch in self._batches([plan for plan in plans if plan.seconds <= limit]):
            for found in batch:
                if self._is_ahead(found, best):
                    best = found
                    if first_only:
                        return best
        return best

    def _is_ahead(self, one: _Contender, other: _Contender) -> bool:
        """Whether a contender is faster, and again in a second round of more runs."""
        for runs in (_RUNS, _FINAL_RUNS):
            first, second = self._times([one, other], runs, _RUNS_MS)
            self._step(
                f"{self._name}: {counted(self._measured, 'plan')} measured, the best so far {second:.3g} ms,"
                f" {max(0, self._end - monotonic()):.0f} s left"
            )
            if first > second * _AHEAD:
                return False
        return True

    def _times(self, contenders: Sequence[_Contender], runs: int, milliseconds: float) -> tuple[float, ...]:
        found = run_in_turns([contender.call for contender in contenders], runs, milliseconds)
        # What else the machine does only adds: the lower quartile is steadier than the median or a single best run.
        return tuple(sorted(times)[len(times) // 4] for _, times in found)

    def _batches(self, plans: Sequence[Plan]) -> Iterator[list[_Contender]]:
        """The plans that are new and right, a few at a time, until time is up."""
        fresh: list[tuple[Plan, Source]] = []
        for position, plan in enumerate(plans):
            source = self._source(plan)
            if source.text not in self._seen:
                self._seen.add(source.text)
                fresh.append((plan, source))
            if len(fresh) == _BATCH or (fresh and position + 1 == len(plans)):
                calls = self._built([source for _, source in fresh])
                contenders = [_Contender(plan, call) for (plan, _), call in zip(fresh, calls, strict=True)]
                right = [contender for contender in contenders if self._is_right(contender.call())]
                self._measured += len(right)
                self._wrong += len(contenders) - len(right)
                fresh = []
                yield right
            if monotonic() > self._end:
                return

    def _source(self, plan: Plan) -> Source:
        return print_programs([plan.kernels], self._request.rules.table)

    def _built(self, sources: Sequence[Source]) -> list[Callable[[], Outputs]]:
        kernels = self._part.unfused.kernels  # inputs and outputs are those of every plan
        extents, threads = self._request.extents, self._request.threads
        calls: list[Callable[[], Outputs]] = []
        for source, library in zip(sources, build_all(sources), strict=True):
            program = CompiledProgram(signature_of(kernels, source.entry_points[0]), library)
            out = program.run(self._arrays, extents, threads)
            calls.append(partial(program.run, self._arrays, extents, threads, out))
        return calls

    def _exact_outputs(self) -> Mapping[str, Array]:
        """The reference; of a part of a program, which no text defines, what its unfused form gives."""
        request = self._request
        if isinstance(request.program, ArrayProgram):
            return evaluate_exactly(request.program, self._arrays, request.extents, request.rules.table)
        return {name: array.copy() for name, array in self._unfused.items()}

    def _is_right(self, outputs: Outputs) -> bool:
        elements = {tensor.name: tensor.element for tensor in self._request.blocks.outputs}
        return compare_outputs(elements, outputs, self._unfused, self._reference, hold_nan(self._arrays.values())).ok
