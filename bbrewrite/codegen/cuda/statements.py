"""Prints the steps of a CUDA kernel as loops over the entries that a thread holds, and calls of block operators.

Loops over rows and columns are unrolled, so that blocks stay in registers. Loops over blocks, memory and the grid
belong to `kernels.py`, the expression of an entry to `codegen/expressions.py`.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext

from bbrewrite.codegen.access import classify
from bbrewrite.codegen.cuda.axes import loop_axes, places_among
from bbrewrite.codegen.cuda.scope import GROUP, CudaScope
from bbrewrite.codegen.cuda.steps import (
    Assign,
    Barrier,
    FinishCopies,
    Fold,
    Product,
    Publish,
    Remark,
    Stage,
    TileView,
    WaitForCopies,
)
from bbrewrite.codegen.expressions import EntryPrinter, UserFunctions
from bbrewrite.codegen.scalars import folded_letter, signature_of
from bbrewrite.codegen.scope import Position
from bbrewrite.codegen.text import Writer, bare, number, storage_type, value_type
from bbrewrite.core.elements import Element
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.terms import Apply, Read, Term, walk
from bbrewrite.core.types import Typing
from bbrewrite.plan.kernel import LocalBlock, compute_element

ROW: str = "row"
COLUMN: str = "column"
# The variables that say which of a thread's rows and columns is at hand.
HELD: dict[str, str] = {ROW: "i", COLUMN: "j"}


class StepPrinter:
    """Prints single steps of one kernel."""

    def __init__(
        self, writer: Writer, table: OperatorTable, typing: Typing, functions: UserFunctions, scope: CudaScope
    ) -> None:
        self._writer = writer
        self._table = table
        self._typing = typing
        self._functions = functions
        self._scope = scope

    def step(
        self, step: Stage | Publish | Assign | Fold | Product | Barrier | WaitForCopies | FinishCopies | Remark
    ) -> None:
        """Prints a step that is no loop over blocks."""
        match step:
            case Remark(text):
                self._writer.line(f"// {text}")
            case Barrier():
                self._writer.line("__syncthreads();")
            case WaitForCopies():
                self._writer.line("bb::commit_copies();")
                self._writer.line("bb::wait_for_copies<0>();")
            case FinishCopies():
                self._writer.line("bb::finish_copies();")
            case Stage():
                self.stage(step, self._scope.tile(step.tile))
            case Publish(tile, source):
                counts = self._counts(tile.axes)
                self._writer.line(f"bb::publish({self._scope.tile(tile)}, {self._scope.block(source)}, {counts});")
            case Product():
                self._product(step)
            case Assign():
                self._assign(step)
            case Fold():
                self._fold(step)

    # Memory

    def stage(self, step: Stage, tile: str) -> None:
        """Begins a copy to the tile so named."""
        scope = self._scope
        place = scope.place(step.source)
        with self._writer.block(""):
            for line in scope.declarations(step.source):
                self._writer.line(line)
            first, *rest = (scope.index(axis).count for axis in step.tile.axes)
            if place.inside:
                # Outside of its tensor a block is all zeros.
                first = f"{place.inside} ? {first} : 0"
            arguments = [tile, place.pointer, *place.strides, first, *rest]
            self._writer.line(f"bb::stage({', '.join(arguments)});")

    def _counts(self, axes: Sequence[str]) -> str:
        return ", ".join(self._scope.index(axis).count for axis in axes)

    # Products

    def _product(self, step: Product) -> None:
        scope = self._scope
        contracted = scope.index(step.contracted)
        arguments = [scope.block(step.target)]
        arguments.append(self._view(step.left) if isinstance(step.left, TileView) else scope.block(step.left))
        arguments.append(self._view(step.right))
        if step.narrow is None:
            self._writer.line(f"bb::dot_add_entries({', '.join(arguments)}, {contracted.count});")
            return
        if isinstance(step.left, LocalBlock):
            arguments.append(contracted.count)
        name = "dot_add_tf32" if step.narrow is Element.F32 else "dot_add"
        self._writer.line(f"bb::{name}<{contracted.block}>({', '.join(arguments)});")

    def _view(self, view: TileView) -> str:
        tile = self._scope.tile(view.tile)
        return f"bb::transposed({tile})" if view.transposed else tile

    # Entry by entry

    def _assign(self, step: Assign) -> None:
        own = self._typing.block(step.expression).axes
        axes = loop_axes(step.target, own, self._scope.indices)
        positions = (Position(ROW, 1), Position(COLUMN, 2))[: len(axes)]
        entries = self._entries()
        leaf = self._scope.target(step.target)
        storage = self._scope.element_of(leaf)
        places = tuple(positions[place] for place in places_among(own, axes))
        value = bare(entries.print(step.expression, places, storage.compute_type))
        if isinstance(step.target, LocalBlock):
            held = [HELD[position.variable] for position in positions]
            target = self._scope.block(step.target) + (f"({', '.join(held)})" if held else "")
            self._loops(step.expression, axes, entries, [f"{target} = {value};"])
            return
        if storage not in (Element.F32, Element.F64, Element.INDEX):
            value = f"bb::store<{storage_type(storage)}>({value})"
        variables = dict(zip(axes, positions, strict=True))
        stored = [variables[index] for index in step.target.indices if index in variables]
        assert isinstance(leaf, Read)
        tests = [f"{variables[axis].variable} < {self._scope.index(axis).count}" for axis in axes]
        tests += ["bb::stores_rows()"] if len(axes) == 1 else ["bb::stores_number()"] if not axes else []
        store = f"if ({' && '.join(tests)}) {self._scope.entry(leaf, stored)} = {value};"
        with self._writer.block(""):
            for line in self._scope.declarations(leaf):
                self._writer.line(line)
            self._loops(step.expression, axes, entries, [store])

    def _loops(self, expression: Term, axes: Sequence[str], entries: EntryPrinter, body: list[str]) -> None:
        """The loops over what a thread holds of these axes, with the variables of each level."""
        scope = self._scope
        pointers = [line for leaf in self._single_reads(expression) for line in scope.declarations(leaf)]
        lines = [[*pointers, *entries.lines[0]], *entries.lines[1:]]
        lines[len(axes)] = [*lines[len(axes)], *body]
        declares = any(line.startswith("const ") for line in lines[0])
        with self._writer.block("") if declares else nullcontext():
            self._write(lines[0])
            if axes:
                self._level(axes, lines, 1)

    def _level(self, axes: Sequence[str], lines: list[list[str]], depth: int) -> None:
        variable = (ROW, COLUMN)[depth - 1]
        with self._held_loop(variable, axes[depth - 1]):
            self._write(lines[depth])
            if depth < len(axes):
                self._level(axes, lines, depth + 1)

    @contextmanager
    def _held_loop(self, variable: str, axis: str) -> Generator[None]:
        """An unrolled loop over a thread's own rows or columns of an axis."""
        block, held = self._scope.index(axis).block, HELD[variable]
        if variable == ROW:
            span, place = f"bb::rows_held<{block}, warps>", f"bb::row_of<{block}, warps>({held})"
        else:
            span, place = f"bb::columns_held<{block}>", f"bb::column_of({held})"
        outer, inside = self._writer, Writer()
        self._writer = inside
        yield
        self._writer = outer
        pairs = self._scope.take_pairs() if variable == COLUMN else []
        outer.line("#pragma unroll")
        groups = f"for (int {GROUP} = 0; {GROUP} < bb::column_groups<{block}>; ++{GROUP})"
        with outer.block(groups) if pairs else nullcontext():
            for line in pairs:
                outer.line(line)
            first, past = ("0", span) if not pairs else (f"2 * {GROUP}", f"2 * {GROUP} + 2")
            if pairs:
                outer.line("#pragma unroll")
            with outer.block(f"for (int {held} = {first}; {held} < {past}; ++{held})"):
                if re.search(rf"\b{variable}\b", inside.text):
                    outer.line(f"const int {variable} = {place};")
                outer.paste(inside)

    def _single_reads(self, expression: Term) -> list[Read]:
        """Blocks of a single number, which are read where they are needed."""
        scope = self._scope
        return [
            leaf
            for leaf in walk(expression)
            if isinstance(leaf, Read) and leaf.addresses and classify(leaf, scope.indices).placed
        ]

    def _entries(self) -> EntryPrinter:
        scope = self._scope
        return EntryPrinter(self._table, self._typing, self._functions, scope.names, scope)

    def _write(self, lines: Sequence[str]) -> None:
        for line in lines:
            self._writer.line(line)

    # Folds

    def _fold(self, step: Fold) -> None:
        (operand,) = step.fold.operands
        axes = self._typing.block(operand).axes
        signature = signature_of(self._table.operators[step.fold.operator], (len(axes),))
        element = compute_element(step.target.type.element)
        kind = value_type(element)
        monoid = self._table.monoids[self._table.operators[step.fold.operator].fold]
        (combine,) = monoid.combine
        assert isinstance(combine, Apply)
        formula = self._table.functions[combine.operator].cpp
        function = f"[]({kind} a, {kind} b) {{ return {bare(formula.format('a', 'b'))}; }}"
        start = f"{kind} folded = {bare(number(monoid.identity[0], element))};"
        along_columns = folded_letter(signature) == signature.operands[0][-1]
        if len(axes) == 1:
            places, loops = (Position(ROW, 1),), (ROW, ROW)
        elif along_columns:
            places, loops = (Position(ROW, 1), Position(COLUMN, 2)), (ROW, COLUMN)
        else:
            places, loops = (Position(ROW, 2), Position(COLUMN, 1)), (COLUMN, ROW)
        entries = self._entries()
        value = entries.print(operand, places, element)
        by_variable = dict(zip((ROW, COLUMN), axes, strict=False))
        folded_axis = by_variable[loops[-1]]
        more = bare(formula.format("folded", value))
        add = f"if ({loops[-1]} < {self._scope.index(folded_axis).count}) folded = {more};"
        target = self._scope.block(step.target)
        pointers = [line for leaf in self._single_reads(operand) for line in self._scope.declarations(leaf)]
        with self._writer.block(""):
            self._write([*pointers, *entries.lines[0]])
            if len(axes) == 1:
                self._write([start])
                with self._held_loop(ROW, axes[0]):
                    self._write([*entries.lines[1], add])
                self._total(step, target, function)
                return
            with self._held_loop(loops[0], by_variable[loops[0]]):
                self._write([*entries.lines[1], start])
                with self._held_loop(loops[1], folded_axis):
                    self._write([*entries.lines[2], add])
                if along_columns:
                    self._write([f"{target}({HELD[ROW]}) = bb::across_columns(folded, {function});"])
                else:
                    assert step.scratch is not None
                    scratch = self._scope.locals[step.scratch.name]
                    self._write([f"folded = bb::across_rows(folded, {function});"])
                    self._write([f"if (bb::lane() / 4 == 0) {scratch}.put({COLUMN}, folded);"])
            if not along_columns:
                assert step.scratch is not None
                self._write(["__syncthreads();"])
                with self._held_loop(ROW, axes[1]):
                    total = f"{self._scope.locals[step.scratch.name]}.total({ROW}, {function})"
                    self._write([f"{target}({HELD[ROW]}) = {total};"])

    def _total(self, step: Fold, target: str, function: str) -> None:
        """The whole of a vector, of which every row is held by four threads."""
        assert step.scratch is not None
        scratch = self._scope.locals[step.scratch.name]
        self._write(
            [
                f"folded = bb::across_rows(folded, {function});",
                f"if (bb::lane() == 0) {scratch}.put(0, folded);",
                "__syncthreads();",
                f"{target} = {scratch}.total(0, {function});",
            ]
        )
