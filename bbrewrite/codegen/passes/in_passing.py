"""Packs right operands of products in passing: while the first rows are multiplied, panel by panel for the other rows.

Meanwhile the next panel is fetched from memory, so that neither packing nor memory is waited for. This holds for an
operand that lies row by row in the type of the product, and is packed for one product alone. All such
operands share the buffer of a panel. This is an optimisation; the steps mean the same without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from bbrewrite.codegen.access import is_row_contiguous
from bbrewrite.codegen.steps import (
    FlatKernel,
    Pack,
    PackedInPassing,
    PackedOperand,
    Product,
    Step,
    kept_element,
    leaf_name,
    packed_operands,
    walk_steps,
    with_body,
)
from bbrewrite.core.elements import Element
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Local
from bbrewrite.plan.kernel import Kernel, LocalBlock

# The columns of the widest panel; a multiple of those of every other.
WIDEST_PANEL = 64


def with_operands_in_passing(flat: FlatKernel, kernel: Kernel) -> FlatKernel:
    """The kernel, with operands packed in passing where that can be."""
    steps = _InPassing(flat, kernel).visit(flat.steps, kernel.grid)
    return replace(flat, steps=steps, packed=packed_operands(steps))


class _InPassing:
    """Replaces packings of one kernel."""

    def __init__(self, flat: FlatKernel, kernel: Kernel) -> None:
        self._kernel = kernel
        self._tensors: Mapping[str, Tensor] = {tensor.name: tensor for tensor in (*kernel.reads, *kernel.writes)}
        self._blocks: Mapping[str, LocalBlock] = {block.name: block for block in flat.blocks}
        packs = [step for step in walk_steps(flat.steps) if isinstance(step, Pack) and self._can_pass(step)]
        self._longest: dict[Element, int] = {}
        for operand in (step.packed for step in packs):
            self._longest[operand.element] = max(operand.contracted, self._longest.get(operand.element, 0))

    def visit(self, steps: tuple[Step, ...], loops: tuple[str, ...]) -> tuple[Step, ...]:
        """Steps inside loops over these indices, outer ones first."""
        packings = {step.packed.name: step for step in steps if isinstance(step, Pack)}
        times = Counter(step.packed.name for step in steps if isinstance(step, Pack))
        products = Counter(
            step.right.name
            for step in walk_steps(steps)
            if isinstance(step, Product) and isinstance(step.right, PackedOperand)
        )
        passing = {
            name: PackedInPassing(self._panel(pack.packed.element), pack.source, _moved(pack, loops))
            for name, pack in packings.items()
            if times[name] == products[name] == 1 and self._can_pass(pack) and _multiplies(steps, pack)
        }
        result: list[Step] = []
        for step in steps:
            match step:
                case Pack() if step.packed.name in passing:
                    continue
                case Product(right=PackedOperand(name)) if name in passing:
                    step = replace(step, right=passing[name])
                case _:
                    step = with_body(step, loops, self.visit)
            result.append(step)
        return tuple(result)

    def _panel(self, element: Element) -> PackedOperand:
        return PackedOperand(f"panel of {element.value}", self._longest[element], WIDEST_PANEL, element)

    def _can_pass(self, pack: Pack) -> bool:
        """Whether an operand lies as a product takes it: its rows dense, surely there, and of the type."""
        if pack.transposed or pack.packed.kept or pack.packed.element is Element.BF16:
            return False
        if isinstance(pack.source, Local):
            return kept_element(self._blocks[pack.source.name]) is pack.packed.element
        tensor = self._tensors[pack.source.tensor]
        return tensor.element is pack.packed.element and is_row_contiguous(pack.source, tensor, self._kernel.indices)


def _multiplies(steps: tuple[Step, ...], pack: Pack) -> bool:
    """Whether a product in the list itself, of all its rows and columns, takes an operand that it leaves as it was."""
    return any(
        isinstance(step, Product)
        and step.right == pack.packed
        and step.wanted is step.terms is None
        and step.target.name != leaf_name(pack.source)
        for step in steps
    )


def _moved(pack: Pack, loops: tuple[str, ...]) -> tuple[str, ...]:
    """The loops that move on to another block of an operand, the innermost first."""
    return tuple(index for index in reversed(loops) if index in pack.source.free)
