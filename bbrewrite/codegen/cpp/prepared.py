"""Weights that can be packed whole, once ahead of all calls, instead of block by block in every call.

A weight qualifies where a program does nothing with it but multiply by its blocks from the right, in one orientation.
Where these blocks do not begin at a panel of the packed matrix whatever the width of a vector, they are packed one by
one, and must be equally wide in all products. The packed matrix does not depend on block sizes otherwise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from bbrewrite.codegen.access import classify
from bbrewrite.codegen.passes.flatten import flatten
from bbrewrite.codegen.passes.in_passing import WIDEST_PANEL
from bbrewrite.codegen.steps import Pack, PackedOperand, Product, Step, leaves_read, walk_steps
from bbrewrite.core.elements import Element
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Role, Tensor
from bbrewrite.core.terms import Read
from bbrewrite.plan.kernel import Kernel, KernelProgram, LocalBlock, compute_element


@dataclass(frozen=True)
class PreparedWeight:
    """A weight that is packed ahead; `transposed` where its rows are the products' columns."""

    tensor: Tensor
    transposed: bool
    element: Element  # of the packed matrix, a compute type or BF16
    block: int  # so many columns at a time begin a panel; 0 where it is packed as one matrix


def prepared_weights(program: KernelProgram, table: OperatorTable) -> tuple[PreparedWeight, ...]:
    """The weights of a program that can be packed ahead, in the order of its inputs."""
    uses: dict[str, set[PreparedWeight | None]] = defaultdict(set)
    for kernel in program.kernels:
        for step in walk_steps(flatten(kernel, table).steps):
            for leaf in leaves_read(step):
                if isinstance(leaf, Read):
                    uses[leaf.tensor].add(_use(step, leaf, kernel))
    for part in program.slices:
        uses[part.whole.name].add(None)  # packed as a whole it has no parts
    found: list[PreparedWeight] = []
    for tensor in program.inputs:
        used = uses[tensor.name]
        only = next(iter(used)) if len(used) == 1 else None
        if only is not None:
            found.append(only)
    return tuple(found)


def _use(step: Step, read: Read, kernel: Kernel) -> PreparedWeight | None:
    """What the step's use of the read asks for; None where it needs the weight as it is."""
    tensor = next(tensor for tensor in (*kernel.reads, *kernel.writes) if tensor.name == read.tensor)
    match step:
        case Pack(PackedOperand(element=element), source, transposed) if source == read:
            pass
        case Product(right=right, target=LocalBlock() as target) if right == read and step.left != read:
            element, transposed = compute_element(target.type.element), False
        case _:
            return None
    shape = classify(read, kernel.indices)
    if tensor.role is not Role.WEIGHT or not shape.placed or shape.guarded or shape.axes != (0, 1):
        return None
    along, across = reversed(read.addresses) if transposed else read.addresses
    assert along.plain_index is not None
    assert across.plain_index is not None
    # Rows of bf16 are packed in pairs.
    if element is Element.BF16 and (kernel.indices[along.plain_index].block or 1) % 2:
        return None
    return PreparedWeight(tensor, transposed, element, packed_apart(across.plain_index, kernel.indices, kernel.whole))


def packed_apart(across: str, indices: IndexTable, whole: Collection[str]) -> int:
    """How many columns are packed apart where a kernel takes blocks of a weight along an index; 0 for all of them."""
    block = indices[across].block
    assert block is not None
    return 0 if across in whole or block % WIDEST_PANEL == 0 else block
