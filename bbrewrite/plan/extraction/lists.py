"""The lists of an e-graph that may be kept in global memory, and how values are read from them.

A list is a class without free indices that some node makes as a whole (`Map`, `Stored`, a pair of lists or one side
of a pair). Classes that stand for one list under two names are one list here. Which lists a plan stores is for
`search.py` to choose.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf

from bbrewrite.core.addresses import Address
from bbrewrite.core.elements import Element, stored_element, wider
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import BlockProgram, Role, Tensor, stored_wider
from bbrewrite.core.terms import At, Component, Loaded, Map, Pair, Read, Stored, Term
from bbrewrite.core.types import BlockTypeError, ListType, PairType, StoredType, Type, Typing
from bbrewrite.egraph.view import EClass, ENode, FrozenGraph
from bbrewrite.plan.extraction.canonical import CanonicalLists


@dataclass(frozen=True)
class ListClass:
    """A list that can be stored. `name` is that of its definition, where it is one, or made from its structure.

    `tensor` is what a kernel that reads it sees; None for a pair, which is stored as two lists and never read whole.
    """

    name: str
    identifier: int
    tensor: Tensor | None


class Lists:
    """The lists of a graph by class; reads are resolved to them."""

    def __init__(self, graph: FrozenGraph, program: BlockProgram, indices: IndexTable, table: OperatorTable) -> None:
        self._graph = graph
        self.depths = list_depths(graph)
        self.pairs = _pair_classes(graph)
        self._terms = smallest_terms(graph)
        self._typing = Typing(table, indices, program.tensors)
        definitions = {identifier: name for name, identifier in sorted(graph.roots.items(), reverse=True)}
        representatives: dict[Term, ListClass] = {}
        self._of_class: dict[int, ListClass] = {}
        closed = [identifier for identifier in graph.classes if self._is_list(identifier)]
        self.canonical = CanonicalLists(indices)
        forms = {identifier: self.canonical.of(self._terms[identifier]) for identifier in closed}
        elements: dict[Term, Element | None] = {}
        for name, identifier in graph.roots.items():
            if identifier in forms:
                form = forms[identifier]
                elements[form] = wider(elements.get(form), program.tensors[name].element)
        # The types in which definitions want their lists to be stored.
        self.wanted_elements: dict[str, Element] = {}
        # Definitions first, so that a list keeps its definition's name; then by structure.
        for identifier in sorted(closed, key=lambda c: (c not in definitions, self._terms[c].digest)):
            term = forms[identifier]
            if term not in representatives:
                name = definitions.get(identifier, f"#{term.digest}")
                if (element := elements.get(term)) is not None:
                    self.wanted_elements[name] = element
                representatives[term] = ListClass(name, identifier, self._tensor(name, identifier))
            self._of_class[identifier] = representatives[term]
        self.by_name = {found.name: found for found in representatives.values()}
        self._outputs = {tensor.name: tensor for tensor in program.outputs}
        # Where definitions stand in the program.
        names = (definition.tensor.name for definition in program.definitions)
        self.places = {name: place for place, name in enumerate(names) if name in self.by_name}
        self._sides = self._sides_of_pairs()
        self._reads: dict[int, tuple[tuple[ListClass, tuple[Address, ...]], ...]] = {}

    def __getitem__(self, identifier: int) -> ListClass:
        return self._of_class[identifier]

    def __contains__(self, identifier: int) -> bool:
        return identifier in self._of_class

    @property
    def tensors(self) -> dict[str, Tensor]:
        """What reads of lists read."""
        return {found.name: found.tensor for found in self.by_name.values() if found.tensor is not None}

    def as_stored(self, name: str, indices: tuple[str, ...]) -> Tensor:
        """What a kernel stores that makes a list by its own indices: an output of the program where the list is one."""
        return replace(self._outputs.get(name) or self.tensors[name], indices=indices)

    def is_block(self, identifier: int) -> bool:
        """Whether a class's value is one block in local memory."""
        nodes = self._graph.classes[identifier].nodes
        return (
            self.depths.get(identifier) == 0
            and identifier not in self.pairs
            and not any(isinstance(node.head, Stored) for node in nodes)
        )

    def reads(self, identifier: int) -> Iterator[Read]:
        """The ways to load a block from lists in global memory."""
        for found, addresses in self._accesses(identifier, frozenset()):
            if found.tensor is not None and len(addresses) == len(found.tensor.indices):
                yield Read(found.name, addresses)

    def stored_as(self, name: str) -> tuple[str, ...]:
        """The lists that storing one means: of a pair those of its sides, which may be pairs again.

        None at all where nothing could read a side, or where two sides are one list.
        """
        if self.by_name[name].tensor is not None:
            return (name,)
        sides = self._sides.get(name, {})
        parts = [self.stored_as(sides[position]) for position in (0, 1) if position in sides]
        stored = tuple(side for part in parts for side in part)
        return stored if len(parts) == 2 and all(parts) and len(set(stored)) == len(stored) else ()

    def _sides_of_pairs(self) -> dict[str, dict[int, str]]:
        """The names of the sides of pairs of lists, by position."""
        sides: dict[str, dict[int, str]] = {}
        for identifier, found in self._of_class.items():
            for node in self._graph.classes[identifier].nodes:
                if isinstance(node.head, Component) and node.children[0] in self._of_class:
                    pair = self._of_class[node.children[0]]
                    sides.setdefault(pair.name, {})[node.head.position] = found.name
        return sides

    def from_scratch(self, name: str) -> Term:
        """The smallest term of a list, which reads no other list: a measure of what making it takes."""
        return self._terms[self.by_name[name].identifier]

    def _accesses(self, identifier: int, visiting: frozenset[int]) -> tuple[tuple[ListClass, tuple[Address, ...]], ...]:
        if identifier in visiting:
            return ()
        if identifier not in self._reads:
            found: dict[tuple[str, tuple[Address, ...]], tuple[ListClass, tuple[Address, ...]]] = {}
            if identifier in self._of_class:
                known = self._of_class[identifier]
                found[known.name, ()] = (known, ())
            for node in self._graph.classes[identifier].nodes:
                if isinstance(node.head, At | Loaded):
                    more = (node.head.address,) if isinstance(node.head, At) else ()
                    for items, addresses in self._accesses(node.children[0], visiting | {identifier}):
                        found.setdefault((items.name, (*addresses, *more)), (items, (*addresses, *more)))
            self._reads[identifier] = tuple(found.values())
        return self._reads[identifier]

    def _is_list(self, identifier: int) -> bool:
        eclass = self._graph.classes[identifier]
        if eclass.free or identifier not in self._terms:
            return False
        if any(isinstance(node.head, Stored) for node in eclass.nodes):
            return True
        return self.depths.get(identifier, 0) > 0 and any(
            isinstance(node.head, Map | Pair | Component) for node in eclass.nodes
        )

    def _tensor(self, name: str, identifier: int) -> Tensor | None:
        try:
            found: Type = self._typing.of(self._terms[identifier])
        except BlockTypeError:
            return None
        names: list[str] = []
        while isinstance(found, ListType | StoredType):
            if isinstance(found, ListType):
                names.append(found.index)
            found = found.item
        if isinstance(found, PairType):
            return None
        tensor = Tensor(name, tuple(names), buffer_element(found.element), Role.BUFFER)
        return stored_wider(tensor, self.wanted_elements.get(name))


