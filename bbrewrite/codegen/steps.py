"""The steps of a kernel: what remains of its statements when block operators are taken apart.

Every step is a simple loop nest: entry by entry, a fold over one axis, a packing, or a block product. A generator for
any target prints steps; `flatten.py` makes them from a kernel's statements. Nothing here is specific to C++.
"""

from __future__ import annotations

from dataclasses import dataclass

from bbrewrite.core.elements import Element
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Apply, Local, Read, Term
from bbrewrite.plan.kernel import LocalBlock


@dataclass(frozen=True)
class PackedOperand:
    """A buffer for a packed right operand of block products, of at most `contracted` by `columns` elements."""

    name: str
    contracted: int
    columns: int
    element: Element  # a compute type


@dataclass(frozen=True)
class Assign:
    """Computes every entry of a local block, or of the block of a tensor in global memory, by itself.

    The expression has no folds and no products, and reads the target at the entry that is written or not at all.
    """

    target: LocalBlock | Tensor
    expression: Term


@dataclass(frozen=True)
class Fold:
    """`target = fold`, where `fold` applies an operator that combines along one axis; its operands have no folds."""

    target: LocalBlock
    fold: Apply


@dataclass(frozen=True)
class Pack:
    """Packs a block of a tensor or a local block; `transposed` where its rows are the product's columns."""

    packed: PackedOperand
    source: Read | Local
    transposed: bool


@dataclass(frozen=True)
class Product:
    """`target = left times packed`, or added to the target where `accumulate`. The left operand has dense rows."""

    target: LocalBlock
    left: Read | Local
    packed: PackedOperand
    accumulate: bool


@dataclass(frozen=True)
class Repeat:
    """A serial loop over the blocks or positions of an index."""

    index: str
    body: tuple[Step, ...]


@dataclass(frozen=True)
class Remark:
    """The block statement that the following steps carry out, for the reader of the generated source."""

    text: str


type Step = Assign | Fold | Pack | Product | Repeat | Remark


@dataclass(frozen=True)
class FlatKernel:
    """A kernel's steps, and the local memory that they use: the kernel's own blocks, temporaries, packed operands."""

    steps: tuple[Step, ...]
    blocks: tuple[LocalBlock, ...]
    packed: tuple[PackedOperand, ...]
