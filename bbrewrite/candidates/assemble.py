"""From the plans of candidates to one plan of the whole program, under the program's names.

Candidates run in the order given. What one leaves for another becomes a buffer of the whole program.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from bbrewrite.candidates.subprogram import Candidate, Place
from bbrewrite.core.addresses import Address
from bbrewrite.core.indices import Index, IndexTable
from bbrewrite.core.programs import BlockProgram, Definition, Role, Tensor
from bbrewrite.core.renaming import rename_term
from bbrewrite.core.terms import Read
from bbrewrite.plan.costs.totals import Cost
from bbrewrite.plan.kernel import Kernel, KernelProgram, Slice
from bbrewrite.plan.plans import Plan
from bbrewrite.plan.scheduling.renaming import KernelRenaming
from bbrewrite.plan.unkept import Unkept


def assemble(program: BlockProgram, parts: Sequence[tuple[Candidate, Plan]]) -> Plan:
    """The plan that runs the candidates' plans one after another."""
    return _Assembly(program).plan(parts)


class _Assembly:
    def __init__(self, program: BlockProgram) -> None:
        self._program = program
        self._indices = program.indices
        self._tensors: dict[str, Tensor] = dict(program.tensors)
        self._slices: dict[Place, Slice] = {}
        self._taken = {*self._tensors, *(index.name for index in program.indices)}
        self._buffers: list[Tensor] = []
        self._outputs: dict[str, Tensor] = {}

    def plan(self, parts: Sequence[tuple[Candidate, Plan]]) -> Plan:
        kernels: list[Kernel] = []
        costs: list[Cost] = []
        definitions: list[Definition] = []
        notes: list[str] = []
        unkept: list[Unkept] = []
        explained: set[int] = set()
        for candidate, plan in parts:
            part = _Part(candidate, plan, self)
            kernels += part.kernels()
            definitions += part.definitions()
            costs += plan.costs
            unkept += part.unkept()
            if id(plan) not in explained:
                # What is to be said of one candidate is to be said of all of its class.
                explained.add(id(plan))
                notes += part.notes()
        program = self._program
        whole = KernelProgram(
            program.name,
            self._indices,
            program.inputs,
            tuple(self._buffers),
            tuple(self._outputs[tensor.name] for tensor in program.outputs),
            tuple(kernels),
            tuple(self._slices.values()),
            # One translation unit has one set of options.
            any(plan.kernels.unrolled for _, plan in parts),
        )
        fused = replace(program, indices=self._indices, definitions=tuple(definitions))
        return Plan(tuple(costs), {}, fused, whole, tuple(notes), unkept=tuple(unkept))

    def place(self, place: Place) -> Tensor:
        """The tensor that stands for one of the program, or for a part of it."""
        name, positions = place
        tensor = self._tensors[name]
        if not positions:
            return tensor
        if place not in self._slices:
            part = self.fresh("_".join([name, *map(str, positions)]))
            rest = replace(tensor, name=part, indices=tensor.indices[len(positions) :])
            self._slices[place] = Slice(rest, tensor, positions)
        return self._slices[place].tensor

    def stored(self, tensor: Tensor) -> Tensor:
        """Enters a tensor that a kernel stores, under its new name and indices, with its role in the program."""
        known = self._tensors.get(tensor.name)
        role = Role.OUTPUT if known is not None and known.role is Role.OUTPUT else Role.BUFFER
        tensor = replace(tensor, role=role)
        self._tensors[tensor.name] = tensor
        if role is Role.OUTPUT:
            self._outputs[tensor.name] = tensor
        else:
            self._buffers.append(tensor)
        return tensor

    def extra_index(self, root: str, number: int, block: int | None) -> str:
        """The name of an index that planning added to a candidate: the same for all candidates."""
        name = f"{root}_{number}"
        while name in self._taken or (name in self._indices and self._indices.is_blocked(name) is (block is None)):
            name += "_"
        if name not in self._indices:
            self._indices = self._indices.with_index(Index(name, same_as=root, block=block))
        return name

    def share_index(self, index: Index) -> str:
        """The name of an index for the shares of a loop: one for each number of shares."""
        name = index.name
        while name in self._taken:
            name += "_"
        if name not in self._indices:
            self._indices = self._indices.with_index(replace(index, name=name))
        return name

    def index(self, name: str) -> Index:
        """The whole program's index of that name."""
        return self._indices[name]

    def fresh(self, stem: str) -> str:
        """A name that stands for nothing yet."""
        name, number = stem, 1
        while name in self._taken:
            name, number = f"{stem}_{number}", number + 1
        self._taken.add(name)
        return name


