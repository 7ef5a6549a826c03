"""The CUDA names and places of one kernel: as in C++, and besides, blocks in registers and tiles of shared memory.

An entry of a block in registers is named by which of the thread's rows and columns it is, an entry of a tile by its row
and column in the block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bbrewrite.codegen.cuda.shared_memory import list_length
from bbrewrite.codegen.cuda.steps import GpuKernel, Tile
from bbrewrite.codegen.names import Names
from bbrewrite.codegen.scope import KernelScope, Position
from bbrewrite.core.addresses import Address
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Local, Read
from bbrewrite.core.types import BlockType
from bbrewrite.plan.kernel import LocalBlock, compute_element

# The variable of a loop over groups of columns.
GROUP = "group"


class CudaScope(KernelScope):
    """See the module text. `held` gives for the variables of a row and a column which one of the thread's it is."""

    def __init__(
        self,
        names: Names,
        indices: IndexTable,
        tensors: Sequence[Tensor],
        written: frozenset[str],
        kernel: GpuKernel,
        held: Mapping[str, str],
    ) -> None:
        self._tiles = {tile.name: tile for tile in kernel.tiles}
        views = [
            LocalBlock(tile.name, BlockType(tile.axes, compute_element(tile.element)), tile.list_indices)
            for tile in kernel.tiles
        ]
        super().__init__(names, indices, tensors, written, (*kernel.blocks, *views))
        self._held = held
        self._entry_tiles = kernel.entry_tiles
        self._pairs: dict[str, str] = {}  # names by tiles

    def entry(self, leaf: Read | Local, positions: Sequence[Position]) -> str:
        """The lvalue of an entry."""
        if isinstance(leaf, Read):
            return super().entry(leaf, positions)
        if leaf.name in self._tiles:
            return self._tile_entry(self._tiles[leaf.name], positions)
        variables = [self._held[position.variable] for position in positions]
        name = self.block(self.blocks[leaf.name])
        return f"{name}({', '.join(variables)})" if variables else name

    def _tile_entry(self, tile: Tile, positions: Sequence[Position]) -> str:
        text, variables = self.tile(tile), [position.variable for position in positions]
        if len(positions) == 1:
            return f"{text}({variables[0]})"
        if variables == [*self._held][::-1]:
            return f"{text}.turned({', '.join(variables[::-1])})"
        row, column = positions
        if tile.name not in self._entry_tiles or variables != [*self._held] or row.depth > column.depth:
            return f"{text}.entry({', '.join(variables)})"
        if text not in self._pairs:
            self._pairs[text] = self.names.fresh(f"{tile.name}_pair")
        return f"{self._pairs[text]}({self._held[column.variable]})"

    def take_pairs(self) -> list[str]:
        """Declarations of the pairs of entries that tiles were read in since the last call, for a row and a group."""
        lines = [
            f"const auto {name} = {tile}.pair({next(iter(self._held))}, {GROUP});" for tile, name in self._pairs.items()
        ]
        self._pairs = {}
        return lines

    def element_address(self, address: Address, positions: Sequence[Position]) -> str:
        """The element that an address stands for; for what a thread has beyond the block, that of the last entry."""
        blocked = [name for name, _ in address.indices if self.index(name).start]
        inside = [
            Position(f"bb::within({position.variable}, {self.index(name).count})", position.depth)
            for name, position in zip(blocked, positions, strict=False)
        ]
        return super().element_address(address, inside)

    def block(self, block: LocalBlock) -> str:
        """A block in registers; of a list, the one at hand."""
        return self.locals[block.name] + "".join(f"[{self.index(index).number}]" for index in block.list_indices)

    def tile(self, tile: Tile, ring_index: str = "") -> str:
        """A tile; of a list, or of a ring where its number is given, the one at hand."""
        name = self.locals[tile.name]
        if tile.list_indices:
            number = ""
            for index in tile.list_indices:
                own = self.index(index).number
                number = f"({number}) * {list_length(self.indices, index)} + {own}" if number else own
            return f"{name}[{number}]"
        return f"{name}[{ring_index} % {tile.copies}]" if ring_index else name
