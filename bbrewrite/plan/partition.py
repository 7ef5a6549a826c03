"""Partition: from the chosen terms to kernels and the buffers between them.

Every list that is read with `At` is stored by a kernel of its own; lists equal up to renaming are stored once.
What remains in a kernel's bodies has no lists: reads of buffers have become `Read`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bbrewrite.core.addresses import Address
from bbrewrite.core.elements import Element
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import BlockProgram, Definition, Role, Tensor, as_computed, stored_wider
from bbrewrite.core.terms import At, Component, Loaded, Map, Pair, Read, Stored, Term, walk
from bbrewrite.core.types import Typing
from bbrewrite.plan.extraction.canonical import CanonicalLists
from bbrewrite.plan.extraction.lists import buffer_element


@dataclass(frozen=True)
class KernelOutput:
    """A tensor that a kernel stores, with the block it stores at the tensor's indices."""

    tensor: Tensor
    body: Term


@dataclass(frozen=True)
class KernelTerm:
    """What one kernel computes: several outputs where lists are made together."""

    name: str
    outputs: tuple[KernelOutput, ...]


@dataclass(frozen=True)
class Partition:
    """Kernels in the order in which they run, with their buffers."""

    kernels: tuple[KernelTerm, ...]
    buffers: tuple[Tensor, ...]


def partition(
    roots: Mapping[str, Term],
    list_names: Mapping[Term, str],
    declared: Mapping[str, Element],
    program: BlockProgram,
    indices: IndexTable,
    table: OperatorTable,
    canonical: CanonicalLists,
) -> Partition:
    """Splits the terms of a plan, one for each output of the program, into kernels.

    `declared` are the types of lists by name in which they are stored at least; `canonical` tells which lists are one.
    """
    return _Partition(roots, list_names, declared, program, indices, table, canonical).result


def fused_program(parts: Partition, program: BlockProgram, indices: IndexTable) -> BlockProgram:
    """The plan as a block program: one definition for each stored list."""
    definitions: list[Definition] = []
    for kernel in parts.kernels:
        for output in kernel.outputs:
            term = output.body
            for index in reversed(output.tensor.indices):
                term = Map(index, term)
            definitions.append(Definition(output.tensor, term))
    return BlockProgram(program.name, indices, program.inputs, program.assumptions, tuple(definitions))


