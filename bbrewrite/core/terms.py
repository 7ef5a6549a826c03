"""Block terms: what fusion rewrites and kernels compute.

A term denotes a function of its free indices. Its value is a block in local memory (a matrix, a column
vector or a scalar) or a list of blocks in global memory. `Map` and `At` (`Stored` and `Loaded` for a value
without indices) are the only terms that touch intermediate values there, so their presence is the buffered edge:

    At(Map(i, x), i)     stores every x to global memory and loads one back
    x                    keeps it local

Binders are lexical: `Map` and `Reduce` bind their index in their operands. Terms are immutable and
compared by structure. Types are found by `typing.py`, printing is in `printing.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from operator import attrgetter, is_
from typing import Any, cast

from bbrewrite.core.addresses import Address


@dataclass(frozen=True)
class Term:
    """The base of all terms. `children` are the operand terms in order."""

    @property
    def children(self) -> tuple[Term, ...]:
        return ()

    @property
    def bound_index(self) -> str | None:
        """The index that this term binds in its children, if any."""
        return None

    def with_children(self, children: tuple[Term, ...]) -> Term:
        """The same operator on other operands; on its own it is this very term, with all that was found of it."""
        return self if all(map(is_, children, self.children)) else self._with(children)

    def _with(self, children: tuple[Term, ...]) -> Term:
        raise AssertionError(f"{self} has no operands that could be others")

    def __getstate__(self) -> dict[str, Any]:
        # What is found from the fields stays behind: the hash of a name is another in every process.
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @cached_property
    def free(self) -> frozenset[str]:
        """The indices on which the value depends."""
        names = _united([child.free for child in self.children])
        return names - {self.bound_index} if self.bound_index else names

    @cached_property
    def local_names(self) -> frozenset[str]:
        """The names of the local values that the term reads."""
        return _united([child.local_names for child in self.children])

    @cached_property
    def _below(self) -> tuple[Term, ...]:
        """Every distinct term inside of this one, operands before users; itself would make a cycle of references."""
        found: dict[Term, None] = {}
        for child in self.children:
            if child not in found:
                _add_parts(child, found)
        return tuple(found)

    @cached_property
    def digest(self) -> str:
        """A hash of the structure that is the same in every process: an order for ties that no run changes."""
        fields = tuple(_digested(getattr(self, name)) for name in self.__dataclass_fields__)
        return hashlib.blake2b(repr((type(self).__name__, fields)).encode(), digest_size=12).hexdigest()


def _digested(value: object) -> object:
    if isinstance(value, Term):
        return value.digest
    if isinstance(value, tuple):
        return tuple(_digested(item) for item in cast("tuple[object, ...]", value))
    return value


def _united(names: list[frozenset[str]]) -> frozenset[str]:
    """All names; most often one of the sets has them all."""
    largest = frozenset[str]()
    for own in names:
        if not own <= largest:
            largest = own if largest <= own else largest | own
    return largest


def _hashed[T: type[Term]](cls: T) -> T:
    """With a hash that is found once: terms share subterms heavily, and every lookup would walk the whole tree."""
    kind = cls.__name__
    first, *others = (field.name for field in fields(cls))
    own = attrgetter(first, *others)
    found = cached_property[int](lambda self: hash((kind, own(self))))
    found.__set_name__(cls, "_hash")
    cls._hash = found  # type: ignore[attr-defined]
    cls.__hash__ = lambda self: self._hash  # type: ignore[method-assign]
    return cls


@_hashed
@dataclass(frozen=True)
class Number(Term):
    """A number or infinity; takes the type of what it meets, and broadcasts."""

    value: float


@_hashed
@dataclass(frozen=True)
class Size(Term):
    """The extent of an index, a scalar."""

    index: str


@_hashed
@dataclass(frozen=True)
class IndexValue(Term):
    """The element positions of an index: a vector along its axis, or a scalar for a point index."""

    index: str

    @cached_property
    def free(self) -> frozenset[str]:
        return frozenset({self.index})


@_hashed
@dataclass(frozen=True)
class Read(Term):
    """A block of a tensor in global memory (input, weight or buffer), by name; a scalar input has no addresses.

    The block's axes are the blocked indices in its addresses, in order.
    """

    tensor: str
    addresses: tuple[Address, ...] = ()

    @cached_property
    def free(self) -> frozenset[str]:
        return frozenset[str]().union(*(address.index_names for address in self.addresses))


@_hashed
@dataclass(frozen=True)
class Local(Term):
    """A named value in local memory: a kernel's variable, or a parameter of an `op` or `monoid`.

    `indices` address a local list of blocks (a row of accumulators, say).
    """

    name: str
    indices: tuple[str, ...] = ()

    @cached_property
    def free(self) -> frozenset[str]:
        return frozenset(self.indices)

    @cached_property
    def local_names(self) -> frozenset[str]:
        return frozenset({self.name})


@_hashed
@dataclass(frozen=True)
class Apply(Term):
    """A block operator of the table on its operands; `indices` are its index attributes (for spreads)."""

    operator: str
    operands: tuple[Term, ...]
    indices: tuple[str, ...] = ()

    @property
    def children(self) -> tuple[Term, ...]:
        return self.operands

    def _with(self, children: tuple[Term, ...]) -> Term:
        return Apply(self.operator, children, self.indices)

    @cached_property
    def free(self) -> frozenset[str]:
        names = _united([operand.free for operand in self.operands])
        return names.union(self.indices) if self.indices else names


@_hashed
@dataclass(frozen=True)
class Reduce(Term):
    """A serial loop over an index that combines its operands' values by a monoid."""

    monoid: str
    index: str
    operands: tuple[Term, ...]

    @property
    def children(self) -> tuple[Term, ...]:
        return self.operands

    @property
    def bound_index(self) -> str | None:
        return self.index

    def _with(self, children: tuple[Term, ...]) -> Term:
        return Reduce(self.monoid, self.index, children)


