"""Waits in random steps, judged by going through them: enough on every path, and none that could be left out.

The judge knows nothing of how waits are found. It takes loops apart into what threads do, iteration by iteration, and
remembers who read or wrote each tile since the threads last waited for each other.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from bbrewrite.codegen.cuda.steps import (
    Assign,
    Barrier,
    FinishCopies,
    Fold,
    GpuKernel,
    Publish,
    Repeat,
    Scratch,
    Stage,
    Step,
    Tile,
    WaitForCopies,
    tiles_read,
    tiles_written,
    walk_steps,
)
from bbrewrite.codegen.cuda.synchronise import with_barriers, with_rings
from bbrewrite.core.elements import Element
from bbrewrite.core.terms import Apply, Local
from bbrewrite.plan.masks.visible import LoopBounds
from tests.codegen.kernel_cases import block, read

_KINDS = ("stage", "stage", "publish", "fold", "compute", "compute", "loop", "loop", "list")
_COUNT = 100
_PATHS = 200
_COPIES = (1, 2, 3)
_REGISTERS = block("registers", "m")
_SCRATCH = Scratch("partial", "", Element.F32)

type _Place = tuple[str, tuple[int, ...]]


class _RandomSteps:
    """Steps in loops up to three deep. Each tile is filled in one place and read after it; lists have loops to fill."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._indices = 0
        self.tiles: list[Tile] = []

    def body(self, around: tuple[str, ...] = (), known: tuple[Tile, ...] = ()) -> tuple[Step, ...]:
        """The steps of a kernel, or of a loop inside of others, where tiles are known."""
        before = known
        steps: list[Step] = []
        for _ in range(self._draw.randint(2, 4)):
            match self._draw.choice(_KINDS):
                case "stage":
                    known = (*known, self._tile())
                    changing = around if self._draw.random() < 0.8 else around[:-1]
                    steps.append(Stage(known[-1], read("X", *changing)))
                case "publish":
                    known = (*known, self._tile())
                    steps.append(Publish(known[-1], _REGISTERS))
                case "fold":
                    scratch = self._draw.choice((None, _SCRATCH))
                    steps.append(Fold(_REGISTERS, Apply("row_sum", (self._leaf(around, known),)), scratch))
                case "list" if len(around) < 2:
                    index = self._index()
                    known = (*known, self._tile(index))
                    steps.append(Repeat(index, (Stage(known[-1], read("X", *around, index)),)))
                case "loop" if len(around) < 3:
                    lists = [index for tile in known for index in tile.list_indices if index not in around]
                    index = self._draw.choice((*lists, self._index()))
                    bounds = self._draw.choice((None, LoopBounds()))
                    steps.append(Repeat(index, self.body((*around, index), known), bounds=bounds))
                case _:
                    steps.append(Assign(_REGISTERS, self._leaf(around, known)))
        return (*steps, *(self._read_in_full(tile) for tile in known if tile not in before))

    def _read_in_full(self, tile: Tile) -> Step:
        step = Assign(_REGISTERS, Local(tile.name, tile.list_indices))
        return Repeat(tile.list_indices[0], (step,)) if tile.list_indices else step

    def _leaf(self, around: tuple[str, ...], known: tuple[Tile, ...]) -> Local:
        readable = [tile for tile in known if set(tile.list_indices) <= set(around)]
        if not readable:
            return Local(_REGISTERS.name)
        tile = self._draw.choice(readable)
        return Local(tile.name, tile.list_indices)

    def _tile(self, *lists: str) -> Tile:
        self.tiles.append(Tile(f"tile_{len(self.tiles)}", ("m", "k"), Element.BF16, lists))
        return self.tiles[-1]

    def _index(self) -> str:
        self._indices += 1
        return f"i{self._indices}"


