"""Plans a program without and with rules: what is generated, compared and reported starts from here.

Pure functions from a request to plans and their times; a large program is planned in parts. The unfused program goes
through the very same stages with an empty rule set. Building and running kernels is `pipeline.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bbrewrite.candidates.assemble import assemble
from bbrewrite.candidates.cover import Alone, Bounds, Chosen, cover
from bbrewrite.candidates.subprogram import class_key
from bbrewrite.core.printing import print_shared_program
from bbrewrite.core.programs import BlockProgram
from bbrewrite.egraph.inline import inline
from bbrewrite.egraph.prepared import PreparedEngines
from bbrewrite.egraph.saturate import saturate
from bbrewrite.egraph.siblings import sibling_pairs
from bbrewrite.egraph.view import FrozenGraph, SaturationReport, united_reports
from bbrewrite.garbage import rare_collections
from bbrewrite.host import host_target
from bbrewrite.plan.alternatives import PlanSpace
from bbrewrite.plan.machine import Machine
from bbrewrite.plan.planner import Planner, preferred
from bbrewrite.plan.plans import Plan
from bbrewrite.plan.repeated_loads import repeated_load_notes
from bbrewrite.plan.scheduling.schedules import KnownSchedules, Schedules
from bbrewrite.plan.target import Target
from bbrewrite.request import Request
from bbrewrite.rules.rules import RuleSet
from bbrewrite.runtime.library import default_threads
from bbrewrite.timing import timed
from bbrewrite.tuning.store import Winner, kept_winner, tuning_notes
from bbrewrite.workers import Workers


@dataclass(frozen=True)
class Movement:
    """What a planned program moves and computes: counts, bytes and operations for the extents at hand.

    `local_bytes` is the local memory of the kernel that needs most, on one processor; `skipped_share` the share of
    their work that masks let loops skip, as far as it follows from extents, None where no loop is narrowed.
    """

    kernels: int
    buffers: int
    global_bytes: int
    flops: int
    local_bytes: int
    skipped_share: float | None


@dataclass(frozen=True)
class Fusion:
    """A program planned without and with rules. Times, in milliseconds, are those of the form with rules.

    A large program is planned in parts, and `cover` has its candidates, each with the fusion of its class; that of a
    small one, or of a class, has no candidates but a graph; and a `winner` where its fused form was found by tuning.
    """

    request: Request
    unfused: Plan
    fused: Plan
    saturation: SaturationReport
    saturate_ms: float
    extract_ms: float
    graph: FrozenGraph | None = None
    winner: Winner | None = None
    cover: tuple[Chosen[Fusion], ...] = ()

    @property
    def classes(self) -> tuple[Fusion, ...]:
        """The fusions that were planned: this one, or those of the classes of candidates, each once."""
        return tuple({id(chosen.planned): chosen.planned for chosen in self.cover}.values()) or (self,)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the report: on choices that were changed, and on what the plan had to do without."""
        winners = [part.winner for part in self.classes if part.winner is not None]
        request = self.request
        repeated = repeated_load_notes(self.fused, request.extents, request.threads, request.rules.table)
        return (*request.notes, *self.saturation.notes, *self.fused.notes, *repeated, *tuning_notes(winners))

    @property
    def keeps_unfused(self) -> bool:
        """Whether the plan is the unfused program, so that no rule has a part in it."""
        kernels = [len(plan.kernels.kernels) for plan in (self.fused, self.unfused)]
        return self.fused.fused == self.unfused.fused and kernels[0] == kernels[1]

    @property
    def rules_applied(self) -> dict[str, int]:
        """How often each rule matched in what was planned by rules; none where the plan is the unfused program."""
        applied: Counter[str] = Counter()
        for part in self.classes:
            if not part.keeps_unfused:
                applied.update({name: count for name, count in part.saturation.rules_applied.items() if count})
        return dict(applied)

    @property
    def text(self) -> str:
        """The fused block program, as it parses back."""
        return print_shared_program(self.fused.fused, self.request.rules.table)

    @property
    def sizes(self) -> dict[str, int]:
        """The extent of every index that the program declares."""
        indices = self.request.program.indices
        return {index.name: self.request.extents[indices.root(index.name)] for index in indices}

    @property
    def before(self) -> Movement:
        return _movement(self.unfused)

    @property
    def after(self) -> Movement:
        return _movement(self.fused)


@dataclass(frozen=True)
class Snapshot:
    """One of the plans from which the planner chooses, with its estimated time."""

    movement: Movement
    seconds: float
    chosen: bool


