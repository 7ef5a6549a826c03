"""Executes kernel programs statement by statement: what generated code must mean, and the NumPy target.

Grid positions run one after another in row-major order, so a result never depends on timing. Nothing here chooses
a schedule, and nothing is fused or hoisted.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from bbrewrite.core.elements import Element
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import IndexValue, Local, Number, Size, Term
from bbrewrite.core.types import BlockType
from bbrewrite.interpret.block_terms import BlockTerms, storage_of, store
from bbrewrite.interpret.positions import Positions
from bbrewrite.interpret.scalar_functions import Array, compute_dtype, identity_of
from bbrewrite.plan.kernel import Barrier, Kernel, KernelProgram, Let, LocalBlock, Loop, Merge, Statement, Store, Update
from bbrewrite.plan.lifetimes import owned_buffers, shared_memory
from bbrewrite.plan.masks.visible import LoopBounds, block_range, possible

type _Slot = tuple[str, tuple[int, ...]]


def run_kernels(
    program: KernelProgram, arrays: Mapping[str, Array], extents: Mapping[str, int], table: OperatorTable
) -> dict[str, Array]:
    """The outputs by name, in their storage types.

    `arrays` gives inputs and weights in their storage types, `extents` the extents of root indices.
    """
    indices = program.indices.with_extents(extents)
    positions = Positions(indices)
    memory = {tensor.name: np.asarray(arrays[tensor.name]) for tensor in program.inputs}
    for tensor in (*owned_buffers(program), *program.outputs):
        memory[tensor.name] = storage_of(tensor, positions)
    for name, buffer in shared_memory(program).items():
        memory[name] = memory[buffer.name]
    tensors = {tensor.name: tensor for tensor in (*program.inputs, *program.buffers, *program.outputs)}
    for part in program.slices:
        tensors[part.tensor.name] = part.tensor
        memory[part.tensor.name] = np.asarray(memory[part.whole.name][part.positions])
    with np.errstate(all="ignore"):
        for kernel in program.kernels:
            _KernelRun(kernel, extents, table, tensors, memory).run()
    return {tensor.name: memory[tensor.name] for tensor in program.outputs}


class _KernelRun:
    """One launch of one kernel. Local blocks live for one grid position."""

    def __init__(
        self,
        kernel: Kernel,
        extents: Mapping[str, int],
        table: OperatorTable,
        tensors: Mapping[str, Tensor],
        memory: dict[str, Array],
    ) -> None:
        self._kernel = kernel
        self._memory = memory
        self._locals = {block.name: block for block in kernel.local_blocks}
        types: dict[str, BlockType] = {name: block.type for name, block in self._locals.items()}
        self._terms = BlockTerms(table, kernel.indices.with_extents(extents), tensors, memory, types)
        self._point: dict[str, int] = {}
        self._blocks: dict[_Slot, Array] = {}

    def run(self) -> None:
        trips = [range(self._terms.positions.trips(index)) for index in self._kernel.grid]
        for numbers in itertools.product(*trips):
            self._point = dict(zip(self._kernel.grid, numbers, strict=True))
            self._blocks = {}
            self._run_body(self._kernel.body)

    def _run_body(self, body: tuple[Statement, ...]) -> None:
        for statement in body:
            match statement:
                case Let(target, expression) | Update(target, expression):
                    self._assign(target, expression)
                case Store(tensor, expression):
                    self._store(tensor, expression)
                case Merge(target, source, _):
                    # One processor does all the work here.
                    self._assign(target, Local(source.name, source.list_indices))
                case Barrier():
                    pass
                case Loop(index, inner, _, bounds, share):
                    self._loop(index, inner, bounds or LoopBounds(), share)

    def _loop(self, index: str, body: tuple[Statement, ...], bounds: LoopBounds, share: str) -> None:
        positions = self._terms.positions
        outer = self._point.get(index)
        self._point.pop(index, None)
        first, past = block_range(bounds, positions.block(index) or 1, positions.trips(index), self._extreme)
        if share:
            length = -(-max(0, past - first) // positions.trips(share))
            first = first + self._point[share] * length
            past = min(past, first + length)
        for number in range(first, past):
            self._point[index] = number
            if possible(bounds.test, self._extreme):
                self._run_body(body)
        if outer is None:
            self._point.pop(index, None)
        else:
            self._point[index] = outer

    def _extreme(self, leaf: Term, greatest: bool) -> int:
        """The least or greatest value of a leaf of bounds in the current blocks; an index without one is anywhere."""
        positions = self._terms.positions
        match leaf:
            case Size(index):
                return positions.extent(index)
            case IndexValue(index):
                first, past = (
                    positions.bounds(index, self._point) if index in self._point else (0, positions.extent(index))
                )
                return past - 1 if greatest else first
            case _:
                values = self._evaluate(leaf)
                return int(values.max() if greatest else values.min())

    def _assign(self, target: LocalBlock, expression: Term) -> None:
        """Computes a block; where its list indices have no loop around it, every block of the list."""
        missing = [index for index in target.list_indices if index not in self._point]
        for numbers in itertools.product(*(range(self._terms.positions.trips(index)) for index in missing)):
            self._point.update(zip(missing, numbers, strict=True))
            self._assign_block(target, expression)
        for index in missing:
            self._point.pop(index, None)

    def _assign_block(self, target: LocalBlock, expression: Term) -> None:
        dtype = compute_dtype(target.type.element or Element.F32)
        # An accumulator of integers begins with an infinity too, as the least of nothing is.
        is_number = isinstance(expression, Number)
        value = identity_of(expression.value, dtype) if is_number else self._evaluate(expression)
        shape = self._terms.shape(target.type.axes, self._point)
        # A copy where the value is a view of global memory, which a later store may change.
        block = np.empty(shape, dtype)
        block[...] = value
        self._blocks[self._slot(target.name, target.list_indices)] = block

    def _store(self, tensor: Tensor, expression: Term) -> None:
        store(
            self._memory[tensor.name],
            self._terms.positions.window(tensor.indices, self._point),
            self._evaluate(expression),
        )

    def _evaluate(self, expression: Term) -> Array:
        known: dict[Term, Array] = {}

        def visit(term: Term) -> Array:
            if isinstance(term, Local):
                return self._blocks[self._slot(term.name, term.indices)]
            if isinstance(term, Number | Size):
                return self._terms.value(term, self._point, visit)
            if term not in known:
                known[term] = self._terms.value(term, self._point, visit)
            return known[term]

        return visit(expression)

    def _slot(self, name: str, indices: tuple[str, ...]) -> _Slot:
        return name, tuple(self._point[index] for index in indices)
