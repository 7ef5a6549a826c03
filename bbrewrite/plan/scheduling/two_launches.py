"""Splitting a reduction over blocks of a grid that cannot wait for each other: two kernels instead of one.

The blocks of the reduction's loop are shared out among the positions of one more index of the grid. The first kernel
stores the states of each share; the second combines them as the monoids say, and goes on with what follows the loop.
Which loop is split, and into how many shares, is the business of scheduling.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from bbrewrite.core.addresses import Address
from bbrewrite.core.elements import Element
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Role, Tensor
from bbrewrite.core.terms import Local, Read, Term, walk
from bbrewrite.plan.kernel import Let, LocalBlock, Loop, Statement, Store, Update, walk_statements
from bbrewrite.plan.nests.nest import State
from bbrewrite.plan.nests.states import closure, substituted

# The numbers of shares that are tried, and how many blocks of threads there may be for each processor.
SHARES = (2, 4, 8, 16, 32, 64, 128)
SHARED_UP_TO = 8


@dataclass(frozen=True)
class TwoLaunches:
    """The bodies of both kernels, and the tensors of states between them, which have the index of the shares first."""

    first: tuple[Statement, ...]
    second: tuple[Statement, ...]
    states: tuple[Tensor, ...]


def split_in_two(
    body: tuple[Statement, ...],
    states: Mapping[str, State],
    split: str,
    shares: str,
    grid: tuple[str, ...],
    name: str,
    indices: IndexTable,
    table: OperatorTable,
) -> TwoLaunches | None:
    """The nest with its outermost loop over `split` shared out among the positions of `shares`.

    None where there is no such loop, or something but whole states is left by it. Blocks of the grid that are no axis
    of a state would store it more than once, so that there is None, too.
    """
    return _Splitting(states, split, shares, grid, name, indices, table).of(body)


class _Splitting:
    def __init__(
        self,
        states: Mapping[str, State],
        split: str,
        shares: str,
        grid: tuple[str, ...],
        name: str,
        indices: IndexTable,
        table: OperatorTable,
    ) -> None:
        self._states = states
        self._split = split
        self._shares = shares
        self._indices = indices
        self._points = tuple(index for index in grid if not indices.is_blocked(index))
        self._blocked = frozenset(index for index in grid if indices.is_blocked(index))
        self._name = name
        self._table = table

    def of(self, body: tuple[Statement, ...]) -> TwoLaunches | None:
        halves = self._halves(body)
        if halves is None:
            return None
        first, second, stored = halves
        return TwoLaunches(_needed(first), _needed(second), tuple(stored.values()))

    def _halves(
        self, body: tuple[Statement, ...]
    ) -> tuple[tuple[Statement, ...], tuple[Statement, ...], dict[str, Tensor]] | None:
        at = next((k for k, item in enumerate(body) if isinstance(item, Loop) and item.index == self._split), None)
        if at is None:
            # Inside the last loop of a block, whose iterations both kernels then go through.
            if not body or not isinstance(body[-1], Loop):
                return None
            inner = self._halves(body[-1].body)
            if inner is None:
                return None
            first, second = ((*body[:-1], replace(body[-1], body=half)) for half in inner[:2])
            return first, second, inner[2]
        loop, after = body[at], body[at + 1 :]
        assert isinstance(loop, Loop)
        made = {s.target.name: s.target for s in walk_statements(loop.body) if isinstance(s, Let | Update)}
        left = {name for statement in walk_statements(after) for name in _names(statement)} & made.keys()
        if not left <= self._states.keys():
            return None
        whole = {name for state in left for name in self._with_bases(state)}
        blocks = {name: block for name, block in made.items() if name in whole}
        if not all(self._may_be_stored(block) for block in blocks.values()):
            return None
        stored = {name: self._tensor(block) for name, block in blocks.items()}
        stores = [_inside(block, Store(stored[name], _local(block))) for name, block in blocks.items()]
        order = sorted(blocks, key=lambda name: -len(self._closure(name)))
        # What several states are combined with is loaded once.
        read = {name for other in blocks for name in self._with_bases(other) - {other}}
        held = {name: replace(block, name=f"{name}_share") for name, block in blocks.items() if name in read}
        shares = {name: _local(held[name]) if name in held else _read(stored[name]) for name in blocks}
        merged = [_inside(held[name], Let(held[name], _read(stored[name]))) for name in blocks if name in held]
        merged += [_inside(blocks[name], self._update(blocks[name], blocks, shares)) for name in order]
        shared = replace(loop, share=self._shares)
        return (*body[:at], shared, *stores), (*body[:at], Loop(self._shares, tuple(merged)), *after), stored

    def _closure(self, name: str) -> set[int]:
        """The components of its monoid that a state's combination depends on."""
        state = self._states[name]
        return closure(self._table.monoids[state.monoid], state.component)

    def _with_bases(self, name: str) -> set[str]:
        """A state and those that its combination reads."""
        return {self._states[name].names[component] for component in self._closure(name)}

    def _may_be_stored(self, block: LocalBlock) -> bool:
        element = block.type.element
        is_float = element is None or element is Element.NUMBER or element.is_float
        axes = set(block.type.axes)
        # A list over blocks of another index would be a third axis.
        lists = {index for index in block.list_indices if self._indices.is_blocked(index)}
        return is_float and self._blocked <= axes and lists <= axes

    def _tensor(self, block: LocalBlock) -> Tensor:
        element = block.type.element
        stored = Element.F64 if element is None or element is Element.NUMBER else element
        lists = tuple(index for index in block.list_indices if index not in block.type.axes)
        indices = (self._shares, *self._points, *lists, *block.type.axes)
        return Tensor(f"{self._name}_{block.name}", indices, stored, Role.BUFFER)

    def _update(self, block: LocalBlock, blocks: Mapping[str, LocalBlock], shares: Mapping[str, Term]) -> Update:
        """The state combined with that of one share. Others that it reads are combined later."""
        state = self._states[block.name]
        monoid = self._table.monoids[state.monoid]
        names: dict[str, Term] = {}
        for component in self._closure(block.name):
            name = state.names[component]
            names[monoid.left[component]] = _local(blocks[name])
            names[monoid.right[component]] = shares[name]
        return Update(block, substituted(monoid.combine[state.component], names))


def _local(block: LocalBlock) -> Local:
    return Local(block.name, block.list_indices)


def _read(tensor: Tensor) -> Read:
    return Read(tensor.name, tuple(Address(((index, 1),)) for index in tensor.indices))


def _inside(block: LocalBlock, statement: Statement) -> Statement:
    """A statement on a block of a list, in loops over the list."""
    for index in reversed(block.list_indices):
        statement = Loop(index, (statement,))
    return statement


def _names(statement: Statement) -> set[str]:
    if isinstance(statement, Let | Update | Store):
        return {term.name for term in walk(statement.expression) if isinstance(term, Local)}
    return set()


def _needed(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """The body without blocks that nothing uses, and loops that they leave empty."""
    while True:
        used: set[str] = set()
        for statement in walk_statements(body):
            own = {statement.target.name} if isinstance(statement, Update) else set[str]()
            used |= _names(statement) - own
        kept = tuple(_kept(body, used))
        if kept == body:
            return body
        body = kept


def _kept(body: tuple[Statement, ...], used: set[str]) -> Iterator[Statement]:
    for statement in body:
        if isinstance(statement, Loop):
            inner = tuple(_kept(statement.body, used))
            if inner:
                yield replace(statement, body=inner)
        elif not isinstance(statement, Let | Update) or statement.target.name in used:
            yield statement
