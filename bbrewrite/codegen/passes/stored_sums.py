"""Sums that are made where they are stored: a block that a product makes, and that is then stored as it is, needs no
memory of its own and no copy.

This holds for small weights that are packed ahead where one block of the contracted index is the whole of it, so that a
result is written once; sums of several products are better off in a block near the processor. Other extents than those
that were planned for may take several products: these add to what is stored, which means the same. Where nothing else
is done with a block of rows its size is free, since nothing is packed for it: generated code may take fewer rows at a
time. This is an optimisation; the steps mean the same without it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bbrewrite.codegen.access import is_row_contiguous
from bbrewrite.codegen.steps import (
    Assign,
    PreparedOperand,
    Product,
    Remark,
    Repeat,
    Step,
    WhereEmpty,
    kept_element,
    names_read,
    written_place,
)
from bbrewrite.core.elements import Element
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Local, Read
from bbrewrite.core.types import Typing
from bbrewrite.plan.kernel import Kernel, LocalBlock

# A weight is read again for every few rows, and the rows of a result lie as far apart as it is wide: both are near one
# another only if the weight is no larger than this.
_MOST_BYTES = 1024 * 1024


@dataclass(frozen=True)
class StoredSum:
    """A fill for loops without iterations, a loop over the contracted index, its product, and the store behind it."""

    fill: WhereEmpty
    loop: Repeat
    product: Product
    block: LocalBlock
    tensor: Tensor

    def in_place(self) -> tuple[Step, ...]:
        """The same without the block."""
        return tuple(replace(step, body=tuple(map(self._stored, step.body))) for step in (self.fill, self.loop))

    @property
    def rows(self) -> tuple[str, str, Element]:
        """The index of the rows, what is contracted with them, and the type."""
        return self.block.type.axes[0], self.loop.index, self.tensor.element

    def _stored(self, step: Step) -> Step:
        match step:
            case Remark(text):
                return Remark(f"{text}, in {self.tensor.name}")
            case Assign() | Product():
                return replace(step, target=self.tensor)
            case _:
                return step


def stored_sum(steps: tuple[Step, ...], kernel: Kernel, typing: Typing) -> StoredSum | None:
    """The sum that the steps of a whole kernel are, if it can be made in place."""
    match steps:
        case (
            WhereEmpty(_, (Remark(), Assign(LocalBlock()))) as fill,
            Repeat(index, (Remark(), Product(LocalBlock() as block, Read()) as product)) as loop,
            Remark(),
            Assign(Tensor() as tensor, Local(name, ())),
        ) if name == block.name and index == fill.index == product.sets_first:
            found = StoredSum(fill, loop, product, block, tensor)
            return found if _fits(found, kernel, typing) else None
        case _:
            return None


def _fits(found: StoredSum, kernel: Kernel, typing: Typing) -> bool:
    """Whether the product can be stored in the tensor, and writes it once, in cells of rows and columns."""
    contracted, whole = kernel.indices.extent(found.loop.index), kernel.indices[found.loop.index].block
    columns = kernel.indices.extent(found.block.type.axes[1])
    place = written_place(found.tensor)
    assert isinstance(place, Read)
    return (
        isinstance(found.product.right, PreparedOperand)
        and contracted is not None
        and columns is not None
        and whole is not None
        and contracted <= whole
        and contracted * columns * found.tensor.element.size_bytes <= _MOST_BYTES
        and kernel.grid[-2:] == found.block.type.axes == typing.block(place).axes
        and kept_element(found.block) is found.tensor.element
        and found.tensor.name not in names_read(found.loop)
        and is_row_contiguous(place, found.tensor, kernel.indices)
    )