class _Partition:
    def __init__(
        self,
        roots: Mapping[str, Term],
        list_names: Mapping[Term, str],
        declared: Mapping[str, Element],
        program: BlockProgram,
        indices: IndexTable,
        table: OperatorTable,
        canonical: CanonicalLists,
    ) -> None:
        self._names = list_names
        self._canonical = canonical.of
        self._declared = declared
        self._indices = indices
        self._table = table
        self._tensors: dict[str, Tensor] = {tensor.name: tensor for tensor in program.inputs}
        self._taken = set(program.tensors) | {index.name for index in indices}
        # Canonical lists, with the type in which they are wanted, to the tensors that hold them.
        self._stored: dict[tuple[Term, Element | None], tuple[Tensor, ...]] = {}
        self._rewritten: dict[Term, Term] = {}
        self._kernels: list[KernelTerm] = []
        self._outputs = {tensor.name: tensor for tensor in program.outputs}
        # Lists of pairs of which named lists are sides, to the names by position; outputs' names come first.
        self._sides: dict[Term, dict[int, str]] = {}
        read = {term.items for root in roots.values() for term in walk(root) if isinstance(term, At)}
        self._also_read = {name for name, term in roots.items() if term in read}
        for name, term in (*roots.items(), *((name, term) for term, name in list_names.items())):
            if isinstance(term, Component):
                pairs, position = _made_together(term)
                self._sides.setdefault(self._canonical(pairs), {}).setdefault(position, name)
        for name, term in roots.items():
            self._store_output(name, term)
        self.result = Partition(
            tuple(self._kernels),
            tuple(
                output.tensor
                for kernel in self._kernels
                for output in kernel.outputs
                if output.tensor.role is Role.BUFFER
            ),
        )

    def _store_output(self, name: str, term: Term) -> None:
        (tensor,) = self._store(term, name)
        if tensor.name != name:
            # Another output holds the same list, or it is one side of a pair made for a buffer: copy it.
            output = self._outputs[name]
            read = Read(tensor.name, tuple(Address(((index, 1),)) for index in output.indices))
            self._add_kernel((KernelOutput(output, read),))

    def _store(self, term: Term, name: str | None = None) -> tuple[Tensor, ...]:
        """The tensors that hold a closed list (several for a list of pairs), making their kernel if need be."""
        if isinstance(term, Component):
            pairs, position = _made_together(term)
            return self._store(pairs)[position : position + _lists_in(term)]
        # A list rounded to an output's type does not serve where the values themselves are wanted.
        key = (self._canonical(term), self._outputs[name].element if name else self._element(term))
        if key not in self._stored:
            sides = self._sides.get(key[0], {})
            count = _lists_in(term)
            names = tuple(sides.get(k) for k in range(count)) if count > 1 else (name or self._names.get(term),)
            outputs = tuple(self._kernel_outputs(term, (), names))
            self._stored[key] = tuple(output.tensor for output in outputs)
            self._add_kernel(outputs)
        return self._stored[key]

    def _element(self, term: Term) -> Element | None:
        """The type in which a list is stored that is no output; None for a list of pairs."""
        name, body = self._names.get(term), term
        while isinstance(body, Map | Stored):
            body = body.body if isinstance(body, Map) else body.value
        if isinstance(body, Pair):
            return None
        return self._buffer(name, (), self._without_lists(body)).element

    def _buffer(self, name: str | None, indices: tuple[str, ...], body: Term) -> Tensor:
        """The buffer of a list. The types of others that are wider than what is in them say nothing of its own."""
        tensors = {name: as_computed(tensor) for name, tensor in self._tensors.items()}
        element = buffer_element(Typing(self._table, self._indices, tensors).block(body).element)
        return stored_wider(Tensor(name or "", indices, element, Role.BUFFER), self._declared.get(name or ""))

    def _kernel_outputs(
        self, term: Term, indices: tuple[str, ...], names: tuple[str | None, ...]
    ) -> list[KernelOutput]:
        """What a kernel stores of a list, or of the lists of a list of pairs, under the names that they should have."""
        match term:
            case Map(index, body):
                return self._kernel_outputs(body, (*indices, index), names)
            case Stored(value):
                return self._kernel_outputs(value, indices, names)
            case Pair(first, second):
                count = _lists_in(first)
                return [
                    *self._kernel_outputs(first, indices, names[:count]),
                    *self._kernel_outputs(second, indices, names[count:]),
                ]
            case _:
                body = self._without_lists(term)
                (name,) = names
                if name in self._also_read and self._outputs[name].element is not self._buffer(name, (), body).element:
                    name = None  # rounded to the output's type it would not serve its other readers
                return [KernelOutput(self._tensor(name, indices, body), body)]

    def _tensor(self, name: str | None, indices: tuple[str, ...], body: Term) -> Tensor:
        if name in self._outputs and name not in self._tensors:
            tensor = self._outputs[name]
            tensor = Tensor(tensor.name, indices, tensor.element, tensor.role)
        else:
            tensor = replace(self._buffer(name, indices, body), name=self._fresh(name or "T"))
        self._tensors[tensor.name] = tensor
        return tensor

    def _fresh(self, stem: str) -> str:
        name, number = stem, 1
        while name in self._tensors or (name != stem and name in self._taken):
            name, number = f"{stem}{number}", number + 1
        return name

    def _without_lists(self, term: Term) -> Term:
        if term not in self._rewritten:
            if isinstance(term, At | Loaded):
                changed = self._read(term)
            else:
                children = term.children
                changed = term.with_children(tuple(self._without_lists(child) for child in children))
            self._rewritten[term] = changed
        return self._rewritten[term]

    def _read(self, term: At | Loaded) -> Term:
        addresses: list[Address] = []
        items: Term = term.stored if isinstance(term, Loaded) else term
        while isinstance(items, At):
            addresses.insert(0, items.address)
            items = items.items
        (tensor,) = self._store(items)
        return Read(tensor.name, tuple(addresses))

    def _add_kernel(self, outputs: tuple[KernelOutput, ...]) -> None:
        self._kernels.append(KernelTerm("_".join(output.tensor.name for output in outputs), outputs))


def _made_together(term: Term) -> tuple[Term, int]:
    """The list of pairs of which a term is a side, or a side of a side, and where among its lists the term begins."""
    position = 0
    while isinstance(term, Component):
        if term.position == 1:
            position += _lists_in(Component(0, term.pair))
        term = term.pair
    return term, position


def _lists_in(term: Term) -> int:
    """How many lists a list of pairs, of pairs of pairs and so on, holds."""
    match term:
        case Map(_, body):
            return _lists_in(body)
        case Pair(first, second):
            return _lists_in(first) + _lists_in(second)
        case Component():
            return _lists_in(_side(term))
        case _:
            return 1


def _side(term: Component) -> Term:
    """The side of a pair that a component takes, without the maps around the pair."""
    pair = _side(term.pair) if isinstance(term.pair, Component) else term.pair
    while isinstance(pair, Map):
        pair = pair.body
    assert isinstance(pair, Pair)
    return (pair.first, pair.second)[term.position]
