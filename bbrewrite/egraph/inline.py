"""From a block program to closed terms, one for each definition, in which every edge between definitions shows.

A read of an earlier definition becomes that definition's own term under `At` (`Loaded` for a scalar), so
the edge stays buffered until a rule removes it. A list read at other index names (`X[s, d]` and `X[t, d]` of one
computed list) is instantiated under those names: `map s: ...` read at s; where only a binder's name differs, the
binder takes the definition's. A read at an expression keeps the definition under its own names. Reads of inputs
and weights stay reads. Nothing is fused here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bbrewrite.core.addresses import Address
from bbrewrite.core.indices import Index, IndexTable
from bbrewrite.core.programs import BlockProgram, Definition
from bbrewrite.core.terms import Apply, At, IndexValue, Loaded, Map, Read, Reduce, Stored, Term, walk


@dataclass(frozen=True)
class InlinedProgram:
    """`roots` has the closed term of every definition by tensor name; `indices` may have grown by fresh ones."""

    roots: Mapping[str, Term]
    indices: IndexTable


def inline(program: BlockProgram) -> InlinedProgram:
    """See the module text."""
    inliner = _Inliner(program)
    roots = {d.tensor.name: inliner.instance(d, d.tensor.indices) for d in program.definitions}
    return InlinedProgram(roots, inliner.indices)


class _Inliner:
    """Holds the index table as it grows, and every instance of a definition made so far."""

    def __init__(self, program: BlockProgram) -> None:
        self.indices = program.indices
        self._tensors = program.tensors
        self._definitions = {definition.tensor.name: definition for definition in program.definitions}
        self._instances: dict[tuple[str, tuple[str, ...]], Term] = {}
        self._fresh: dict[str, list[str]] = {}

    def instance(self, definition: Definition, names: tuple[str, ...]) -> Term:
        """The definition's closed term with `names` for its own indices."""
        key = (definition.tensor.name, names)
        if key not in self._instances:
            renaming = dict(zip(definition.tensor.indices, names, strict=True))
            changed = {old: new for old, new in renaming.items() if old != new}
            term = _Renaming(self, changed).apply(definition.body)
            for name in reversed(names):
                term = Map(name, term)
            self._instances[key] = term if names else Stored(term)
        return self._instances[key]

    def read(self, tensor: str, addresses: tuple[Address, ...]) -> Term:
        """A read: of a definition, its term read at the addresses."""
        definition = self._definitions.get(tensor)
        if definition is None:
            return Read(tensor, addresses)
        term = self.instance(definition, self._names(definition, addresses))
        for address in addresses:
            term = At(term, address)
        return term if addresses else Loaded(term)

    def _names(self, definition: Definition, addresses: tuple[Address, ...]) -> tuple[str, ...]:
        """The index names under which a read takes a definition: the read's, where all are plain and suit."""
        own = definition.tensor.indices
        plain = [address.plain_index for address in addresses]
        names = tuple(name for name in plain if name is not None)
        if len(names) < len(plain) or len(set(names)) < len(names):
            return own
        return names if all(self._alike(old, new) for old, new in zip(own, names, strict=True)) else own

    def _alike(self, old: str, new: str) -> bool:
        """Whether one index can stand for the other: equal extents, and both or neither along an axis of blocks."""
        table = self.indices
        return table.root(old) == table.root(new) and table.is_blocked(old) == table.is_blocked(new)

    def usual_name(self, term: Term, bound: str) -> str:
        """The name under which definitions know what a binder runs over, or the binder's own where they do not agree.

        `reduce sum t: ...P[m, t]...` of a list P over m and n runs over n, so that it meets the loops over n that
        made P. Which name a binder has does not change its value.
        """
        names: set[str] = set()
        for node in walk(term):
            if isinstance(node, Read) and node.tensor in self._definitions:
                own = self._definitions[node.tensor].tensor.indices
                names |= {name for name, a in zip(own, node.addresses, strict=True) if a.plain_index == bound}
        if len(names) != 1:
            return bound
        (name,) = names
        return name if self._alike(bound, name) and self._same_blocks(bound, name) else bound

    def _same_blocks(self, one: str, other: str) -> bool:
        first, second = self.indices[one], self.indices[other]
        return first.block == second.block and first.block_is_fixed == second.block_is_fixed

    def fresh(self, bound: str, taken: frozenset[str]) -> str:
        """A new name for a bound index that would capture one of `taken`; the same one wherever it will do."""
        made = self._fresh.setdefault(bound, [])
        for name in made:
            if name not in taken:
                return name
        name = self.indices.fresh_name(f"{bound}_")
        while name in self._tensors or name in self.indices:
            name += "_"
        block = self.indices[bound].block
        fixed = self.indices[bound].block_is_fixed
        self.indices = self.indices.with_index(Index(name, None, self.indices.root(bound), block, fixed))
        made.append(name)
        return name


class _Renaming:
    """Renames free indices in a body, without capture, and inlines its reads under the new names."""

    def __init__(self, inliner: _Inliner, names: Mapping[str, str]) -> None:
        self._inliner = inliner
        self._names = names
        self._done: dict[Term, Term] = {}

    def apply(self, term: Term) -> Term:
        if term not in self._done:
            self._done[term] = self._find(term)
        return self._done[term]

    def _find(self, term: Term) -> Term:
        names = self._names
        match term:
            case Read(tensor, addresses):
                return self._inliner.read(tensor, tuple(address.renamed(names) for address in addresses))
            case IndexValue(index):
                return IndexValue(names.get(index, index))
            case Apply(operator, operands, indices) if indices:
                renamed = tuple(names.get(index, index) for index in indices)
                return Apply(operator, tuple(map(self.apply, operands)), renamed)
            case At(items, address):
                return At(self.apply(items), address.renamed(names))
            case Map() | Reduce():
                return self._binder(term, term.index)
            case _:
                return term.with_children(tuple(map(self.apply, term.children)))

    def _binder(self, term: Map | Reduce, bound: str) -> Term:
        inner = {old: new for old, new in self._names.items() if old != bound and old in term.free}
        taken = frozenset(inner.get(name, name) for name in term.free)
        usual = self._inliner.usual_name(term, bound)
        if usual != bound and usual not in taken:
            inner[bound] = usual
        elif bound in taken:
            inner[bound] = self._inliner.fresh(bound, taken)
        scope = self if inner == dict(self._names) else _Renaming(self._inliner, inner)
        return replace(term, index=inner.get(bound, bound)).with_children(tuple(map(scope.apply, term.children)))