@_hashed
@dataclass(frozen=True)
class Map(Term):
    """The list of a body's values over an index, stored in global memory."""

    index: str
    body: Term

    @property
    def children(self) -> tuple[Term, ...]:
        return (self.body,)

    @property
    def bound_index(self) -> str | None:
        return self.index

    def _with(self, children: tuple[Term, ...]) -> Term:
        (body,) = children
        return Map(self.index, body)


@_hashed
@dataclass(frozen=True)
class At(Term):
    """One element of a list, loaded into local memory (or a list of lower rank)."""

    items: Term
    address: Address

    @property
    def children(self) -> tuple[Term, ...]:
        return (self.items,)

    def _with(self, children: tuple[Term, ...]) -> Term:
        (items,) = children
        return At(items, self.address)

    @cached_property
    def free(self) -> frozenset[str]:
        return self.items.free | self.address.index_names


@_hashed
@dataclass(frozen=True)
class Stored(Term):
    """A block stored in global memory by itself: the list of rank 0 that a definition without indices is."""

    value: Term

    @property
    def children(self) -> tuple[Term, ...]:
        return (self.value,)

    def _with(self, children: tuple[Term, ...]) -> Term:
        (value,) = children
        return Stored(value)


@_hashed
@dataclass(frozen=True)
class Loaded(Term):
    """The block of a `Stored`, loaded into local memory; with it, the buffered edge of a scalar definition."""

    stored: Term

    @property
    def children(self) -> tuple[Term, ...]:
        return (self.stored,)

    def _with(self, children: tuple[Term, ...]) -> Term:
        (stored,) = children
        return Loaded(stored)


@_hashed
@dataclass(frozen=True)
class Pair(Term):
    """Two values, or two lists element by element, made together (rule 2 of the paper)."""

    first: Term
    second: Term

    @property
    def children(self) -> tuple[Term, ...]:
        return (self.first, self.second)

    def _with(self, children: tuple[Term, ...]) -> Term:
        first, second = children
        return Pair(first, second)


@_hashed
@dataclass(frozen=True)
class Component(Term):
    """One side of a pair: `first` (position 0) or `second` (position 1)."""

    position: int
    pair: Term

    @property
    def children(self) -> tuple[Term, ...]:
        return (self.pair,)

    def _with(self, children: tuple[Term, ...]) -> Term:
        (pair,) = children
        return Component(self.position, pair)


@_hashed
@dataclass(frozen=True)
class Cast(Term):
    """A value rounded to a declared element type when it is stored. Kept local it is not rounded."""

    element: str
    value: Term

    @property
    def children(self) -> tuple[Term, ...]:
        return (self.value,)

    def _with(self, children: tuple[Term, ...]) -> Term:
        (value,) = children
        return Cast(self.element, value)


def walk(term: Term) -> Iterator[Term]:
    """Every distinct subterm once, operands before their users."""
    return iter((*term._below, term))  # pyright: ignore[reportPrivateUsage]


# No inner function: one that calls itself is a cycle of references, which keeps all that it has seen alive.
def _add_parts(term: Term, found: dict[Term, None]) -> None:
    for child in term.children:
        if child not in found:
            _add_parts(child, found)
    found[term] = None


def rewrite_bottom_up(term: Term, change: Callable[[Term], Term]) -> Term:
    """The term with `change` applied to every node after its children; shared subterms are visited once."""
    return _rewritten(term, change, {})


def _rewritten(term: Term, change: Callable[[Term], Term], done: dict[Term, Term]) -> Term:
    found = done.get(term)
    if found is None:
        children = tuple([_rewritten(child, change, done) for child in term.children])
        found = done[term] = change(term.with_children(children))
    return found


def is_transpose(term: Term) -> bool:
    """Whether a term only transposes a block."""
    return isinstance(term, Apply) and term.operator == "transpose"


def untransposed(term: Term) -> Term:
    """The block that a term transposes, or the term itself."""
    return term.children[0] if is_transpose(term) else term


def named_indices(term: Term) -> tuple[str, ...]:
    """The indices that a term itself names, whatever its operands do: those it binds, reads at or spreads along."""
    match term:
        case Map(index) | Reduce(_, index) | Size(index):
            return (index,)
        case At(_, address):
            return tuple(sorted(address.index_names))
        case Apply(_, _, indices):
            return indices
        case _:
            return ()