@rare_collections()
def fuse(request: Request, target: Target | None = None, bounds: Bounds | None = None) -> Fusion:
    """Plans the program with and without the rules, for the host or another target.

    Raises InputError where rules prove unsound.

    A program of more definitions than one candidate may have is planned in parts; `bounds` are for tests.
    """
    bounds = bounds or Bounds()
    if len(request.blocks.definitions) <= bounds.whole:
        return _fuse_whole(request, target)
    blocks = replace(request.blocks, indices=request.blocks.indices.with_extents(request.extents))
    shared = _Shared(KnownSchedules(), PreparedEngines(blocks))
    alone = _UnfusedPlans(request, target, shared)
    unfused_parts = alone.parts(blocks)
    unfused = _assembled(blocks, unfused_parts)
    machine = _machine(request, target).target
    launch = machine.launch_seconds
    work = {
        member: (part.planned.fused.seconds - launch * len(part.planned.fused.kernels.kernels))
        / len(part.candidate.members)
        for part in unfused_parts
        for member in part.candidate.members
    }
    processors = default_threads()
    start = (_request_of(request, blocks), target, shared.schedules)
    with Workers("bbrewrite.fusion:part_planner", start, processors) as workers:
        plans = _PartPlans(request, target, alone, workers)
        found, cover_ms = timed(
            lambda: cover(blocks, plans, bounds, Alone(work, launch), machine.tolerance, looks_ahead=processors > 1)
        )
    fused = _assembled(blocks, found)
    if request.rules.rules:
        fused = _with_note_if_alike(fused, unfused)
    # Processes that plan side by side take less time than all of them together.
    saturate_ms = cover_ms * plans.share_of_saturation
    fusion = Fusion(request, unfused, fused, united_reports([]), saturate_ms, cover_ms - saturate_ms, cover=found)
    return replace(fusion, saturation=united_reports([part.saturation for part in fusion.classes]))


@dataclass(frozen=True)
class _Shared:
    """What the parts of a large program find once for all of them."""

    schedules: KnownSchedules
    engines: PreparedEngines


class _UnfusedPlans:
    """Plans in which every definition is a kernel of its own. Definitions that are alike are planned once in all."""

    def __init__(self, request: Request, target: Target | None, shared: _Shared) -> None:
        self._request = replace(request, rules=replace(request.rules, rules=()))
        self._target = target
        self._planned_before: dict[object, Fusion] = {}  # by class
        self.shared = shared

    def of(self, program: BlockProgram) -> Plan:
        """The unfused plan of a program that names all its extents."""
        return _assembled(program, self.parts(program))

    def parts(self, program: BlockProgram) -> tuple[Chosen[Fusion], ...]:
        """The definitions of a program that names all its extents, each a candidate of its own."""
        return cover(program, self._planned, Bounds(0, 1))

    def _planned(self, definitions: Sequence[BlockProgram]) -> list[Fusion]:
        return [self._one(definition) for definition in definitions]

    def _one(self, definition: BlockProgram) -> Fusion:
        key = class_key(definition)
        if key not in self._planned_before:
            request = _request_of(self._request, definition)
            self._planned_before[key] = _fuse_whole(request, self._target, shared=self.shared)
        return self._planned_before[key]


def _assembled(program: BlockProgram, parts: Sequence[Chosen[Fusion]]) -> Plan:
    return assemble(program, [(chosen.candidate, chosen.planned.fused) for chosen in parts])


@dataclass(frozen=True)
class _PartPlan:
    """What planning a candidate gives that its request and its unfused plan do not."""

    fused: Plan
    saturation: SaturationReport
    saturate_ms: float
    extract_ms: float
    graph: FrozenGraph | None
    winner: Winner | None


type _Part = tuple[BlockProgram, Plan]  # a candidate's own program and its unfused plan


class _PartPlans:
    """Plans candidates, several at a time where other processes help."""

    def __init__(self, request: Request, target: Target | None, unfused: _UnfusedPlans, workers: Workers) -> None:
        self._request = request
        self._unfused = unfused
        self._here = _planner_of_parts(request, target, unfused.shared)
        self._workers = workers
        self._saturate_ms = 0.0
        self._extract_ms = 0.0

    def __call__(self, programs: Sequence[BlockProgram]) -> list[Fusion]:
        """The fusions of candidates' own programs."""
        parts: dict[int, _Part] = {n: (program, self._unfused.of(program)) for n, program in enumerate(programs)}
        longest_first = sorted(parts, key=lambda number: len(programs[number].definitions), reverse=True)
        plans = self._workers.results([parts[number] for number in longest_first], self._here)
        self._saturate_ms += sum(plan.saturate_ms for plan in plans)
        self._extract_ms += sum(plan.extract_ms for plan in plans)
        found = dict(zip(longest_first, plans, strict=True))
        return [self._fusion(*parts[number], found[number]) for number in parts]

    @property
    def share_of_saturation(self) -> float:
        """How much of the time went into saturation rather than extraction."""
        return self._saturate_ms / (self._saturate_ms + self._extract_ms)

    def _fusion(self, program: BlockProgram, unfused: Plan, plan: _PartPlan) -> Fusion:
        times = (plan.saturate_ms, plan.extract_ms)
        request = _request_of(self._request, program)
        return Fusion(request, unfused, plan.fused, plan.saturation, *times, plan.graph, plan.winner)


def part_planner(start: tuple[Request, Target | None, KnownSchedules]) -> Callable[[_Part], _PartPlan]:
    """What plans candidates in another process, from a request for the whole program."""
    request, target, schedules = start
    return _planner_of_parts(request, target, _Shared(schedules, PreparedEngines(request.blocks)))


