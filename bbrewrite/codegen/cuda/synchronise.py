"""Puts barriers and waits between steps, and lets loops begin their copies ahead of the iteration that needs them.

A barrier goes where a step reads a tile that was written since the last one, or writes one that was read or written.
Copies are waited for where one of their tiles is first used. What one iteration of a loop leaves to the next is found
by going through its body until nothing new turns up. Before a loop threads wait for what its iterations would each wait
for again, but not for what these wait for on account of each other.

A loop with copies of its own, and no others inside, gets rings: each of its tiles has several copies, filled in turn.
A list with a tile for each iteration needs none. At the top of every iteration all threads wait, once, for the copies
of this iteration and for each other; then the copies for a later one begin, into tiles that nobody reads any more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bbrewrite.codegen.cuda.steps import (
    Barrier,
    FinishCopies,
    Fold,
    GpuKernel,
    Product,
    Repeat,
    Stage,
    Step,
    Tile,
    TileView,
    WaitForCopies,
    tiles_read,
    tiles_written,
    walk_steps,
)


def with_rings(kernel: GpuKernel, copies: int) -> GpuKernel:
    """The kernel with rings of so many copies in the loops that can have them; 1 gives loops over lists alone."""
    rings: dict[str, Tile] = {}
    steps = tuple(_ringed(step, copies, rings) for step in kernel.steps)
    return replace(
        kernel,
        steps=tuple(_renewed(step, rings) for step in steps),
        tiles=tuple(rings.get(tile.name, tile) for tile in kernel.tiles),
    )


def with_barriers(kernel: GpuKernel) -> GpuKernel:
    """The kernel with every wait that it needs."""
    tiles = {tile.name for tile in kernel.tiles} | {scratch.name for scratch in kernel.scratch}
    state = _State()
    steps = _synchronised(kernel.steps, state, frozenset(tiles))
    # A thread may not end while copies are under way.
    return replace(kernel, steps=(*steps, FinishCopies()) if state.in_flight else steps)


def _ringed(step: Step, copies: int, rings: dict[str, Tile]) -> Step:
    if not isinstance(step, Repeat):
        return step
    body = tuple(_ringed(inner, copies, rings) for inner in step.body)
    inside = any(isinstance(inner, Repeat) and _copies(inner) for inner in body)
    # A loop that only fills a list is best left to begin all its copies at once.
    read = frozenset(name for inner in walk_steps(body) for name in tiles_read(inner))
    stages = [inner for inner in body if isinstance(inner, Stage) and inner.tile.name in read]
    ahead = tuple(stage for stage in stages if _changes_with(stage, step.index))
    ringed = [stage.tile for stage in ahead if not stage.tile.list_indices]
    if inside or step.unrolled or not ahead or (ringed and copies < 2):
        return replace(step, body=body)
    rings |= {tile.name: replace(tile, copies=copies) for tile in ringed}
    left = tuple(inner for inner in body if inner not in ahead)
    return replace(step, body=left, ahead=ahead, distance=max(1, copies - 1))


def _changes_with(stage: Stage, index: str) -> bool:
    """Whether each iteration copies another block to a tile of its own, or to one that can have several."""
    lists = stage.tile.list_indices
    return index in lists if lists else index in stage.source.free


def _copies(step: Step) -> bool:
    return any(isinstance(inner, Stage) for inner in walk_steps((step,)))


def _renewed(step: Step, rings: dict[str, Tile]) -> Step:
    """The step with its tiles replaced by rings."""

    def renewed(view: TileView) -> TileView:
        return replace(view, tile=rings.get(view.tile.name, view.tile))

    match step:
        case Repeat():
            ahead = tuple(replace(stage, tile=rings.get(stage.tile.name, stage.tile)) for stage in step.ahead)
            return replace(step, body=tuple(_renewed(inner, rings) for inner in step.body), ahead=ahead)
        case Product():
            left = renewed(step.left) if isinstance(step.left, TileView) else step.left
            return replace(step, left=left, right=renewed(step.right))
        case _:
            return step


@dataclass
class _State:
    """What happened since the last barrier, by names of tiles."""

    read: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()
    in_flight: frozenset[str] = frozenset()

    def conflicts(self, reads: frozenset[str], writes: frozenset[str]) -> bool:
        return bool(reads & self.written or writes & (self.read | self.written))

    def barrier(self) -> None:
        self.read = self.written = frozenset()

    def wait(self) -> None:
        self.barrier()
        self.in_flight = frozenset()

    def arrived(self) -> _State:
        """What it is for a thread whose own copies have arrived."""
        return _State(self.read, self.written | self.in_flight)

    def joined(self, other: _State) -> _State:
        return _State(self.read | other.read, self.written | other.written, self.in_flight | other.in_flight)

    def copied(self) -> _State:
        return replace(self)

    def become(self, other: _State) -> None:
        self.read, self.written, self.in_flight = other.read, other.written, other.in_flight


def _synchronised(steps: tuple[Step, ...], state: _State, tiles: frozenset[str]) -> tuple[Step, ...]:
    result: list[Step] = []
    for step in steps:
        if isinstance(step, Repeat):
            result += _loop(step, state, tiles)
            continue
        reads, writes = tiles_read(step) & tiles, tiles_written(step)
        if isinstance(step, Stage) and step.tile.list_indices:
            # Another tile of the list, so that only readers of the whole list matter.
            writes &= state.read
        if (reads | writes) & state.in_flight:
            result.append(WaitForCopies())
            state.wait()
        elif state.conflicts(reads, writes):
            result.append(Barrier())
            state.barrier()
        result.append(step)
        if isinstance(step, Stage):
            state.in_flight |= {step.tile.name}
        elif isinstance(step, Fold) and step.scratch is not None:
            # Such a fold waits by itself, between the warps' results and the whole.
            state.barrier()
            state.read |= writes
        else:
            state.read |= reads
            state.written |= writes
    return tuple(result)


def _loop(loop: Repeat, state: _State, tiles: frozenset[str]) -> list[Step]:
    # A ring's iterations wait for all copies that are under way, but its own first ones begin before that.
    ahead = frozenset(stage.tile.name for stage in loop.ahead)
    inside = () if loop.ahead else tuple(walk_steps(loop.body))
    used = frozenset(name for step in inside for name in tiles_read(step) | tiles_written(step))
    has_copies = bool(used & state.in_flight)
    ready = state.copied()
    ready.wait() if has_copies else ready.barrier()
    body, after = _repeated(loop, ready, tiles)
    # Waiting once before the loop is better than in each of its iterations, but what these do anyhow need not be done.
    choices: list[tuple[list[Step], _State]] = [([], state)]
    if has_copies:
        choices.append(([FinishCopies()], state.arrived()))
    if not state.conflicts(frozenset(), ahead):
        for before, entered in choices:
            same, left = _repeated(loop, entered, tiles)
            if same == body:
                state.become(left)
                return [*before, replace(loop, body=body)]
    state.become(after)
    return [WaitForCopies() if has_copies else Barrier(), replace(loop, body=body)]


def _repeated(loop: Repeat, entered: _State, tiles: frozenset[str]) -> tuple[tuple[Step, ...], _State]:
    """The body of a loop that is entered so, and what the loop leaves."""
    while True:
        inner = entered.copied()
        if loop.ahead:
            inner.wait()
        body = _synchronised(loop.body, inner, tiles)
        again = entered.joined(inner)
        if again == entered:
            break
        entered = again
    # Without bounds or shares there is an iteration: extents are at least 1.
    return body, entered if loop.bounds is not None or loop.share else inner
