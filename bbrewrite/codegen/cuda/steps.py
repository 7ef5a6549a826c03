"""The steps of a kernel on a GPU: what a block of threads does together, one step after another.

Blocks are in registers, spread over the threads, or in tiles of shared memory, where every thread reads what it needs.
Steps say what moves and what is computed; where threads must wait for each other is added by `synchronise.py`, and
how a step looks in CUDA is the printers' business.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bbrewrite.core.elements import Element
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Apply, Local, Read, Term, walk
from bbrewrite.plan.kernel import LocalBlock
from bbrewrite.plan.masks.visible import LoopBounds


@dataclass(frozen=True)
class Tile:
    """A block in shared memory, stored as `element`. With `list_indices` there is one for each of their positions.

    A tile filled in rings has `copies` that are used in turn by the iterations of a loop.
    """

    name: str
    axes: tuple[str, ...]
    element: Element
    list_indices: tuple[str, ...] = ()
    copies: int = 1


@dataclass(frozen=True)
class Scratch:
    """Shared memory in which every warp leaves what it has folded, `columns` entries (an index, or "" for one)."""

    name: str
    columns: str
    element: Element  # a compute type


@dataclass(frozen=True)
class Stage:
    """Begins to copy a block of a tensor to a tile. The tile holds it once the copy has been waited for."""

    tile: Tile
    source: Read


@dataclass(frozen=True)
class Publish:
    """Writes a block from registers to a tile."""

    tile: Tile
    source: LocalBlock


@dataclass(frozen=True)
class Assign:
    """Computes every entry of a block in registers, or of the block of a tensor in global memory.

    Leaves of the expression are blocks in registers at the entry that is computed, and tiles at any.
    """

    target: LocalBlock | Tensor
    expression: Term


@dataclass(frozen=True)
class Fold:
    """`target = fold`, along the columns within each warp; where `scratch` is given, over all warps."""

    target: LocalBlock
    fold: Apply
    scratch: Scratch | None


@dataclass(frozen=True)
class TileView:
    """A tile as an operand of a product, its rows and columns exchanged where `transposed`."""

    tile: Tile
    transposed: bool


@dataclass(frozen=True)
class Product:
    """`target += left right'`: the right operand's rows are the target's columns.

    On tensor cores the operands have the type `narrow`, of 16 bits or f32 that is rounded to tf32, and a left one may
    be in registers; else, with `narrow` None, entries are multiplied in the target's own type.
    """

    target: LocalBlock
    left: TileView | LocalBlock
    right: TileView
    contracted: str
    narrow: Element | None


@dataclass(frozen=True)
class Repeat:
    """A serial loop over the blocks or positions of an index.

    An `unrolled` one has as many iterations as the extents that were planned for need, as lists in registers demand.
    `ahead` are copies that begin `distance` iterations before the one that uses them, to a ring of tiles or to a list
    that has a tile for each iteration. With `bounds`, which are a range of positions, only the blocks that meet it are
    visited, and where `share` names an index of the grid, those of its position.
    """

    index: str
    body: tuple[Step, ...]
    unrolled: bool = False
    ahead: tuple[Stage, ...] = ()
    distance: int = 0
    bounds: LoopBounds | None = None
    share: str = ""


@dataclass(frozen=True)
class Barrier:
    """All threads of the block wait for each other."""


@dataclass(frozen=True)
class WaitForCopies:
    """All threads wait until every copy that they began has arrived, and for each other."""


@dataclass(frozen=True)
class FinishCopies:
    """Every thread waits for the copies that it began, but for no other thread."""


@dataclass(frozen=True)
class Remark:
    """The block statement that the following steps carry out, for the reader of the generated source."""

    text: str


# What is no loop.
type SingleStep = Stage | Publish | Assign | Fold | Product | Barrier | WaitForCopies | FinishCopies | Remark
type Step = SingleStep | Repeat


@dataclass(frozen=True)
class GpuKernel:
    """A kernel's steps, and the memory that they use: blocks in registers, tiles and scratch in shared memory."""

    steps: tuple[Step, ...]
    blocks: tuple[LocalBlock, ...]
    tiles: tuple[Tile, ...]
    scratch: tuple[Scratch, ...]
    entry_tiles: frozenset[str]  # which threads read in pairs of the entries that they have
    wide_tiles: frozenset[str]  # whose rows are padded more: those, and some that products read entry by entry


def walk_steps(steps: tuple[Step, ...]) -> Iterator[Step]:
    """Every step, loops before their bodies."""
    for step in steps:
        yield step
        if isinstance(step, Repeat):
            yield from step.ahead
            yield from walk_steps(step.body)


def names_used(step: Step) -> frozenset[str]:
    """The blocks, tiles and scratch memory that a step itself reads or writes."""
    return tiles_read(step) | tiles_written(step) | _registers(step)


def tiles_read(step: Step) -> frozenset[str]:
    """The names of what a step reads; blocks in registers are among them, and concern nobody else."""
    match step:
        case Assign(_, term) | Fold(_, term, _):
            return frozenset(leaf.name for leaf in walk(term) if isinstance(leaf, Local))
        case Product(_, left, right):
            views = [view for view in (left, right) if isinstance(view, TileView)]
            return frozenset(view.tile.name for view in views)
        case _:
            return frozenset()


def tiles_written(step: Step) -> frozenset[str]:
    """The names of the tiles and scratch memory that a step writes."""
    match step:
        case Stage(tile) | Publish(tile):
            return frozenset({tile.name})
        case Fold(_, _, Scratch(name)):
            return frozenset({name})
        case _:
            return frozenset()


def _registers(step: Step) -> frozenset[str]:
    match step:
        case Assign(LocalBlock(name)) | Fold(LocalBlock(name)) | Publish(_, LocalBlock(name)):
            return frozenset({name})
        case Product(target, left, _):
            return frozenset({target.name} | ({left.name} if isinstance(left, LocalBlock) else set[str]()))
        case _:
            return frozenset()
