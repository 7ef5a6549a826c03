"""Along which axes the entries of an assignment lie that a thread has, and which of an expression's own they are."""

from __future__ import annotations

from bbrewrite.core.indices import IndexTable
from bbrewrite.core.programs import Tensor
from bbrewrite.plan.kernel import LocalBlock


def loop_axes(target: LocalBlock | Tensor, own: tuple[str, ...], indices: IndexTable) -> tuple[str, ...]:
    """The axes along which a thread's entries of an assignment lie, rows first.

    A block in registers has its own; one in global memory is stored as the expression has it in registers.
    """
    if isinstance(target, LocalBlock):
        return target.type.axes
    blocked = tuple(index for index in target.indices if indices.is_blocked(index))
    return own if set(own) == set(blocked) else blocked


def places_among(own: tuple[str, ...], axes: tuple[str, ...]) -> tuple[int, ...]:
    """Which of the loops over `axes` each of an expression's own axes is; two axes may be over one index."""
    return tuple(range(len(own))) if own == axes else tuple(axes.index(axis) for axis in own)