class _Path:
    """One way through a kernel's steps, loops going round as often as is drawn."""

    def __init__(self, kernel: GpuKernel, seed: int) -> None:
        self._draw = random.Random(seed)
        self._steps = kernel.steps
        self._tiles = {tile.name: tile for tile in kernel.tiles}
        self._numbers: dict[str, int] = {}
        self._rings = {
            stage.tile.name: step.index
            for step in walk_steps(kernel.steps)
            if isinstance(step, Repeat)
            for stage in step.ahead
        }
        self._read: set[_Place] = set()
        self._written: set[_Place] = set()
        self._groups: list[set[_Place]] = [set()]  # of copies under way; the last one is not committed

    def is_sound(self) -> bool:
        """Whether no thread comes too early, and all copies have arrived in the end."""
        return self._all(self._steps) and not any(self._groups)

    def _all(self, steps: tuple[Step, ...]) -> bool:
        return all(self._one(step) for step in steps)

    def _one(self, step: Step) -> bool:
        match step:
            case Repeat():
                return self._loop(step)
            case Barrier():
                self._meet()
            case WaitForCopies():
                self._wait()
                self._meet()
            case FinishCopies():
                self._wait()
            case Stage(tile):
                place = self._place(tile.name)
                is_sound = place not in self._read.union(self._written, *self._groups)
                self._groups[-1].add(place)
                return is_sound
            case _:
                return self._access(step)
        return True

    def _access(self, step: Step) -> bool:
        reads = {self._place(name) for name in tiles_read(step) & self._tiles.keys()}
        writes = {self._place(name) for name in tiles_written(step)}
        early = self._written.union(*self._groups)
        is_sound = not reads & early and not writes & (early | self._read)
        self._read |= reads
        self._written |= writes
        if isinstance(step, Fold) and step.scratch is not None:
            # All threads wait by themselves, to read what every warp has left.
            self._meet()
            self._read |= writes
        return is_sound

    def _loop(self, loop: Repeat) -> bool:
        count = self._draw.choice((1, 2, 3) if loop.bounds is None else (0, 1, 3))
        is_sound = all(self._begin(loop, number, count) for number in range(loop.distance))
        for number in range(count):
            if loop.ahead:
                self._wait(loop.distance - 1)
                self._meet()
                is_sound = is_sound and self._begin(loop, number + loop.distance, count)
            self._numbers[loop.index] = number
            is_sound = is_sound and self._all(loop.body)
        return is_sound

    def _begin(self, loop: Repeat, number: int, count: int) -> bool:
        self._numbers[loop.index] = number
        is_sound = number >= count or self._all(loop.ahead)
        self._groups.append(set())
        return is_sound

    def _place(self, name: str) -> _Place:
        """The tile, which of a list's it is, or of a ring's."""
        tile = self._tiles.get(name)
        if tile is None or (not tile.list_indices and tile.copies == 1):
            return name, ()
        if tile.list_indices:
            return name, tuple(self._numbers[index] for index in tile.list_indices)
        return name, (self._numbers[self._rings[name]] % tile.copies,)

    def _wait(self, pending: int | None = None) -> None:
        """For all copies, or all but so many groups. What has arrived is to other threads as if just written."""
        if pending is None:
            self._groups.append(set())
            pending = 0
        kept = len(self._groups) - 1 - pending
        self._written = self._written.union(*self._groups[:kept])
        self._groups = self._groups[kept:]

    def _meet(self) -> None:
        self._read.clear()
        self._written.clear()


def _kernel(seed: int) -> GpuKernel:
    drawn = _RandomSteps(seed)
    steps = drawn.body()
    kernel = GpuKernel(steps, (_REGISTERS,), tuple(drawn.tiles), (_SCRATCH,), frozenset(), frozenset())
    return with_barriers(with_rings(kernel, _COPIES[seed % len(_COPIES)]))


def _is_sound(kernel: GpuKernel) -> bool:
    return all(_Path(kernel, seed).is_sound() for seed in range(_PATHS))


def _weaker(steps: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    """The steps with one wait left out, or half of one that is for copies and for each other."""
    for position, step in enumerate(steps):
        before, after = steps[:position], steps[position + 1 :]
        match step:
            case Barrier() | FinishCopies():
                yield before + after
            case WaitForCopies():
                yield (*before, Barrier(), *after)
                yield (*before, FinishCopies(), *after)
            case Repeat():
                for body in _weaker(step.body):
                    yield (*before, replace(step, body=body), *after)
            case _:
                pass


@pytest.mark.parametrize("seed", range(_COUNT))
def test_threads_wait_where_they_must_and_nowhere_else(seed: int) -> None:
    kernel = _kernel(seed)
    assert _is_sound(kernel)
    for steps in _weaker(kernel.steps):
        assert not _is_sound(replace(kernel, steps=steps)), steps
