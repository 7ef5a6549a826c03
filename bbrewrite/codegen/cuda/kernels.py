"""Prints one kernel as a CUDA function: arguments, its cell of the grid, memory, and the loops over blocks.

What happens inside a block is printed by `statements.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod

from bbrewrite.codegen.bounds import BoundsPrinter
from bbrewrite.codegen.cuda.flatten import flatten
from bbrewrite.codegen.cuda.launches import KernelLaunch
from bbrewrite.codegen.cuda.scope import GROUP, CudaScope
from bbrewrite.codegen.cuda.shared_memory import WARP_SIZE, SharedMemory, lay_out, list_length, warps_of
from bbrewrite.codegen.cuda.single_blocks import without_single_loops
from bbrewrite.codegen.cuda.statements import HELD, StepPrinter
from bbrewrite.codegen.cuda.steps import GpuKernel, Repeat, Scratch, Step, Tile
from bbrewrite.codegen.cuda.synchronise import with_barriers, with_rings
from bbrewrite.codegen.expressions import UserFunctions
from bbrewrite.codegen.names import Names
from bbrewrite.codegen.text import Writer, signature, storage_type, value_type
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Tensor
from bbrewrite.core.types import BlockType, Typing
from bbrewrite.plan.kernel import Kernel, LocalBlock, compute_element
from bbrewrite.plan.masks.visible import LoopBounds
from bbrewrite.plan.target import RESERVED_SHARED_BYTES, Gpu

_MEMORY = "bb_memory"
# Where a multiprocessor has so many warps at one time, the assembler may weigh more of them against registers.
_ENOUGH_WARPS = 12


class DoesNotFit(Exception):
    """A kernel's blocks need more shared memory than the target has."""


@dataclass(frozen=True)
class KernelFunction:
    """A printed kernel, and how it is launched."""

    text: str
    launch: KernelLaunch


def print_kernel(
    kernel: Kernel, table: OperatorTable, functions: UserFunctions, names: Names, gpu: Gpu
) -> KernelFunction:
    """The CUDA function of a kernel. Raises BlockTypeError for an ill-typed kernel, and DoesNotFit."""
    looped = tuple(
        sorted(
            {
                kernel.indices.root(index)
                for index in kernel.loops - set(kernel.grid)
                if not kernel.indices[index].is_share
            }
        )
    )
    kernel, single = without_single_loops(kernel)
    flat = flatten(kernel, table, gpu.tf32)
    warps = warps_of(flat, kernel.indices)
    # Rings as long as shared memory allows.
    choices = [with_rings(flat, copies) for copies in range(gpu.ring_copies, 0, -1)]
    layouts = [lay_out(steps, kernel.indices, warps) for steps in choices]
    fitting = [n for n, layout in enumerate(layouts) if layout.size_bytes <= gpu.shared_bytes_per_block]
    if not fitting:
        raise DoesNotFit(
            f"kernel {kernel.name} needs {layouts[-1].size_bytes} bytes of shared memory, and a block of threads has"
            f" {gpu.shared_bytes_per_block}"
        )
    steps, layout = with_barriers(choices[fitting[0]]), layouts[fitting[0]]
    # Left to itself, the assembler would rather spill than have fewer warps, even where shared memory has room for few.
    room = gpu.shared_bytes_per_processor // (layout.size_bytes + RESERVED_SHARED_BYTES)
    least = 1 if room * warps < _ENOUGH_WARPS else None
    return _KernelPrinter(kernel, single, steps, layout, warps, table, functions, names).function(looped, least)