class _Part:
    """One candidate's plan under the names of the program."""

    def __init__(self, candidate: Candidate, plan: Plan, whole: _Assembly) -> None:
        self._plan = plan
        self._whole = whole
        self._places = candidate.tensors
        self._names = dict(candidate.indices)
        table = plan.kernels.indices
        for index in table:
            if index.is_share:
                self._names[index.name] = whole.share_index(index)
        for number, index in enumerate(i for i in table if i.name not in self._names):
            root = whole.index(self._names[table.root(index.name)])
            self._names[index.name] = whole.extra_index(root.same_as or root.name, number, index.block)
        self._tensors: dict[str, Tensor] = {}
        for tensor in plan.kernels.inputs:
            self._tensors[tensor.name] = whole.place(self._places[tensor.name])
        for tensor in (*plan.kernels.buffers, *plan.kernels.outputs):
            place = self._places.get(tensor.name)
            name = place[0] if place else whole.fresh(tensor.name)
            indices = tuple(self._names[index] for index in tensor.indices)
            self._tensors[tensor.name] = whole.stored(replace(tensor, name=name, indices=indices))
        self._locals: dict[str, str] = {}
        self._renaming = KernelRenaming(self._tensors, self._names, self._local)

    def kernels(self) -> list[Kernel]:
        return [
            self._renaming.kernel(kernel, self._kernel_name(kernel), self._table(kernel.indices))
            for kernel in self._plan.kernels.kernels
        ]

    def definitions(self) -> list[Definition]:
        found: list[Definition] = []
        for definition in self._plan.fused.definitions:
            tensor = self._tensors[definition.tensor.name]
            indices = tuple(self._names[index] for index in definition.tensor.indices)
            term = rename_term(definition.term, self._names, self._read)
            found.append(Definition(replace(tensor, indices=indices), term))
        return found

    def notes(self) -> Iterable[str]:
        return (re.sub(r"\w+", lambda word: self._words(word.group()), note) for note in self._plan.notes)

    def unkept(self) -> Iterable[Unkept]:
        names = {kernel.name: self._kernel_name(kernel) for kernel in self._plan.kernels.kernels}
        return (
            replace(found, kernel=names[found.kernel], tensor=self._tensors[found.tensor].name)
            for found in self._plan.unkept
        )

    def _kernel_name(self, kernel: Kernel) -> str:
        return "_".join(self._tensors[tensor.name].name for tensor in kernel.writes)

    def _read(self, read: Read) -> Read:
        place = self._places.get(read.tensor)
        if place is None:
            return Read(self._tensors[read.tensor].name, read.addresses)
        name, positions = place
        return Read(name, (*(Address((), (), position) for position in positions), *read.addresses))

    def _table(self, chosen: IndexTable) -> IndexTable:
        """The indices of a kernel under their new names, those that hold extents among them."""
        found: dict[str, Index] = {}
        for index in chosen:
            own = self._whole.index(self._names[index.name])
            holder = self._whole.index(own.same_as or own.name)
            found.setdefault(holder.name, replace(holder, block=None))
            found[own.name] = replace(own, block=index.block, block_is_fixed=index.block_is_fixed)
        return IndexTable.of(list(found.values()))

    def _local(self, name: str) -> str:
        """The name of a local block; two blocks never get one."""
        if name not in self._locals:
            found = self._words(name)
            while found in self._locals.values():
                found += "_"
            self._locals[name] = found
        return self._locals[name]

    def _words(self, text: str) -> str:
        """A name that planning made from canonical names, with those of the program in their place."""
        return "_".join(self._word(word) for word in text.split("_"))

    def _word(self, word: str) -> str:
        tensor = self._tensors.get(word)
        return tensor.name if tensor is not None else self._names.get(word, word)
