"""Kernels under other names of tensors, indices and local blocks. What names may be, the caller decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from bbrewrite.core.indices import IndexTable
from bbrewrite.core.programs import Tensor
from bbrewrite.core.renaming import rename_term
from bbrewrite.core.terms import Local, Read, Term, rewrite_bottom_up
from bbrewrite.core.types import BlockType
from bbrewrite.plan.kernel import Barrier, Kernel, Let, LocalBlock, Loop, Merge, Statement, Store, Update
from bbrewrite.plan.masks.visible import renamed_bounds


@dataclass(frozen=True)
class KernelRenaming:
    """`tensors` gives the new tensor for an old name, `indices` new names, `local` the new name of a block."""

    tensors: Mapping[str, Tensor]
    indices: Mapping[str, str]
    local: Callable[[str], str]

    def kernel(self, kernel: Kernel, name: str, table: IndexTable) -> Kernel:
        """The kernel under the new names; `table` has its indices with their block sizes."""
        return Kernel(
            name,
            table,
            tuple(self._index(index) for index in kernel.grid),
            self._body(kernel.body),
            tuple(self._tensor(tensor) for tensor in kernel.reads),
            tuple(self._tensor(tensor) for tensor in kernel.writes),
            frozenset(map(self._index, kernel.whole)),
        )

    def _index(self, index: str) -> str:
        return self.indices.get(index, index)

    def _tensor(self, tensor: Tensor) -> Tensor:
        """The new tensor, with the indices under which this kernel knows it."""
        return replace(self.tensors[tensor.name], indices=tuple(map(self._index, tensor.indices)))

    def _body(self, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        return tuple(self._statement(statement) for statement in body)

    def _statement(self, statement: Statement) -> Statement:
        match statement:
            case Let(target, expression):
                return Let(self._block(target), self._term(expression))
            case Update(target, expression, combines):
                return Update(self._block(target), self._term(expression), combines)
            case Store(tensor, expression):
                return Store(self._tensor(tensor), self._term(expression))
            case Merge(target, source, monoid):
                return Merge(self._block(target), self._block(source), monoid)
            case Barrier():
                return statement
            case Loop(index, body, shared, bounds, share):
                renamed = renamed_bounds(bounds, self._term) if bounds else None
                return Loop(self._index(index), self._body(body), shared, renamed, self._index(share))

    def _block(self, block: LocalBlock) -> LocalBlock:
        axes = tuple(map(self._index, block.type.axes))
        indices = tuple(map(self._index, block.list_indices))
        return LocalBlock(self.local(block.name), BlockType(axes, block.type.element), indices)

    def _term(self, term: Term) -> Term:
        renamed = rename_term(term, self.indices, lambda read: Read(self.tensors[read.tensor].name, read.addresses))
        return rewrite_bottom_up(renamed, self._local)

    def _local(self, term: Term) -> Term:
        return replace(term, name=self.local(term.name)) if isinstance(term, Local) else term
