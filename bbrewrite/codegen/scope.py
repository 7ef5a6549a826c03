"""The C++ names and places of one kernel: extents, block starts, pointers to blocks, strides.

A placed read and a block of a local list get a pointer of their own, declared where the last of their indices is
bound. This file knows where things are; it does not print loops or expressions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bbrewrite.codegen.access import classify
from bbrewrite.codegen.names import Names
from bbrewrite.codegen.steps import PackedOperand, kept_element, written_place
from bbrewrite.codegen.text import bare, storage_type
from bbrewrite.core.addresses import Address
from bbrewrite.core.elements import Element
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Local, Read
from bbrewrite.plan.kernel import LocalBlock


@dataclass(frozen=True)
class Position:
    """An entry along an axis: a loop variable inside a block, and how many loops deep it is bound."""

    variable: str
    depth: int


@dataclass(frozen=True)
class IndexNames:
    """`number` counts blocks, or is the position itself of a point index; then there is no start, count or block.

    Where a block spans the whole extent it starts at 0, and the other names are the extent's.
    """

    number: str
    start: str
    count: str
    block: str
    size: str

    def position(self, variable: str) -> str:
        """The position in the whole extent of an entry of the current block."""
        return variable if self.start == "0" else f"({self.start} + {variable})"


@dataclass(frozen=True)
class Place:
    """A block in memory. `inside` is the condition under which it is in its tensor at all, "" for always."""

    pointer: str
    strides: tuple[str, ...]
    inside: str = ""


class KernelScope:
    """See the module text. `blocks` are the kernel's local blocks with its temporaries.

    Of `single_rows` one row at a time is kept: all rows of such a block lie in the same place; those of `row_pairs` lie
    in turn in two. A block of `single_entries` is a variable inside the innermost loop. Along the indices in `whole` a
    block spans the extent.
    """

    def __init__(
        self,
        names: Names,
        indices: IndexTable,
        tensors: Sequence[Tensor],
        written: frozenset[str],
        blocks: Sequence[LocalBlock],
        single_rows: frozenset[str] = frozenset(),
        single_entries: frozenset[str] = frozenset(),
        row_pairs: frozenset[str] = frozenset(),
        whole: frozenset[str] = frozenset(),
    ) -> None:
        self.single_rows = single_rows
        self._single_entries = single_entries
        self._row_pairs = row_pairs
        self.whole = whole
        self.names = names
        self.indices = indices
        self.tensors = {tensor.name: tensor for tensor in tensors}
        self.blocks = {block.name: block for block in blocks}
        self._written = written
        self.pointers = {tensor.name: names.fresh(tensor.name) for tensor in tensors}
        self._sizes = {i.name: names.fresh(f"size_{i.name}") for i in indices if not i.same_as}
        self._index_names = {index.name: self._name_index(index.name) for index in indices}
        self.locals = {block.name: names.fresh(block.name) for block in blocks}
        self._kept: dict[str, tuple[str, str]] = {}
        self._places: dict[Read | Local, Place] = {}
        self.streamed: dict[str, str] = {}

    def _name_index(self, name: str) -> IndexNames:
        size = self.size(name)
        if not self.indices.is_blocked(name):
            return IndexNames(self.names.fresh(name), "", "", "", size)
        if name in self.whole:
            return IndexNames("0", "0", size, size, size)
        fresh = self.names.fresh
        return IndexNames(
            fresh(f"{name}_number"), fresh(f"{name}0"), fresh(f"{name}_count"), fresh(f"block_{name}"), size
        )

    def index(self, name: str) -> IndexNames:
        """The C++ names of an index."""
        return self._index_names[name]

    def size(self, name: str) -> str:
        """The run-time extent of an index."""
        return self._sizes[self.indices.root(name)]

    def steps_of(self, name: str) -> str:
        """How many blocks (or positions) an index has at run time, as an expression."""
        index = self.index(name)
        return f"bb_blocks({index.size}, {index.block})" if index.block else index.size

    def kept_axes(self, block: LocalBlock) -> tuple[str, ...]:
        """The axes along which a local block has memory."""
        return block.type.axes[1:] if block.name in self.single_rows | self._row_pairs else block.type.axes

    def rows_kept(self, block: LocalBlock) -> int:
        """For how many rows a local block has memory, each as large as the kept axes say."""
        return 2 if block.name in self._row_pairs else 1

    def name_packed(self, operand: PackedOperand) -> None:
        """Makes the names of a packed operand: of its current buffer, and where several are kept, of all of them and of
        the labels that tell what is in them.
        """
        stem = operand.name.replace(" ", "_")
        self.locals[operand.name] = self.names.fresh(stem)
        if operand.kept:
            self._kept[operand.name] = self.names.fresh(f"{stem}_blocks"), self.names.fresh(f"{stem}_labels")

    def buffer(self, block: LocalBlock | PackedOperand) -> str:
        """Where the memory of a local block or a packed operand begins."""
        return self._kept[block.name][0] if block.name in self._kept else self.locals[block.name]

    def labels(self, operand: PackedOperand) -> str:
        """The labels of a packed operand's buffers."""
        return self._kept[operand.name][1]

    def place(self, leaf: Read | Local) -> Place:
        """Where a placed read or a local block lies; its pointer is declared by `declarations`."""
        if leaf not in self._places:
            self._places[leaf] = self._local(leaf) if isinstance(leaf, Local) else self._read(leaf)
        return self._places[leaf]

    def target(self, target: LocalBlock | Tensor) -> Read | Local:
        """The leaf that stands for the place where a statement writes."""
        return written_place(target)

    def streamed_flag(self, tensor: Tensor) -> str:
        """The variable that tells at run time whether a result is stored past the caches."""
        if tensor.name not in self.streamed:
            self.streamed[tensor.name] = self.names.fresh(f"{tensor.name}_streamed")
        return self.streamed[tensor.name]

    def bytes_of(self, tensor: Tensor) -> str:
        """How many bytes a tensor has."""
        sizes = [self.size(index) for index in tensor.indices]
        return " * ".join([*sizes, f"sizeof({storage_type(tensor.element)})"])

    def are_fetched(self, reads: Sequence[Read]) -> str:
        """Whether rows are long enough, and tensors large enough, to fetch the next row while one is worked on."""
        tests: list[str] = []
        for leaf in reads:
            place, size = self.place(leaf), self.bytes_of(self.tensors[leaf.tensor])
            tests.append(f"bb::are_fetched({place.pointer}, {place.strides[0]}, {size})")
        return " && ".join(tests)

    def _local(self, leaf: Local) -> Place:
        block = self.blocks[leaf.name]
        sizes = [self.index(axis).block for axis in block.type.axes]
        strides = tuple(" * ".join(sizes[axis + 1 :]) or "1" for axis in range(len(sizes)))
        strides = ("0", *strides[1:]) if leaf.name in self.single_rows else strides
        pointer = self.names.fresh(f"{leaf.name}_{'_'.join(leaf.indices)}") if leaf.indices else self.locals[leaf.name]
        return Place(pointer, strides)

    def _read(self, leaf: Read) -> Place:
        shape = classify(leaf, self.indices)
        assert shape.placed
        pointer = self.names.fresh(f"{leaf.tensor}_block") if leaf.addresses else self.pointers[leaf.tensor]
        inside = self.names.fresh(f"{leaf.tensor}_inside") if shape.guarded else ""
        strides = self.tensor_strides(leaf.tensor)
        return Place(pointer, tuple(strides[axis] for axis in shape.axes), inside)

    def tensor_strides(self, tensor: str) -> tuple[str, ...]:
        """The distance between neighbours along each axis of a tensor."""
        sizes = [self.size(index) for index in self.tensors[tensor].indices]
        return tuple(" * ".join(sizes[axis + 1 :]) or "1" for axis in range(len(sizes)))

    def declarations(self, leaf: Read | Local) -> list[str]:
        """The lines that make the pointer of a leaf; none where a variable already is that pointer."""
        place = self.place(leaf)
        if isinstance(leaf, Local):
            if not leaf.indices:
                return []
            block = self.blocks[leaf.name]
            item = [self.index(axis).block for axis in block.type.axes]
            offset = self.list_number(leaf.indices)
            offset = f"{factor(offset)} * {' * '.join(item)}" if item else offset
            kind = storage_type(kept_element(block))
            return [f"{kind}* const {place.pointer} = {self.locals[leaf.name]} + {factor(offset)};"]
        if not leaf.addresses:
            return []
        tensor = self.tensors[leaf.tensor]
        offset = self._horner(
            [(self.block_start(a), self.size(i)) for a, i in zip(leaf.addresses, tensor.indices, strict=True)]
        )
        kind = storage_type(tensor.element) if tensor.name in self._written else f"const {storage_type(tensor.element)}"
        if not place.inside:
            return [f"{kind}* const {place.pointer} = {self.pointers[tensor.name]} + {factor(offset)};"]
        guarded = classify(leaf, self.indices).guarded
        tests = [
            f"bb_inside({self.block_start(leaf.addresses[axis])}, {self.size(tensor.indices[axis])})"
            for axis in guarded
        ]
        return [
            f"const bool {place.inside} = {' && '.join(tests)};",
            f"{kind}* const {place.pointer} = {self.pointers[tensor.name]} + ({place.inside} ? {offset} : 0);",
        ]

    def list_number(self, indices: Sequence[str]) -> str:
        """Which item of a list over these indices is the current one."""
        return self._horner([(self.index(name).number, self.steps_of(name)) for name in indices])

    def block_start(self, address: Address) -> str:
        """The first element that an address without blocked indices, or of a plain blocked index, stands for."""
        plain = address.plain_index
        if plain is not None:
            index = self.index(plain)
            return index.start or index.number
        return self.element_address(address, [])

    def element_address(self, address: Address, positions: Sequence[Position]) -> str:
        """The element that an address stands for at an entry; `positions` are those of its blocked indices in order."""
        remaining = list(positions)
        parts: list[str] = []
        for name, coefficient in address.indices:
            index = self.index(name)
            value = index.position(remaining.pop(0).variable) if index.start else index.number
            parts.append(signed_product(coefficient, value))
        parts += [signed_product(coefficient, self.size(name)) for name, coefficient in address.sizes]
        if address.offset or not parts:
            parts.append(f"- {-address.offset}" if address.offset < 0 else f"+ {address.offset}")
        text = " ".join(parts).removeprefix("+ ")
        text = f"-{text[2:]}" if text.startswith("- ") else text
        return text if address.divisor == 1 else f"bb::floor_div({text}, INT64_C({address.divisor}))"

    def entry(self, leaf: Read | Local, positions: Sequence[Position]) -> str:
        """The lvalue of an entry of a placed block."""
        place = self.place(leaf)
        if self.is_variable(leaf) or (isinstance(leaf, Local) and not leaf.indices and not positions):
            return place.pointer  # a single number is a variable
        variables = [position.variable for position in positions]
        variables[:1] = [self.row_place(leaf, row) for row in variables[:1]]
        return f"{place.pointer}[{self.offset(place.strides, variables)}]"

    def row_place(self, leaf: Read | Local, row: str) -> str:
        """Where a row lies among those that a block has memory for."""
        return f"({row} % 2)" if isinstance(leaf, Local) and leaf.name in self._row_pairs else row

    def is_variable(self, leaf: Read | Local) -> bool:
        """Whether a leaf is a block of which an entry is declared where it is computed."""
        return isinstance(leaf, Local) and leaf.name in self._single_entries

    @staticmethod
    def offset(strides: Sequence[str], places: Sequence[str]) -> str:
        """The distance of an entry from the first one."""
        parts = [
            place if stride == "1" else f"{factor(place)} * {stride}"
            for place, stride in zip(places, strides, strict=True)
            if stride != "0"
        ]
        return " + ".join(parts) or "0"

    def element_of(self, leaf: Read | Local) -> Element:
        """The element type in which a block is kept."""
        if isinstance(leaf, Local):
            return kept_element(self.blocks[leaf.name])
        return self.tensors[leaf.tensor].element

    @staticmethod
    def _horner(parts: list[tuple[str, str]]) -> str:
        text = "0"
        for value, size in parts:
            scaled = "" if text == "0" else f"{factor(text)} * {size}"
            text = " + ".join(part for part in (scaled, value) if part and part != "0") or "0"
        return text


def factor(text: str) -> str:
    """The expression as an operand of a multiplication."""
    called = re.sub(r"^[\w:]+(?=\()", "", text)
    return text if re.fullmatch(r"\w+", text) or bare(called) != called else f"({text})"


def signed_product(coefficient: int, value: str) -> str:
    """A term of a sum: its sign, a space, and its size."""
    sign = "-" if coefficient < 0 else "+"
    return f"{sign} {value}" if abs(coefficient) == 1 else f"{sign} {abs(coefficient)} * {value}"
