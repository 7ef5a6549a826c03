"""A candidate: some definitions of a program as a program of their own, under canonical names.

Tensors that come from outside are its inputs, and tensors that something outside needs are its outputs. Names are
given by place, so two candidates that differ in names only are one program: a class, which is planned once. A tensor
that a candidate reads at constant positions of its leading axes (the weights of one layer) is an input without those
axes, so that layers are alike too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from bbrewrite.candidates.graph import OperatorGraph
from bbrewrite.core.addresses import Address
from bbrewrite.core.indices import Index, IndexTable
from bbrewrite.core.programs import Assumption, BlockProgram, Definition, Role, Tensor
from bbrewrite.core.renaming import rename_term
from bbrewrite.core.terms import Map, Read, Reduce, Size, Term, walk

# A tensor by name, and the positions at which its leading axes are read.
type Place = tuple[str, tuple[int, ...]]


@dataclass(frozen=True)
class Candidate:
    """Definitions of a program, by position, as `program` of its own.

    `tensors` and `indices` say what canonical names stand for: a tensor of the whole program, with the positions at
    which its leading axes are read, and an index.
    """

    members: tuple[int, ...]
    program: BlockProgram
    tensors: Mapping[str, Place]
    indices: Mapping[str, str]

    @cached_property
    def key(self) -> object:
        """What candidates of one class have in common: everything but names outside."""
        return class_key(self.program)

    @cached_property
    def kind(self) -> object:
        """What classes have in common whose extents are alike: each is taken for the power of two below it."""
        indices = self.program.indices
        rounded = [replace(i, extent=i.extent and 1 << (i.extent.bit_length() - 1)) for i in indices]
        return class_key(replace(self.program, indices=IndexTable.of(rounded)))


def class_key(program: BlockProgram) -> object:
    """What programs under canonical names have in common that are planned alike; equality alone leaves out which block
    sizes are the user's.
    """
    return (program, tuple(index.block_is_fixed for index in program.indices))


def make_candidate(program: BlockProgram, graph: OperatorGraph, members: Iterable[int]) -> Candidate:
    """The candidate of some definitions of a program, which must be convex."""
    return _Maker(program, graph, tuple(sorted(members))).candidate()


class _Maker:
    def __init__(self, program: BlockProgram, graph: OperatorGraph, members: tuple[int, ...]) -> None:
        self._whole = program
        self._members = members
        self._definitions = [program.definitions[member] for member in members]
        self._leaving = {program.definitions[member].tensor.name for member in graph.leaving(members)}
        self._inside = {definition.tensor.name for definition in self._definitions}
        self._tensors = program.tensors
        self._names: dict[Place, str] = {}
        self._indices: dict[str, str] = {}

    def candidate(self) -> Candidate:
        for index in self._indices_in_order():
            self._indices.setdefault(index, f"index{len(self._indices)}")
        definitions = tuple(self._definition(definition) for definition in self._definitions)
        outside = [(place, name) for place, name in self._names.items() if place[0] not in self._inside]
        assumptions = tuple(
            Assumption(assumed.fact, name)
            for (tensor, _), name in outside
            for assumed in self._whole.assumptions
            if assumed.tensor == tensor
        )
        inputs = tuple(self._input(place, name) for place, name in outside)
        found = BlockProgram("candidate", self._index_table(), inputs, assumptions, definitions)
        tensors = {name: place for place, name in self._names.items()}
        indices = {canonical: name for name, canonical in self._indices.items()}
        return Candidate(self._members, found, tensors, indices)

    def _indices_in_order(self) -> Iterator[str]:
        """The indices that definitions bind, outermost first; then those of which only the extent is used.

        Binders come in an order that no renaming changes; the parts of an address are sorted by name.
        """
        mentioned: set[str] = set()
        for definition in self._definitions:
            yield from _binders(definition.term)
            for term in walk(definition.term):
                if isinstance(term, Size):
                    mentioned.add(term.index)
                elif isinstance(term, Read):
                    mentioned |= {name for address in term.addresses for name, _ in address.sizes}
        for definition in self._definitions:
            for term in walk(definition.term):
                if isinstance(term, Read):
                    yield from self._tensors[term.tensor].indices[self._leading_constants(term) :]
        yield from (index.name for index in self._whole.indices if index.name in mentioned)

    def _index_table(self) -> IndexTable:
        """The indices under canonical names; the first of those with one extent holds it."""
        table = self._whole.indices
        holders: dict[str, str] = {}
        found: list[Index] = []
        for name, canonical in self._indices.items():
            root = table.root(name)
            holder = holders.setdefault(root, canonical)
            same_as = None if holder == canonical else holder
            extent = table.extent(root) if same_as is None else None
            found.append(replace(table[name], name=canonical, extent=extent, same_as=same_as))
        return IndexTable.of(found)

    def _definition(self, definition: Definition) -> Definition:
        tensor = definition.tensor
        term = rename_term(definition.term, self._indices, self._read)
        role = Role.OUTPUT if tensor.name in self._leaving else Role.BUFFER
        return Definition(replace(self._renamed(tensor, self._name(tensor.name, ())), role=role), term)

    def _read(self, read: Read) -> Read:
        count = self._leading_constants(read)
        positions = tuple(address.offset for address in read.addresses[:count])
        return Read(self._name(read.tensor, positions), read.addresses[count:])

    def _leading_constants(self, read: Read) -> int:
        """How many leading axes of a tensor from outside are read at a constant position."""
        axes = self._tensors[read.tensor].indices
        count = 0
        if read.tensor not in self._inside:
            while count < len(axes) and self._is_position(read.addresses[count], axes[count]):
                count += 1
        return count

    def _is_position(self, address: Address, axis: str) -> bool:
        """Whether an address is a constant that lies inside its axis: behind a `where` it need not."""
        extent = self._whole.indices.extent(axis)
        is_constant = not address.indices and not address.sizes
        return is_constant and extent is not None and 0 <= address.offset < extent

    def _name(self, tensor: str, positions: tuple[int, ...]) -> str:
        return self._names.setdefault((tensor, positions), f"tensor{len(self._names)}")

    def _input(self, place: Place, canonical: str) -> Tensor:
        name, positions = place
        tensor = self._tensors[name]
        rest = replace(tensor, indices=tensor.indices[len(positions) :])
        role = Role.WEIGHT if tensor.role is Role.WEIGHT else Role.INPUT
        return replace(self._renamed(rest, canonical), role=role)

    def _renamed(self, tensor: Tensor, canonical: str) -> Tensor:
        return replace(tensor, name=canonical, indices=tuple(self._indices[index] for index in tensor.indices))


def _binders(term: Term) -> Iterator[str]:
    """The indices that a term binds, outermost first."""
    seen: set[Term] = set()
    waiting = [term]
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, Map | Reduce):
            yield node.index
        waiting.extend(reversed(node.children))
