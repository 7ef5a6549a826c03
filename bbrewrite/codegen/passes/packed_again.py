"""Keeps packed right operands of products, where a processor would pack them again and again.

Attention packs the same keys for every block of queries. Here such an operand gets a buffer for each of its blocks,
which is filled when it is first needed, and again when an index further out, such as the head, has moved on. What is
kept must stay in the caches. This is an optimisation; the steps mean the same without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from bbrewrite.codegen.steps import (
    FirstOrLater,
    FlatKernel,
    Pack,
    PackedOperand,
    Product,
    Step,
    packed_operands,
    with_body,
)
from bbrewrite.core.elements import Element
from bbrewrite.core.terms import Read
from bbrewrite.plan.kernel import Kernel

# What all kept operands of a kernel may take of each processor's caches, at the extents that it was planned for.
_MOST_BYTES = 4 * 1024 * 1024


def with_kept_operands(flat: FlatKernel, kernel: Kernel) -> FlatKernel:
    """The kernel, with operands kept where that saves packing."""
    keeper = _Keeper(kernel)
    steps = keeper.visit(flat.steps, kernel.grid)
    return replace(flat, steps=steps, packed=packed_operands(steps))


def _from(kept: Mapping[str, PackedOperand], step: Step) -> Step:
    """The step, with its product reading the buffer that is kept, if there is one."""
    if isinstance(step, Product) and isinstance(step.right, PackedOperand):
        return replace(step, right=kept.get(step.right.name, step.right))
    return step


class _Keeper:
    """Gives packings that are worth it buffers of their own."""

    def __init__(self, kernel: Kernel) -> None:
        self._indices = kernel.indices
        self._whole = kernel.whole
        self._written = {tensor.name for tensor in kernel.writes}
        self._kept: dict[tuple[Read, bool, Element], PackedOperand] = {}
        self._bytes = 0

    def visit(self, steps: tuple[Step, ...], loops: tuple[str, ...]) -> tuple[Step, ...]:
        """Steps inside loops over these indices, outer ones first."""
        result: list[Step] = []
        kept: dict[str, PackedOperand] = {}
        for step in steps:
            match step:
                case Pack():
                    operand = self._operand(step, loops)
                    kept[step.packed.name] = operand
                    step = replace(step, packed=operand)
                case Product():
                    step = _from(kept, step)
                case FirstOrLater(index, first, later):
                    step = FirstOrLater(index, *(tuple(_from(kept, inner) for inner in one) for one in (first, later)))
                case _:
                    step = with_body(step, loops, self.visit)
            result.append(step)
        return tuple(result)

    def _operand(self, step: Pack, loops: tuple[str, ...]) -> PackedOperand:
        """Where to pack: a buffer that is kept, or the step's own."""
        packed, source = step.packed, step.source
        others = [place for place, index in enumerate(loops) if index not in source.free and self._blocks(index) > 1]
        if not isinstance(source, Read) or source.tensor in self._written:
            return packed
        if not others or not self._whole.isdisjoint(source.free):
            return packed
        per, inside = (tuple(i for i in part if i in source.free) for part in (loops[: others[0]], loops[others[0] :]))
        key = source, step.transposed, packed.element
        if key not in self._kept:
            size = packed.contracted * packed.columns * packed.element.size_bytes * prod(map(self._blocks, inside))
            if self._bytes + size > _MOST_BYTES:
                return packed
            self._bytes += size
            # With its spaces it is no block's name.
            name = f"{'transposed' if step.transposed else 'packed'} {source.tensor} {len(self._kept) + 1}"
            self._kept[key] = replace(packed, name=name, kept=inside, per=per)
        return self._kept[key]

    def _blocks(self, index: str) -> int:
        """How many blocks, or positions, the kernel was planned for; 1 where that is not known."""
        return -(-(self._indices.extent(index) or 1) // (self._indices[index].block or 1))
