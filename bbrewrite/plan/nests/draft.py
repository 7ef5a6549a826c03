"""A loop nest under construction: loops and statements that can still be put anywhere.

The builder in `nest.py` fills it; when it is done, the draft becomes the kernel's immutable statements.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from bbrewrite.core.terms import Term
from bbrewrite.plan.kernel import Let, Store, Update
from bbrewrite.plan.partition import KernelOutput


@dataclass(eq=False)
class DraftLoop:
    """A loop under construction; `closing` statements run at the end of each iteration."""

    index: str
    items: list[DraftItem] = field(default_factory=list["DraftItem"])
    closing: list[DraftItem] = field(default_factory=list["DraftItem"])


@dataclass(eq=False)
class DraftLine:
    """A statement under construction; locals in its expression are named, their list indices follow later."""

    kind: type[Let] | type[Update] | type[Store]
    target: str
    expression: Term
    output: KernelOutput | None = None
    combines: tuple[str, int] | None = None

    @cached_property
    def used(self) -> frozenset[str]:
        """The other local values that the statement reads."""
        return self.expression.local_names - {self.target}


type DraftItem = DraftLoop | DraftLine
type Path = tuple[DraftLoop, ...]


@dataclass(eq=False)
class Instance:
    """A value in a place. `path` are the loops in which it is at hand, `whole_path` those of its last statement.

    `inner` are indices of a list of accumulators, looped over inside the reduction. `shared_loops` counts how many
    loops of `path` every user shares; the indices of the others make the value a local list. `result` is what users
    compute from it, where that is not the value itself.
    """

    name: str
    path: Path
    whole_path: Path
    line: DraftLine
    inner: tuple[str, ...] = ()
    shared_loops: int = 0
    result: Term | None = None

    @property
    def list_indices(self) -> tuple[str, ...]:
        """The indices of the local list that the value is, none for a single block."""
        return tuple(loop.index for loop in self.path[self.shared_loops :]) + self.inner


def runs_inside(instance: Instance, path: Path) -> bool:
    """Whether a place lies in the reduction loop that makes the value, where it is not complete yet."""
    depth = len(instance.path)
    return len(instance.whole_path) > depth and len(path) > depth and path[depth] is instance.whole_path[depth]


def loop_position(path: Path, start: int, index: str) -> int:
    """Where in a path, from `start` on, the loop over an index is."""
    return next(position for position in range(start, len(path)) if path[position].index == index)


def common_length(a: Path, b: Path) -> int:
    """How many loops two paths share."""
    length = 0
    while length < min(len(a), len(b)) and a[length] is b[length]:
        length += 1
    return length


def lines_of(loop: DraftLoop) -> Iterator[DraftLine]:
    """Every statement inside a loop."""
    for item in [*loop.items, *loop.closing]:
        if isinstance(item, DraftLoop):
            yield from lines_of(item)
        else:
            yield item


def drop_unused(loop: DraftLoop, used: frozenset[str]) -> bool:
    """Removes statements whose value nobody uses and loops left empty; true where something went."""
    changed = False
    for items in (loop.items, loop.closing):
        for item in list(items):
            if isinstance(item, DraftLoop):
                changed |= drop_unused(item, used)
                gone = not item.items and not item.closing
            else:
                gone = item.kind is not Store and item.target not in used
            if gone:
                items.remove(item)
                changed = True
    return changed
