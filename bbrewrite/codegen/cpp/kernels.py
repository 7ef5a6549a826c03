"""Prints one kernel as a C++ function: arguments, threads, local memory, and the loops over blocks.

What happens inside a block is printed by `statements.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bbrewrite.codegen.access import classify
from bbrewrite.codegen.bounds import BoundsPrinter, write_spans
from bbrewrite.codegen.cpp.entry_loops import Surroundings
from bbrewrite.codegen.cpp.prepared import PreparedWeight
from bbrewrite.codegen.cpp.product_calls import block_size, packed_size
from bbrewrite.codegen.cpp.statements import Parts, StepPrinter
from bbrewrite.codegen.expressions import UserFunctions
from bbrewrite.codegen.names import Names
from bbrewrite.codegen.passes.flatten import flatten
from bbrewrite.codegen.passes.in_passing import with_operands_in_passing
from bbrewrite.codegen.passes.packed_again import with_kept_operands
from bbrewrite.codegen.scope import KernelScope
from bbrewrite.codegen.steps import (
    Assign,
    ByFirst,
    Combine,
    FindSpans,
    FirstOrLater,
    FlatKernel,
    Fold,
    Pack,
    PackedOperand,
    Product,
    Remark,
    Repeat,
    Rows,
    SpannedRows,
    Step,
    Wait,
    WhereEmpty,
    kept_element,
    leaves_read,
    walk_steps,
)
from bbrewrite.codegen.text import Writer, signature, storage_type
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Local, Read
from bbrewrite.core.types import Typing
from bbrewrite.plan.kernel import Kernel, LocalBlock
from bbrewrite.plan.masks.visible import ALWAYS, LoopBounds

# Larger blocks, and what goes beyond the total, are placed in the thread's workspace instead of on its stack.
_STACK_BLOCK_BYTES = 16 * 1024
_STACK_BYTES = 128 * 1024


@dataclass(frozen=True)
class KernelFunction:
    """A printed kernel: its text, and what a call passes, in order: tensors' names, then root indices.

    `declaration` stands in the text behind `static`, and says no more than how it is called.
    """

    name: str
    declaration: str
    text: str
    tensors: tuple[str, ...]
    extents: tuple[str, ...]
    takes_threads: bool


def print_kernel(
    kernel: Kernel,
    table: OperatorTable,
    functions: UserFunctions,
    names: Names,
    prepared: Sequence[PreparedWeight] = (),
) -> KernelFunction:
    """The C++ function of a kernel; `names` is the file's scope, `prepared` are the weights that are packed ahead.

    Raises BlockTypeError for an ill-typed kernel.
    """
    return _KernelPrinter(kernel, table, functions, names, prepared).function()


class _KernelPrinter:
    def __init__(
        self,
        kernel: Kernel,
        table: OperatorTable,
        functions: UserFunctions,
        names: Names,
        prepared: Sequence[PreparedWeight],
    ) -> None:
        self._kernel = kernel
        self._name = names.fresh(kernel.name)
        flat = flatten(kernel, table, frozenset(weight.tensor.name for weight in prepared))
        self._flat: FlatKernel = with_kept_operands(with_operands_in_passing(flat, kernel), kernel)
        self._prepared = {weight.tensor.name: weight for weight in prepared}
        self._writer = Writer()
        inner = names.inner()
        self._threads = inner.fresh("threads")
        self._memory = inner.fresh("memory")
        self._parts = Parts(inner.fresh("part"), inner.fresh("parts"), {}) if kernel.is_split else None
        self._tensors = tuple(dict.fromkeys((*kernel.reads, *kernel.writes)))
        written = frozenset(tensor.name for tensor in kernel.writes)
        rowwise = self._flat.single_rows, self._flat.single_entries, self._flat.row_pairs
        self._scope = KernelScope(
            inner, kernel.indices, self._tensors, written, self._flat.blocks, *rowwise, kernel.whole
        )
        for operand in self._flat.packed:
            self._scope.name_packed(operand)
        types = {block.name: block.type for block in self._flat.blocks}
        typing = Typing(table, kernel.indices, {tensor.name: tensor for tensor in self._tensors}, types)
        if self._parts:
            for block in self._merged():
                self._parts.pointers[block.name] = inner.fresh(f"{block.name}_parts")
        around = Surroundings(self._writer, table, typing, functions, self._scope)
        self._printer = StepPrinter(around, self._parts, self._flat.streamed)
        self._bound: list[str] = []

    def function(self) -> KernelFunction:
        """Prints everything."""
        body = self._writer
        self._region()
        flags = [self._streamed_declaration(name, flag) for name, flag in self._scope.streamed.items()]
        inside = set(re.findall(r"\w+", body.text))
        mentioned = inside.union(*(re.findall(r"\w+", flag) for flag in flags))
        indices = [(index, self._scope.index(index.name)) for index in self._kernel.indices]
        chosen = [(index, names) for index, names in indices if index.name not in self._kernel.whole]
        used = [(index, names.block) for index, names in chosen if names.block in mentioned]
        blocks = [(name, block_size(index, self._flat, self._kernel.indices)) for index, name in used]
        sizes = [(index.name, names.size) for index, names in indices if not index.same_as and names.size in mentioned]
        taken = [f"{self._qualified(tensor)} {self._scope.pointers[tensor.name]}" for tensor in self._tensors]
        taken += [f"int64_t {size}" for _, size in sizes] + ([f"int {self._threads}"] if self._is_parallel else [])
        writer = Writer()
        writer.line(self._summary())
        head = signature(f"static void {self._name}", taken)
        with writer.block(head):
            for line in (*(f"constexpr int64_t {name} = {block};" for name, block in blocks), *flags):
                writer.line(line)
            self._around_body(writer, [size for _, size in sizes if size in inside])
        tensors, extents = tuple(tensor.name for tensor in self._tensors), tuple(name for name, _ in sizes)
        declaration = head.removeprefix("static ")
        return KernelFunction(self._name, declaration, writer.text, tensors, extents, self._is_parallel)

    def _streamed_declaration(self, name: str, flag: str) -> str:
        return f"const bool {flag} = {self._scope.bytes_of(self._scope.tensors[name])} > bb::streamed_bytes;"

    @property
    def _is_parallel(self) -> bool:
        return bool(self._kernel.grid) or self._parts is not None

    def _summary(self) -> str:
        reads = ", ".join(tensor.name for tensor in self._kernel.reads) or "nothing"
        writes = ", ".join(tensor.name for tensor in self._kernel.writes)
        grid = f"In parallel over {', '.join(self._kernel.grid)}" if self._kernel.grid else "One thread"
        grid = "All threads together" if self._parts else grid
        ahead = ", ".join(tensor.name for tensor in self._kernel.reads if tensor.name in self._prepared)
        return f"// {grid}. Reads {reads}; writes {writes}." + (f" Packed ahead: {ahead}." if ahead else "")

    def _qualified(self, tensor: Tensor) -> str:
        constant = "" if tensor in self._kernel.writes else "const "
        weight = self._prepared.get(tensor.name)
        kind = storage_type(weight.element) if weight else storage_type(tensor.element)
        return f"{constant}{kind}* __restrict"

    # Threads and memory

    def _around_body(self, writer: Writer, sizes: Sequence[str]) -> None:
        """Prints the body, in a parallel region if there is one. Each thread has `sizes` of its own: compilers do not
        see that shared ones never change, and read them entry by entry in rows that are no whole vectors.
        """
        if not self._is_parallel:
            writer.paste(self._writer)
            return
        pointers = self._parts.pointers if self._parts else {}
        for block in self._merged():
            writer.line(f"std::vector<const {self._kind(block)}*> {pointers[block.name]}({self._threads});")
        own = f" firstprivate({', '.join(sizes)})" if sizes else ""
        writer.line(f"#pragma omp parallel num_threads({self._threads}){own}")
        with writer.block(""):
            writer.paste(self._writer)

    def _region(self) -> None:
        """What every thread does."""
        if self._parts:
            self._together(self._parts)
            return
        self._memory_declarations(on_stack=False)
        if not self._kernel.grid:
            self._memory_declarations(on_stack=True)
            self._body()
            return
        *outer, innermost = self._kernel.grid
        collapse = f" collapse({len(self._kernel.grid)})" if outer else ""
        self._writer.line(f"#pragma omp for{collapse} schedule({self._sharing})")
        for name in outer:
            self._writer.line(self._grid_loop(name))
        with self._writer.block(self._grid_loop(innermost)):
            for name in self._kernel.grid:
                self._block_bounds(name)
            self._memory_declarations(on_stack=True)
            self._body()

    @property
    def _sharing(self) -> str:
        """How threads share the grid: in turn, where some cells do less."""
        return "dynamic" if self._kernel.is_uneven else "static"

    def _together(self, parts: Parts) -> None:
        """All threads run the body; each lets the others know where its accumulators are."""
        self._writer.line(f"const int64_t {parts.own} = omp_get_thread_num();")
        self._writer.line(f"const int64_t {parts.count} = omp_get_num_threads();")
        self._memory_declarations(on_stack=False)
        self._memory_declarations(on_stack=True)
        for block in self._merged():
            place = ("" if block.type.axes or block.list_indices else "&") + self._scope.locals[block.name]
            self._writer.line(f"{parts.pointers[block.name]}[{parts.own}] = {place};")
        self._body()

    def _merged(self) -> list[LocalBlock]:
        """The accumulators that threads combine."""
        sources = [step.source for step in walk_steps(self._flat.steps) if isinstance(step, Combine)]
        return list(dict.fromkeys(sources))

    def _body(self) -> None:
        self._bound = [*self._kernel.grid, *sorted(self._kernel.whole)]
        self._pointers(self._flat.steps, new=None)
        self._steps(self._flat.steps)

    def _memory_declarations(self, on_stack: bool) -> None:
        """Declares local blocks; those in the workspace once for each thread, at offsets of whole cache lines."""
        small, large = self._split_memory()
        if on_stack:
            for block in small:
                self._declare_on_stack(block)
            return
        if not large:
            return
        kept = [operand for operand in self._flat.packed if operand.kept]
        taken = [(self._scope.buffer(block), self._kind(block), self._elements(block)) for block in large]
        taken += [(self._scope.labels(operand), "int64_t", self._buffers(operand)) for operand in kept]
        sizes = [self._scope.names.fresh(f"bytes_{name}") for name, _, _ in taken]
        for (_, kind, elements), size in zip(taken, sizes, strict=True):
            self._writer.line(f"const size_t {size} = bb_aligned({elements} * sizeof({kind}));")
        self._writer.line(f"char* {self._memory} = bb::workspace({' + '.join(sizes)});")
        for position, ((name, kind, _), size) in enumerate(zip(taken, sizes, strict=True)):
            self._writer.line(f"{kind}* const {name} = reinterpret_cast<{kind}*>({self._memory});")
            if position + 1 < len(taken):
                self._writer.line(f"{self._memory} += {size};")
        for operand in kept:
            self._writer.line(f"bb::fill({self._scope.labels(operand)}, {self._buffers(operand)}, INT64_C(-1));")

    def _split_memory(self) -> tuple[list[LocalBlock | PackedOperand], list[LocalBlock | PackedOperand]]:
        small: list[LocalBlock | PackedOperand] = []
        large: list[LocalBlock | PackedOperand] = []
        total = 0
        kept = [block for block in self._flat.blocks if block.name not in self._flat.single_entries]
        for block in (*kept, *self._flat.packed):
            size = self._fixed_bytes(block)
            if size is not None and size <= _STACK_BLOCK_BYTES and total + size <= _STACK_BYTES:
                small.append(block)
                total += size
            else:
                large.append(block)
        return small, large

    def _fixed_bytes(self, block: LocalBlock | PackedOperand) -> int | None:
        """The size where it does not depend on extents; a packed operand's is a little more, by its padding."""
        if isinstance(block, PackedOperand):
            return None if block.kept else block.contracted * block.columns * block.element.size_bytes
        if block.list_indices:
            return None
        size = kept_element(block).size_bytes * self._scope.rows_kept(block)
        for axis in self._scope.kept_axes(block):
            if axis in self._kernel.whole:
                return None
            size *= self._kernel.indices[axis].block or 1
        return size

    def _declare_on_stack(self, block: LocalBlock | PackedOperand) -> None:
        name, kind = self._scope.locals[block.name], self._kind(block)
        scalar = isinstance(block, LocalBlock) and not block.type.axes
        self._writer.line(f"{kind} {name};" if scalar else f"alignas(64) {kind} {name}[{self._elements(block)}];")

    def _elements(self, block: LocalBlock | PackedOperand) -> str:
        if isinstance(block, PackedOperand):
            return " * ".join([*map(self._scope.steps_of, block.kept), packed_size(block)])
        factors = [self._scope.steps_of(index) for index in block.list_indices]
        factors += ["2"] * (self._scope.rows_kept(block) == 2)
        factors += [self._scope.index(axis).block for axis in self._scope.kept_axes(block)]
        return " * ".join(factors)

    def _buffers(self, operand: PackedOperand) -> str:
        return " * ".join(map(self._scope.steps_of, operand.kept))

    @staticmethod
    def _kind(block: LocalBlock | PackedOperand) -> str:
        return storage_type(block.element if isinstance(block, PackedOperand) else kept_element(block))

    # Loops over blocks

    def _block_loop(self, name: str, first: str = "0", end: str = "") -> str:
        number = self._scope.index(name).number
        return f"for (int64_t {number} = {first}; {number} < {end or self._scope.steps_of(name)}; ++{number})"

    def _grid_loop(self, name: str) -> str:
        """A loop whose iterations threads share; those that do most come first, so that none is left to one at last."""
        if not self._kernel.grows_along(name):
            return self._block_loop(name)
        number = self._scope.index(name).number
        return f"for (int64_t {number} = {self._scope.steps_of(name)} - 1; {number} >= 0; --{number})"

    def _shared_loop(self, name: str, first: str = "0", end: str = "") -> str:
        """A loop over this thread's share of the blocks."""
        assert self._parts
        own, count = self._parts.own, self._parts.count
        steps = f"({end} - {first})" if end else self._scope.steps_of(name)
        base = "" if first == "0" else f"{first} + "
        return self._block_loop(name, f"{base}{steps} * {own} / {count}", f"{base}{steps} * ({own} + 1) / {count}")

    def _repeat(self, step: Repeat) -> None:
        """A loop over the blocks that a mask does not hide."""
        bounds = step.bounds or LoopBounds()
        printer = BoundsPrinter(self._scope, frozenset(self._bound))
        first, end = printer.block_range(bounds, step.index)
        for line in printer.lines:
            self._writer.line(line)
        loop = self._shared_loop if step.shared else self._block_loop
        with self._writer.block(loop(step.index, first, end)):
            self._block_bounds(step.index)
            self._bound.append(step.index)
            self._pointers((step,), new=step.index)
            if bounds.test != ALWAYS:
                tester = BoundsPrinter(self._scope, frozenset(self._bound), printer.known)
                test = tester.possible(bounds.test)
                for line in tester.lines:
                    self._writer.line(line)
                self._writer.line(f"if (!({test})) continue;  // hidden: no entry counts")
            self._steps(step.body)
            self._bound.pop()

    def _block_bounds(self, name: str) -> None:
        index = self._scope.index(name)
        if not index.block:
            return
        self._writer.line(f"const int64_t {index.start} = {index.number} * {index.block};")
        is_one = self._scope.indices[name].block == 1  # which compilers do not see: they warn of what has no rows
        count = "1" if is_one else f"bb::minimum({index.block}, {index.size} - {index.start})"
        self._writer.line(f"const int64_t {index.count} = {count};")

    def _steps(self, steps: tuple[Step, ...]) -> None:
        for step in steps:
            match step:
                case Remark(text):
                    self._writer.line()
                    self._writer.line(f"// {text}")
                case Repeat():
                    self._repeat(step)
                case WhereEmpty(index, body):
                    with self._writer.block(f"if ({self._scope.index(index).size} == 0)"):
                        self._steps(body)
                case FirstOrLater(index, first, later):
                    with self._writer.block(f"if ({self._scope.index(index).number} == 0)"):
                        self._steps(first)
                    with self._writer.block("else"):
                        self._steps(later)
                case ByFirst(body):
                    assert self._parts
                    with self._writer.block(f"if ({self._parts.own} == 0)"):
                        self._steps(body)
                case Wait():
                    self._writer.line("#pragma omp barrier")
                case FindSpans(spans):
                    write_spans(
                        self._writer, self._scope, frozenset(self._bound), spans, self._scope.names.fresh("row")
                    )
                case Rows() | SpannedRows():
                    self._writer.line()
                    self._printer.step(step)
                case Assign() | Fold() | Pack() | Product() | Combine():
                    self._printer.step(step)

    def _pointers(self, steps: tuple[Step, ...], new: str | None) -> None:
        """Declares the pointers whose last index has just been bound, for all steps inside."""
        for leaf in dict.fromkeys(_leaves(steps, self._scope)):
            if isinstance(leaf, Read) and not classify(leaf, self._kernel.indices).placed:
                continue
            known = leaf.free <= set(self._bound)
            if known and (new is None or new in leaf.free):
                for line in self._scope.declarations(leaf):
                    self._writer.line(line)


def _leaves(steps: tuple[Step, ...], scope: KernelScope) -> Iterator[Read | Local]:
    """Every place that steps read or write."""
    for step in walk_steps(steps):
        if isinstance(step, Assign | Fold | Product | Combine):
            yield scope.target(step.target)
        yield from leaves_read(step)
