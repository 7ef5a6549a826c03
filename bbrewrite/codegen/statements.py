"""Prints the steps of a kernel as C++ loops over the entries of blocks.

The innermost loop runs along adjacent entries and is marked for vectors. Loops over blocks, memory and threads belong
to `kernels.py`, the expression of an entry to `expressions.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from bbrewrite.codegen.expressions import EntryPrinter, UserFunctions
from bbrewrite.codegen.scalars import folded_letter, signature_of
from bbrewrite.codegen.scope import KernelScope, Position
from bbrewrite.codegen.steps import Assign, Fold, Pack, Product
from bbrewrite.codegen.text import LONGEST_LINE, Writer, bare, number, storage_type, value_type
from bbrewrite.core.elements import Element
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Apply, Term
from bbrewrite.core.types import Typing
from bbrewrite.plan.kernel import LocalBlock

_SIMD = "#pragma omp simd"


class StepPrinter:
    """Prints single steps of one kernel."""

    def __init__(
        self, writer: Writer, table: OperatorTable, typing: Typing, functions: UserFunctions, scope: KernelScope
    ) -> None:
        self._writer = writer
        self._table = table
        self._typing = typing
        self._functions = functions
        self._scope = scope
        self._row = scope.names.fresh("row")
        self._column = scope.names.fresh("col")

    def step(self, step: Assign | Fold | Pack | Product) -> None:
        """Prints a step that is no loop over blocks."""
        match step:
            case Assign(target, expression):
                self._assign(target, expression)
            case Fold():
                self._fold(step)
            case Pack():
                self._pack(step)
            case Product():
                self._product(step)

    def _entries(self) -> EntryPrinter:
        scope = self._scope
        return EntryPrinter(self._table, self._typing, self._functions, scope.names, scope)

    # Entry by entry

    def _assign(self, target: LocalBlock | Tensor, expression: Term) -> None:
        axes = self._axes(target)
        places = self._positions(len(axes))
        own = self._typing.block(expression).axes
        positions = places[: len(own)] if own == axes else tuple(places[axes.index(axis)] for axis in own)
        entries = self._entries()
        leaf = self._scope.target(target)
        storage = self._scope.element_of(leaf)
        value = bare(entries.print(expression, positions, storage.compute_type))
        if isinstance(target, Tensor) and storage not in (Element.F32, Element.F64, Element.INDEX):
            value = f"bb::store<{storage_type(storage)}>({value})"
        self._nest(axes, entries.lines, [f"{self._scope.entry(leaf, places)} = {value};"])

    def _nest(self, axes: Sequence[str], lines: list[list[str]], innermost: list[str]) -> None:
        """Loops over the entries of a block; `lines[d]` go before the next loop inside the d-th one."""
        self._write(lines[0])
        if not axes:
            self._write(innermost)
            return
        if len(axes) == 1:
            self._writer.line(_SIMD)
            self._loop(self._row, axes[0], [*lines[1], *innermost])
            return
        with self._writer.block(self._for(self._row, axes[0])):
            self._write(lines[1])
            self._writer.line(_SIMD)
            self._loop(self._column, axes[1], [*lines[2], *innermost])

    # Folds

    def _fold(self, step: Fold) -> None:
        operator = self._table.operators[step.fold.operator]
        (operand,) = step.fold.operands
        axes = self._typing.block(operand).axes
        signature = signature_of(operator, (len(axes),))
        places = self._positions(len(axes))
        leaf = self._scope.target(step.target)
        element = self._scope.element_of(leaf)
        monoid = self._table.monoids[operator.fold]
        identity = bare(number(monoid.identity[0], element))
        entries = self._entries()
        value = entries.print(operand, places, element)
        self._write(entries.lines[0])
        if folded_letter(signature) == signature.operands[0][-1]:
            kind = value_type(element)
            self._fold_rows_inside(operator.fold, axes, entries, value, self._scope.entry(leaf, places[:-1]), kind)
        else:
            self._fold_rows_together(operator.fold, axes, entries, value, self._scope.entry(leaf, places[1:]), identity)

    def _fold_rows_inside(
        self, fold: str, axes: tuple[str, ...], entries: EntryPrinter, value: str, target: str, kind: str
    ) -> None:
        """The entries of each row, or of the whole vector, combined in vector lanes."""
        variable = (self._row, self._column)[len(axes) - 1]
        body = " ".join([*entries.lines[len(axes)], f"return {bare(value)};"])
        count = self._scope.index(axes[-1]).count
        line = f"{target} = bb::{fold}_over<{kind}>({count}, [&](int64_t {variable}) {{ {body} }});"
        if len(axes) == 1:
            self._writer.line(line)
            return
        self._loop(self._row, axes[0], [*entries.lines[1], line])

    def _fold_rows_together(
        self, fold: str, axes: tuple[str, ...], entries: EntryPrinter, value: str, target: str, identity: str
    ) -> None:
        """One accumulator for each column, in the target itself; the rows are added one after another."""
        self._writer.line(_SIMD)
        self._loop(self._column, axes[1], [f"{target} = {identity};"])
        with self._writer.block(self._for(self._row, axes[0])):
            self._write(entries.lines[1])
            self._writer.line(_SIMD)
            self._loop(self._column, axes[1], [*entries.lines[2], f"{target} = {self._combined(fold, target, value)};"])

    def _combined(self, fold: str, accumulator: str, value: str) -> str:
        """The monoid's combination of the accumulator and one more value."""
        (combine,) = self._table.monoids[fold].combine
        assert isinstance(combine, Apply)
        return bare(self._table.functions[combine.operator].cpp.format(accumulator, value))

    # Products

    def _pack(self, step: Pack) -> None:
        scope = self._scope
        rows, columns = (scope.index(axis).count for axis in self._typing.block(step.source).axes)
        contracted, wide = (columns, rows) if step.transposed else (rows, columns)
        place = scope.place(step.source)
        row, column = place.strides
        packed, kind = scope.locals[step.packed.name], value_type(step.packed.element)
        if column == "1":
            call = (
                f"bb::pack_{'nk' if step.transposed else 'kn'}({packed}, {place.pointer}, {row}, {contracted}, {wide});"
            )
        else:
            strides = f"{column}, {row}" if step.transposed else f"{row}, {column}"
            call = f"bb::pack_strided({packed}, {place.pointer}, {strides}, {contracted}, {wide});"
        if place.inside:
            size = f"bb::packed_size<{kind}>({contracted}, {wide})"
            call = f"if ({place.inside}) {call} else std::fill_n({packed}, {size}, {kind}(0));"
        self._writer.line(call)

    def _product(self, step: Product) -> None:
        scope = self._scope
        left, target = scope.place(step.left), scope.place(scope.target(step.target))
        rows, columns = (scope.index(axis).count for axis in step.target.type.axes)
        contracted = scope.index(self._typing.block(step.left).axes[1]).count
        operands = (target.pointer, target.strides[0], left.pointer, left.strides[0], scope.locals[step.packed.name])
        name = "dot_add" if step.accumulate else "dot_set"
        self._writer.line(f"bb::{name}({', '.join(operands)}, {rows}, {columns}, {contracted});")

    # Loops

    def _axes(self, target: LocalBlock | Tensor) -> tuple[str, ...]:
        if isinstance(target, LocalBlock):
            return target.type.axes
        return tuple(index for index in target.indices if self._scope.indices.is_blocked(index))

    def _positions(self, rank: int) -> tuple[Position, ...]:
        return (Position(self._row, 1), Position(self._column, 2))[:rank]

    def _for(self, variable: str, axis: str) -> str:
        return f"for (int64_t {variable} = 0; {variable} < {self._scope.index(axis).count}; ++{variable})"

    def _loop(self, variable: str, axis: str, body: list[str]) -> None:
        """A loop over entries; a body of one line follows without braces."""
        line = f"{self._for(variable, axis)} {body[0]}"
        if len(body) == 1 and len(line) <= LONGEST_LINE:
            self._writer.line(line)
            return
        with self._writer.block(self._for(variable, axis)):
            self._write(body)

    def _write(self, lines: list[str]) -> None:
        for line in lines:
            self._writer.line(line)