def _planner_of_parts(request: Request, target: Target | None, shared: _Shared) -> Callable[[_Part], _PartPlan]:
    @rare_collections()
    def plan(part: _Part) -> _PartPlan:
        program, unfused = part
        found = _fuse_whole(_request_of(request, program), target, unfused, shared)
        times = (found.saturate_ms, found.extract_ms)
        return _PartPlan(found.fused, found.saturation, *times, found.graph, found.winner)

    return plan


def _request_of(request: Request, part: BlockProgram) -> Request:
    """The request for a candidate alone."""
    extents = {index.name: index.extent for index in part.indices if index.extent is not None}
    return replace(request, program=part, blocks=part, extents=extents, given={}, notes=(), of_candidate=True)


def _fuse_whole(
    request: Request, target: Target | None, unfused: Plan | None = None, shared: _Shared | None = None
) -> Fusion:
    """Plans a program as one candidate; its unfused form too, unless that is known."""
    blocks, rules = request.blocks, request.rules
    inlined = inline(blocks)
    given = (inlined.roots, inlined.indices, blocks.tensors, blocks.assumptions)
    known, engines = (shared.schedules, shared.engines) if shared else (None, None)

    def planned(rules: RuleSet) -> tuple[Plan, FrozenGraph, float, float]:
        pairs = sibling_pairs(blocks)
        graph, saturate_ms = timed(
            lambda: saturate(*given, rules, siblings=pairs, fast_math=request.fast_math, prepared=engines)
        )
        plan, extract_ms = timed(
            lambda: Planner(graph, blocks, inlined.roots, schedules, request.of_candidate).chosen()
        )
        return plan, graph, saturate_ms, extract_ms

    # The unfused plan is among those that fusion chooses from, so its kernels are scheduled once for both forms.
    schedules = Schedules(inlined.indices, rules.table, _machine(request, target), known)
    if unfused is None and rules.rules:
        unfused = planned(replace(rules, rules=()))[0]
    fused, graph, saturate_ms, extract_ms = planned(rules)
    unfused = unfused or fused
    if rules.rules and not request.of_candidate:
        # Limits may leave rules with less than is found without them. Of a candidate the note would be read as if it
        # spoke of the whole program.
        fused = _with_note_if_alike(preferred([fused, unfused], schedules.machine.target.tolerance), unfused)
    fusion = Fusion(request, unfused, fused, graph.report, saturate_ms, extract_ms, graph)
    return _as_tuned(fusion, schedules) if target is None and request.tuned and rules.rules else fusion


def _with_note_if_alike(fused: Plan, unfused: Plan) -> Plan:
    """The plan of a whole program, with a sentence where none of its several kernels was fused."""
    if not 1 < len(fused.kernels.kernels) == len(unfused.kernels.kernels):
        return fused
    cheapest_found = f"{unfused.seconds * 1e3:.3g} ms, estimated"
    note = f"nothing was fused: no plan was found that takes less time than the unfused program ({cheapest_found})"
    return replace(fused, notes=(*fused.notes, note))


def _as_tuned(fusion: Fusion, schedules: Schedules) -> Fusion:
    """The fusion with the plan that tuning found fastest, where it was tuned and the plan is still there."""
    winner = kept_winner(fusion.request)
    if winner is None:
        return fusion
    if winner.choice == fusion.fused.choice:
        return replace(fusion, winner=winner)
    followed = plan_space(fusion, schedules).followed(winner.choice)
    return fusion if followed is None else replace(fusion, fused=followed, winner=winner)


def plan_space(fusion: Fusion, schedules: Schedules | None = None) -> PlanSpace:
    """The plans of a program planned as a whole that could be measured. `schedules` may have some of its kernels'."""
    request = fusion.request
    assert fusion.graph is not None
    inlined = inline(request.blocks)
    schedules = schedules or Schedules(inlined.indices, request.rules.table, _machine(request, None))
    return PlanSpace(fusion.graph, request.blocks, inlined.roots, schedules, request.of_candidate)


def _machine(request: Request, target: Target | None) -> Machine:
    """The host with the threads asked for, or all of another target's processors."""
    if target is None:
        return Machine.running(request.blocks, host_target(), request.threads, request.extents)
    return Machine.running(request.blocks, target, target.processors, request.extents)


def snapshot_plans(fusion: Fusion) -> tuple[Plan, ...]:
    """The plans worth measuring of a program planned as a whole: those that nothing beats in buffers, bytes,
    operations and local memory together.
    """
    return plan_space(fusion).pareto()


def candidate_movements(fusion: Fusion) -> tuple[Snapshot, ...]:
    """What each of the plans worth measuring moves; exactly one, or one of each class, is the chosen one."""
    if fusion.graph is None:
        return tuple(row for part in fusion.classes for row in candidate_movements(part))
    plans = snapshot_plans(fusion)
    return tuple(Snapshot(_movement(plan), plan.seconds, chosen=plan is plans[0]) for plan in plans)


def _movement(plan: Plan) -> Movement:
    return Movement(
        len(plan.kernels.kernels),
        len(plan.kernels.buffers),
        round(plan.global_bytes),
        round(plan.flops),
        round(plan.local_bytes),
        plan.skipped_share,
    )
