"""The local memory of a kernel whose statements are taken apart into steps: its own blocks, and what is added to them.

Where the memory lies, `kernels.py` decides.
"""

from __future__ import annotations

from bbrewrite.codegen.steps import PackedOperand
from bbrewrite.core.elements import Element
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.types import BlockType, Typing
from bbrewrite.plan.kernel import Kernel, LocalBlock
from bbrewrite.plan.nests.natural_types import NaturalTypes


class LocalMemory:
    """The kernel and its local memory, to which temporaries and packed operands are added."""

    def __init__(self, kernel: Kernel, table: OperatorTable, prepared: frozenset[str]) -> None:
        self.kernel = kernel
        self.table = table
        self.prepared = prepared
        self.blocks = {block.name: block for block in kernel.local_blocks}
        self.packed: list[PackedOperand] = []
        self.unused: list[PackedOperand] = []
        self.tensors = {tensor.name: tensor for tensor in (*kernel.reads, *kernel.writes)}
        self._types = {name: block.type for name, block in self.blocks.items()}
        self.typing = Typing(table, kernel.indices, self.tensors, self._types)
        self.natural = NaturalTypes(kernel.body, self.typing, self.tensors)

    def temporary(self, stem: str, axes: tuple[str, ...], element: Element) -> LocalBlock:
        """A new block in local memory."""
        taken = {*self.blocks, *self.tensors}
        name = next(n for n in (f"{stem}_{number}" for number in range(1, len(taken) + 2)) if n not in taken)
        self.blocks[name] = LocalBlock(name, BlockType(axes, element))
        self._types[name] = self.blocks[name].type
        return self.blocks[name]

    def packed_operand(self, contracted: str, columns: str, element: Element) -> PackedOperand:
        """A buffer for a packed operand; one that is free is used again."""
        sizes = self.kernel.indices[contracted].block, self.kernel.indices[columns].block
        for operand in self.unused:
            if (operand.contracted, operand.columns, operand.element) == (*sizes, element):
                self.unused.remove(operand)
                return operand
        assert sizes[0] is not None
        assert sizes[1] is not None
        self.packed.append(PackedOperand(f"packed_{len(self.packed) + 1}", sizes[0], sizes[1], element))
        return self.packed[-1]
