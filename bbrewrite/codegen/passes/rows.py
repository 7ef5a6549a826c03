"""Merges steps over the rows of the same blocks into one loop, so that a row passes through the nearest cache once.

A step joins the loop of an earlier one where it needs only the same row of what that loop computes, and nothing that
is computed in between; it may move up for that. Steps on vectors stay loops of their own, along which they are
vectorised, unless a later step of the loop needs their values. Inside the loop, steps that need each other's entries
go over the columns together. A block that only such a loop mentions is a single row. This is an optimisation; the
unmerged steps mean the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from bbrewrite.codegen.scalars import entries, folded_letter, signature_of
from bbrewrite.codegen.steps import (
    Assign,
    ByFirst,
    Fold,
    Remark,
    Repeat,
    RowPass,
    Rows,
    Step,
    Wait,
    WhereEmpty,
    inner_steps,
    leaf_name,
    names_read,
    names_written,
    walk_steps,
)
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Local, Read
from bbrewrite.core.types import BlockType, Typing
from bbrewrite.plan.kernel import LocalBlock

_ROW, _ENTRY = (0,), (0, 1)

# Of rows of so many entries, the nearest cache does not hold the one at hand, the one before and values of both.
_LONG = 2048


@dataclass(frozen=True)
class _Member:
    """A step as a part of a loop over rows: what it reads, and at which entry of what it is about to compute."""

    step: Assign | Fold
    axes: tuple[str, ...]
    reads: tuple[tuple[Local | Read, tuple[int, ...]], ...]

    @property
    def target(self) -> str:
        return self.step.target.name

    @property
    def names(self) -> frozenset[str]:
        return frozenset(leaf_name(leaf) for leaf, _ in self.reads) | {self.target}

    def fits_after(self, other: _Member, places: tuple[int, ...]) -> bool:
        """Whether each uses what the other writes at the same entry only, as far as `places` tell entries apart."""
        return all(
            isinstance(leaf, Local) and read[: len(places)] == places[: len(read)] and bool(read)
            for member, written in ((self, other.target), (other, self.target))
            for leaf, read in member.reads
            if leaf_name(leaf) == written
        )


@dataclass
class _Group:
    """A loop over rows under construction."""

    members: list[_Member]


def merge_rows(
    steps: tuple[Step, ...],
    indices: IndexTable,
    typing: Typing,
    table: OperatorTable,
) -> tuple[Step, ...]:
    """The steps, with those merged that may be."""
    return _RowMerger(indices, typing, table).merged(steps)


def single_rows(steps: tuple[Step, ...]) -> frozenset[str]:
    """The local blocks of which one row at a time is enough: one loop over rows makes and uses them."""
    leaves = [step for step in walk_steps(steps) if not inner_steps(step)]
    mentions = Counter(name for step in leaves for name in names_read(step) | names_written(step))
    found: set[str] = set()
    for rows in walk_steps(steps):
        if not isinstance(rows, Rows):
            continue
        inside = Counter(name for step in rows.steps for name in names_read(step) | names_written(step))
        seen: set[str] = set()
        for step in rows.steps:
            seen |= names_read(step)
            match step:
                case Assign(LocalBlock(name, BlockType((_, _)), ())) if (
                    name not in seen and inside[name] == mentions[name]
                ):
                    found.add(name)
                case _:
                    pass
            seen.add(step.target.name)
    return frozenset(found)


def is_long(index: str, indices: IndexTable) -> bool:
    """Whether rows along an index are planned to be longer than what the nearest cache holds several of."""
    return (indices[index].block or 0) >= _LONG


def stages(rows: Rows, single: frozenset[str]) -> list[tuple[RowPass, ...]]:
    """The passes, the first one apart where it may be a row ahead of the others; `single` are the single rows.

    A fold takes long to come from many lanes to one, and the row before is then something to do meanwhile; where the
    next row is fetched or the one before stored, there is enough.
    """
    if rows.ahead or rows.behind:
        return [rows.passes]
    first, *rest = rows.passes
    made = {step.target.name for step in first.steps if isinstance(step, Assign)} & single
    used = {name for one in rest for step in one.steps for name in names_read(step)}
    if rest and isinstance(first.steps[-1], Fold) and made.isdisjoint(used):
        return [(first,), tuple(rest)]
    return [rows.passes]


class _RowMerger:
    def __init__(
        self,
        indices: IndexTable,
        typing: Typing,
        table: OperatorTable,
    ) -> None:
        self._indices = indices
        self._typing = typing
        self._table = table

    def merged(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        """One list of steps with the lists inside."""
        result: list[Step | _Group] = []
        for step in steps:
            if isinstance(step, Repeat):
                step = replace(step, body=self.merged(step.body))
            member = self._member(step)
            if member is None or len(member.axes) < 2:
                result.append(step)
            elif not self._join(result, member):
                result.append(_Group([member]))
        return _without_stale_remarks(tuple(self._finished(result)))

    def _join(self, result: list[Step | _Group], member: _Member) -> bool:
        """Moves the step, and the vectors that it needs, up to a loop over the same rows; False where there is none."""
        moving = [member]
        pulled: list[int] = []
        for place in reversed(range(len(result))):
            item = result[place]
            if isinstance(item, _Group) and self._takes(item, moving):
                item.members += reversed(moving)
                for vector_place in pulled:
                    del result[vector_place]
                return True
            if not _depend(item, moving):
                continue
            vector = None if isinstance(item, _Group) else self._member(item)
            if vector is None or vector.axes != member.axes[:1]:
                return False
            moving.append(vector)
            pulled.append(place)
        return False

    @staticmethod
    def _takes(group: _Group, moving: list[_Member]) -> bool:
        return (
            group.members[0].axes[0] == moving[0].axes[0]
            and any(not moving[0].names.isdisjoint(member.names) for member in group.members)
            and all(new.fits_after(member, _ROW) for new in moving for member in group.members)
            and all(new.fits_after(old, _ROW) for place, new in enumerate(moving) for old in moving[place + 1 :])
        )

    def _member(self, step: Step) -> _Member | None:
        """The step as a part of a loop over rows, if it can be one."""
        match step:
            case Assign(target, expression):
                axes = self._axes(target)
                own = self._typing.block(expression).axes
                places = tuple(range(len(own))) if own == axes else tuple(axes.index(axis) for axis in own)
                leaves = entries(expression, places, self._typing, self._table)
            case Fold(_, fold):
                (operand,) = fold.operands
                axes = self._typing.block(operand).axes
                signature = signature_of(self._table.operators[fold.operator], (len(axes),))
                if len(axes) < 2 or folded_letter(signature) != signature.operands[0][-1]:
                    return None
                leaves = entries(operand, _ENTRY, self._typing, self._table)
            case _:
                return None
        reads = tuple((leaf, places) for leaf, places in leaves if isinstance(leaf, Local | Read))
        return _Member(step, axes, reads) if axes else None

    def _axes(self, target: LocalBlock | Tensor) -> tuple[str, ...]:
        if isinstance(target, LocalBlock):
            return target.type.axes
        return tuple(index for index in target.indices if self._indices.is_blocked(index))

    def _finished(self, result: list[Step | _Group]) -> Iterator[Step]:
        for item in result:
            if not isinstance(item, _Group):
                yield item
            elif len(item.members) == 1:
                yield item.members[0].step
            else:
                yield Rows(item.members[0].axes[0], tuple(self._passes(item.members)))

    def _passes(self, members: list[_Member]) -> Iterator[RowPass]:
        """Consecutive steps that need each other's entries go over the columns together; a fold ends such a pass, and
        goes after a step that keeps what it folds.
        """
        current: list[_Member] = []
        for member in members:
            if current and self._keeps_folded(current[-1], member):
                current.insert(-1, member)
                continue
            if current and not self._same_pass(current, member):
                yield RowPass(tuple(m.step for m in current))
                current = []
            current.append(member)
        yield RowPass(tuple(m.step for m in current))

    @staticmethod
    def _keeps_folded(fold: _Member, member: _Member) -> bool:
        return (
            isinstance(fold.step, Fold)
            and isinstance(member.step, Assign)
            and (member.step.expression,) == fold.step.fold.operands
            and member.fits_after(fold, _ENTRY)
        )

    @staticmethod
    def _same_pass(current: list[_Member], member: _Member) -> bool:
        return (
            len(member.axes) == 2
            and member.axes == current[0].axes
            and all(isinstance(other.step, Assign) and member.fits_after(other, _ENTRY) for other in current)
            and any(leaf_name(leaf) == other.target for leaf, _ in member.reads for other in current)
        )


def _depend(item: Step | _Group, moving: list[_Member]) -> bool:
    """Whether one of the moving steps may not go before the item; none goes before a loop over blocks or a wait."""
    if isinstance(item, Repeat | WhereEmpty | ByFirst | Wait):
        return True
    if isinstance(item, _Group):
        written = {member.target for member in item.members}
        named = frozenset[str]().union(*(member.names for member in item.members))
    else:
        written = names_written(item)
        named = names_read(item) | written
    return any(not member.names.isdisjoint(written) or member.target in named for member in moving)


def _without_stale_remarks(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps without remarks on steps that have moved away."""
    following = (*steps[1:], Remark(""))
    return tuple(
        step
        for step, after in zip(steps, following, strict=True)
        if not (isinstance(step, Remark) and isinstance(after, Remark | Repeat | WhereEmpty | Rows | Wait))
    )