def buffer_element(element: Element | None) -> Element:
    """The type of a buffer of such blocks; numbers, which are worked on as f64, are stored so."""
    return Element.F64 if element in (None, Element.NUMBER) else stored_element(element)


def smallest_terms(graph: FrozenGraph) -> Mapping[int, Term]:
    """For each class its smallest term, a name for it that no renaming or reordering of rules changes.

    Such a term need not keep to its scope: it is no program.
    """
    users: dict[int, dict[int, None]] = {}
    for identifier, eclass in graph.classes.items():
        for node in eclass.nodes:
            for child in node.children:
                users.setdefault(child, {})[identifier] = None
    sizes: dict[int, float] = {}
    # Most operands come after their users, so from the last on few classes are looked at twice.
    pending = dict.fromkeys(reversed(list(graph.classes)))
    while pending:
        waiting, pending = pending, dict[int, None]()
        for identifier in waiting:
            size = min([_size(node, sizes) for node in graph.classes[identifier].nodes], default=inf)
            if size < sizes.get(identifier, inf):
                sizes[identifier] = size
                pending.update(users.get(identifier, {}))
    terms: dict[int, Term] = {}
    # Operands are smaller than what they make, so they come first.
    for identifier in sorted(sizes, key=sizes.__getitem__):
        nodes = [node for node in graph.classes[identifier].nodes if _size(node, sizes) == sizes[identifier]]
        options = [node.build(tuple(terms[child] for child in node.children)) for node in nodes]
        terms[identifier] = min(options, key=lambda term: term.digest)
    return terms


def _size(node: ENode, sizes: Mapping[int, float]) -> float:
    """The size of the smallest term of a node, infinite while that of an operand is unknown."""
    return 1 + sum([sizes.get(child, inf) for child in node.children])


def list_depths(graph: FrozenGraph) -> dict[int, int]:
    """How many indices must be given before a class's value is a block."""
    depths: dict[int, int] = {}

    def of(node: ENode) -> int | None:
        if isinstance(node.head, Map | At):
            inner = depths.get(node.children[0])
            return None if inner is None else inner + (1 if isinstance(node.head, Map) else -1)
        if isinstance(node.head, Pair | Component):
            return depths.get(node.children[0])
        return 0

    pending: dict[int, EClass] = dict(graph.classes)
    while pending:
        found: dict[int, int] = {}
        for identifier, eclass in pending.items():
            depth = next((depth for node in eclass.nodes if (depth := of(node)) is not None), None)
            if depth is not None:
                found[identifier] = depth
        if not found:
            break  # classes that only refer to each other stand for no term
        depths |= found
        pending = {identifier: eclass for identifier, eclass in pending.items() if identifier not in found}
    return depths


def _pair_classes(graph: FrozenGraph) -> frozenset[int]:
    """The classes whose value is two values, or a list of such."""
    found = {c for c, eclass in graph.classes.items() if any(isinstance(n.head, Pair) for n in eclass.nodes)}
    grown = True
    while grown:
        more = {
            identifier
            for identifier, eclass in graph.classes.items()
            if identifier not in found
            and any(isinstance(n.head, Map | At | Stored | Loaded) and n.children[0] in found for n in eclass.nodes)
        }
        found |= more
        grown = bool(more)
    return frozenset(found)
