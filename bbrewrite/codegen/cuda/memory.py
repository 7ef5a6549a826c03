"""The memory of a kernel under construction: blocks in registers, tiles and scratch in shared memory, and their types.

A block that only holds what a tensor holds stays in shared memory as it was read: such blocks are `views`.
"""

from __future__ import annotations

from collections import Counter

from bbrewrite.codegen.access import classify
from bbrewrite.codegen.cuda.steps import Scratch, Tile
from bbrewrite.core.elements import Element
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.terms import Read, Term
from bbrewrite.core.types import BlockType, Typing
from bbrewrite.plan.kernel import Kernel, Let, LocalBlock, Update, compute_element, walk_statements
from bbrewrite.plan.nests.natural_types import NaturalTypes


class KernelMemory:
    """The kernel's blocks in registers and tiles in shared memory, to which temporaries are added."""

    def __init__(self, kernel: Kernel, table: OperatorTable, tensor_core_types: frozenset[Element]) -> None:
        self.kernel = kernel
        self.tensor_core_types = tensor_core_types
        self.table = table
        self.blocks = {block.name: block for block in kernel.local_blocks}
        self.tensors = {tensor.name: tensor for tensor in (*kernel.reads, *kernel.writes)}
        self.tiles: dict[str, Tile] = {}
        self.scratch: dict[tuple[str, Element], Scratch] = {}
        self.read_across: set[str] = set()  # tiles of which threads read entries that others have
        self._types = {name: block.type for name, block in self.blocks.items()}
        self.typing = Typing(table, kernel.indices, self.tensors, self._types)
        self.natural = NaturalTypes(kernel.body, self.typing, self.tensors)
        assigned = Counter(s.target.name for s in walk_statements(kernel.body) if isinstance(s, Let | Update))
        # A block that only holds what a tensor holds stays in shared memory as it was read.
        self.views: dict[str, Tile] = {}
        for statement in walk_statements(kernel.body):
            if (
                isinstance(statement, Let)
                and assigned[statement.target.name] == 1
                and self.is_staged(statement.expression)
            ):
                target, read = statement.target, statement.expression
                assert isinstance(read, Read)
                self.views[target.name] = self.tile(target.name, read, target.list_indices)

    def is_staged(self, term: Term) -> bool:
        """Whether a term is a block that is copied to shared memory; single numbers are read where they are needed."""
        return (
            isinstance(term, Read) and classify(term, self.kernel.indices).placed and bool(self.typing.block(term).axes)
        )

    def temporary(self, stem: str, axes: tuple[str, ...], element: Element) -> LocalBlock:
        """A new block in registers."""
        block = LocalBlock(self._fresh(stem), BlockType(axes, element))
        self.blocks[block.name] = block
        self._types[block.name] = block.type
        return block

    def tile(
        self, stem: str, source: Read | LocalBlock, lists: tuple[str, ...] = (), narrow: Element | None = None
    ) -> Tile:
        """A new tile for a block of a tensor, or for a block in registers stored as `narrow` or as it is."""
        if isinstance(source, Read):
            kind, element = self.typing.block(source), self.tensors[source.tensor].element
        else:
            kind, element = source.type, narrow or compute_element(source.type.element)
        tile = Tile(self._fresh(f"{stem}_tile"), kind.axes, element, lists)
        self.tiles[tile.name] = tile
        self._types[tile.name] = BlockType(kind.axes, compute_element(element))
        return tile

    def scratch_for(self, columns: str, element: Element) -> Scratch:
        """Memory for what warps have folded; folds of one kind share it."""
        key = columns, element
        if key not in self.scratch:
            self.scratch[key] = Scratch(self._fresh(f"{columns or 'number'}_partial"), columns, element)
        return self.scratch[key]

    def _fresh(self, stem: str) -> str:
        taken = {*self.blocks, *self.tensors, *self.tiles, *(scratch.name for scratch in self.scratch.values())}
        names = (stem if number == 0 else f"{stem}_{number}" for number in range(len(taken) + 1))
        return next(name for name in names if name not in taken)
