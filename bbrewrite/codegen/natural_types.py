"""The element types from which blocks come, before anything is widened for computing.

Local blocks are computed in single precision whatever tensors they come from. Units for products want operands of 16
bits, and rounding an operand to them is right where the program says that it has such a type: where all it is computed
from has.
"""

from __future__ import annotations

from bbrewrite.core.elements import wider
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.types import BlockType, Typing
from bbrewrite.plan.kernel import Kernel, Let, Update, walk_statements


def natural_typing(kernel: Kernel, table: OperatorTable) -> Typing:
    """A typing of the kernel's terms in which local blocks have the types of what they are computed from."""
    tensors = {tensor.name: tensor for tensor in (*kernel.reads, *kernel.writes)}
    types = {block.name: BlockType(block.type.axes, None) for block in kernel.local_blocks}
    while True:
        typing = Typing(table, kernel.indices, tensors, types)
        found = dict(types)
        for statement in walk_statements(kernel.body):
            if isinstance(statement, Let | Update):
                old = found[statement.target.name]
                element = wider(old.element, typing.block(statement.expression).element)
                found[statement.target.name] = BlockType(old.axes, element)
        if found == types:
            return typing
        types = found