class _KernelPrinter:
    def __init__(
        self,
        kernel: Kernel,
        single: tuple[str, ...],
        steps: GpuKernel,
        memory: SharedMemory,
        warps: int,
        table: OperatorTable,
        functions: UserFunctions,
        names: Names,
    ) -> None:
        self._kernel = kernel
        self._single = single
        self._steps = steps
        self._memory = memory
        self._warps = warps
        self._name = names.fresh(f"{kernel.name}_kernel")
        self._writer = Writer()
        inner = names.inner()
        for taken in (*HELD, *HELD.values(), GROUP, "warps", _MEMORY):
            inner.fresh(taken)
        self._names = inner
        self._tensors = tuple(dict.fromkeys((*kernel.reads, *kernel.writes)))
        written = frozenset(tensor.name for tensor in kernel.writes)
        self._scope = CudaScope(inner, kernel.indices, self._tensors, written, steps, HELD)
        for item in steps.scratch:
            self._scope.locals[item.name] = inner.fresh(item.name)
        types = {block.name: block.type for block in steps.blocks}
        types |= {tile.name: BlockType(tile.axes, compute_element(tile.element)) for tile in steps.tiles}
        typing = Typing(table, kernel.indices, {tensor.name: tensor for tensor in self._tensors}, types)
        self._bound = [*kernel.grid, *single]  # the indices whose blocks are at hand
        self._printer = StepPrinter(self._writer, table, typing, functions, self._scope)

    def function(self, looped: tuple[str, ...], least: int | None) -> KernelFunction:
        """Prints everything. The assembler is to make room for `least` blocks at one time, or to choose by itself."""
        body = self._writer
        self._declarations()
        self._print(self._steps.steps)
        mentioned = set(re.findall(r"\w+", body.text))
        place = self._cell(mentioned)
        mentioned |= set(re.findall(r"\w+", place.text))
        indices = [(index, self._scope.index(index.name)) for index in self._kernel.indices]
        blocks = [(names.block, index.block) for index, names in indices if names.block in mentioned]
        sizes = [(index.name, names.size) for index, names in indices if not index.same_as and names.size in mentioned]
        taken = [f"{self._qualified(tensor)} {self._scope.pointers[tensor.name]}" for tensor in self._tensors]
        taken += [f"int64_t {size}" for _, size in sizes]
        threads = self._warps * WARP_SIZE
        writer = Writer()
        writer.line(self._summary())
        bounds = f"{threads}" if least is None else f"{threads}, {least}"
        with writer.block(signature(f'extern "C" __global__ void __launch_bounds__({bounds}) {self._name}', taken)):
            writer.line(f"constexpr int warps = {self._warps};")
            for name, block in blocks:
                writer.line(f"constexpr int {name} = {block};")
            writer.paste(place)
            writer.paste(body)
        table = self._kernel.indices
        launch = KernelLaunch(
            self._name,
            tuple(t.name for t in self._tensors),
            tuple(name for name, _ in sizes),
            tuple((table.root(index), table[index].block or 1) for index in self._kernel.grid),
            looped,
            threads,
            self._memory.size_bytes,
            self._limits(mentioned),
        )
        return KernelFunction(writer.text, launch)

    def _summary(self) -> str:
        reads = ", ".join(tensor.name for tensor in self._kernel.reads) or "nothing"
        writes = ", ".join(tensor.name for tensor in self._kernel.writes)
        grid = f"In parallel over {', '.join(self._kernel.grid)}" if self._kernel.grid else "One block of threads"
        return f"// {grid}. Reads {reads}; writes {writes}."

    def _qualified(self, tensor: Tensor) -> str:
        constant = "" if tensor in self._kernel.writes else "const "
        return f"{constant}{storage_type(tensor.element)}* __restrict__"

    def _limits(self, mentioned: set[str]) -> tuple[tuple[str, int], ...]:
        """The largest extents for which lists have room, and single blocks."""
        table = self._kernel.indices
        lists = {index for item in (*self._steps.blocks, *self._steps.tiles) for index in item.list_indices}
        lists |= {index for index in self._single if self._scope.size(index) in mentioned}
        found: dict[str, int] = {}
        for index in sorted(lists):
            room = list_length(table, index) * (table[index].block or 1)
            root = table.root(index)
            found[root] = min(found.get(root, room), room)
        return tuple(found.items())

    # The cell of the grid, and memory

    def _cell(self, mentioned: set[str]) -> Writer:
        """Which blocks of the grid's indices are at hand: it has one dimension, the last index changes fastest."""
        writer = Writer()
        rest = "int64_t(blockIdx.x)"
        for position, index in reversed(list(enumerate(self._kernel.grid))):
            names, steps = self._scope.index(index), self._scope.steps_of(index)
            number = rest if position == 0 else f"{rest} % {steps}"
            writer.line(f"const int64_t {names.number} = {number};")
            if position:
                fresh = self._names.fresh("cell")
                writer.line(f"const int64_t {fresh} = {rest} / {steps};")
                rest = fresh
        for index in self._kernel.grid:
            self._bounds(index, writer)
        for index in self._single:
            names = self._scope.index(index)
            if mentioned & {names.start, names.count}:
                writer.line(f"constexpr int64_t {names.start} = 0;")
                writer.line(f"const int {names.count} = int({names.size});")
        return writer

    def _bounds(self, index: str, writer: Writer | None = None) -> None:
        names, writer = self._scope.index(index), writer or self._writer
        if names.start:
            writer.line(f"const int64_t {names.start} = {names.number} * {names.block};")
            writer.line(f"const int {names.count} = bb_count({names.size}, {names.start}, {names.block});")

    def _declarations(self) -> None:
        if self._memory.size_bytes:
            self._writer.line(f"extern __shared__ __align__(16) unsigned char {_MEMORY}[];")
        for item in (*self._steps.tiles, *self._steps.scratch):
            self._writer.line(self._placed(item))
        for block in self._steps.blocks:
            length = "".join(f"[{list_length(self._kernel.indices, index)}]" for index in block.list_indices)
            self._writer.line(f"{self._kind(block)} {self._scope.locals[block.name]}{length};")

    def _placed(self, item: Tile | Scratch) -> str:
        place = f"{_MEMORY} + {self._memory.offsets[item.name]}"
        name = self._scope.locals[item.name]
        if isinstance(item, Scratch):
            columns = self._scope.index(item.columns).block if item.columns else "1"
            return f"const bb::Partial<{value_type(item.element)}, {columns}, warps> {name}({place});"
        spans = ", ".join(self._scope.index(axis).block for axis in item.axes)
        form = "Strip" if len(item.axes) == 1 else "WideTile" if item.name in self._steps.wide_tiles else "Tile"
        kind = f"bb::{form}<{storage_type(item.element)}, {spans}, warps>"
        count = item.copies * prod(list_length(self._kernel.indices, index) for index in item.list_indices)
        several = bool(item.list_indices) or item.copies > 1
        return (
            f"const bb::Several<{kind}> {name}({place});  // {count}" if several else f"const {kind} {name}({place});"
        )

    def _kind(self, block: LocalBlock) -> str:
        value = value_type(compute_element(block.type.element))
        spans = ", ".join(self._scope.index(axis).block for axis in block.type.axes)
        form = ("", "Vector", "Matrix")[len(block.type.axes)]
        return f"bb::{form}<{value}, {spans}, warps>" if form else value

    # Steps

    def _print(self, steps: tuple[Step, ...]) -> None:
        for step in steps:
            if isinstance(step, Repeat):
                self._repeat(step)
            else:
                self._printer.step(step)

    def _repeat(self, step: Repeat) -> None:
        if step.ahead:
            self._ring(step)
            return
        names = self._scope.index(step.index)
        first, end = self._range(step)
        if step.unrolled:
            length = list_length(self._kernel.indices, step.index)
            self._writer.line("#pragma unroll")
            with self._writer.block(f"for (int {names.number} = 0; {names.number} < {length}; ++{names.number})"):
                tests = [f"{names.number} >= {first}"] if first != "0" else []
                with self._writer.block(f"if ({' && '.join([*tests, f'{names.number} < {end}'])})"):
                    self._inside(step)
            return
        with self._writer.block(self._for(step.index, first, end)):
            self._inside(step)

    def _inside(self, step: Repeat) -> None:
        self._bounds(step.index)
        self._bound.append(step.index)
        self._print(step.body)
        self._bound.pop()

    def _range(self, step: Repeat) -> tuple[str, str]:
        """The first block that a loop visits, and the one after the last."""
        printer = BoundsPrinter(self._scope, frozenset(self._bound))
        first, end = printer.block_range(step.bounds or LoopBounds(), step.index)
        for line in printer.lines:
            self._writer.line(line)
        end = end or self._scope.steps_of(step.index)
        if not step.share:
            return first, end
        number, size = self._scope.index(step.share).number, self._scope.size(step.share)
        names = [self._names.fresh(f"{step.index}_{part}") for part in ("share", "first", "end")]
        length, own_first, own_end = names
        visited = f"{end} - {first}" if first != "0" else end
        self._writer.line(f"const int64_t {length} = bb_blocks({visited}, {size});")
        start = f"{number} * {length}" if first == "0" else f"{first} + {number} * {length}"
        self._writer.line(f"const int64_t {own_first} = {start};")
        within = f"{own_first} + {length} < {end} ? {own_first} + {length} : {end}"
        self._writer.line(f"const int64_t {own_end} = {within};")
        return own_first, own_end

    def _for(self, index: str, first: str, end: str) -> str:
        number = self._scope.index(index).number
        return f"for (int64_t {number} = {first}; {number} < {end}; ++{number})"

    def _ring(self, step: Repeat) -> None:
        """Copies begin some iterations ahead; one wait an iteration makes the next tiles ready and frees the last."""
        names, writer = self._scope.index(step.index), self._writer
        first, end = self._range(step)
        begin = self._names.fresh(f"begin_copies_{step.index}")
        rings = [stage.tile for stage in step.ahead if not stage.tile.list_indices]
        with writer.block(f"const auto {begin} = [&](int64_t {names.number})", "};"):
            with writer.block(f"if ({names.number} < {end})"):
                self._bounds(step.index)
                for stage in step.ahead:
                    number = names.number if stage.tile in rings else ""
                    self._printer.stage(stage, self._scope.tile(stage.tile, number))
            writer.line("bb::commit_copies();")
        for number in range(step.distance):
            writer.line(f"{begin}({first if number == 0 else f'{first} + {number}' if first != '0' else number});")
        with writer.block(self._for(step.index, first, end)):
            writer.line(f"bb::wait_for_copies<{step.distance - 1}>();")
            writer.line(f"{begin}({names.number} + {step.distance});")
            for tile in rings:
                ring, now = self._scope.tile(tile, names.number), self._names.fresh(f"{tile.name}_now")
                writer.line(f"const auto {now} = {ring};")
                # No other loop uses the ring: from here on its name stands for the tile of this iteration.
                self._scope.locals[tile.name] = now
            self._inside(step)
