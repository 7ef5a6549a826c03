"""Loops over the entries of blocks, where their rows begin, and what steps write there: with these they are printed.

Which loops a step needs, `statements.py` knows.
"""

from __future__ import annotations

from collections.abc import Sequence

from bbrewrite.codegen.expressions import EntryPrinter, UserFunctions
from bbrewrite.codegen.scope import KernelScope, Position
from bbrewrite.codegen.steps import Assign, kept_element
from bbrewrite.codegen.text import LONGEST_LINE, Writer, bare, storage_type, value_type
from bbrewrite.core.elements import Element
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Local, Read
from bbrewrite.core.types import Typing
from bbrewrite.plan.kernel import LocalBlock

SIMD = "#pragma omp simd"


class EntryLoops:
    """Prints loops of one kernel."""

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
        self._span: tuple[str, str] | None = None  # the columns of a row that are worked on, where these are not all

    def _axes(self, target: LocalBlock | Tensor) -> tuple[str, ...]:
        if isinstance(target, LocalBlock):
            return target.type.axes
        return tuple(index for index in target.indices if self._scope.indices.is_blocked(index))

    def _positions(self, rank: int, row: str = "") -> tuple[Position, ...]:
        return (Position(row or self._row, 1), Position(self._column, 2))[:rank]

    def _for(self, variable: str, axis: str) -> str:
        return f"for (int64_t {variable} = 0; {variable} < {self._scope.index(axis).count}; ++{variable})"

    def _column_loop(self, axis: str, body: list[str]) -> None:
        """A loop over the columns of a row that are worked on."""
        if self._span is None:
            self._loop(self._column, axis, body)
            return
        first, past = self._span
        with self._writer.block(f"for (int64_t {self._column} = {first}; {self._column} < {past}; ++{self._column})"):
            self._write(body)

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

    def _entry_loop(self, axes: Sequence[str], body: list[str]) -> None:
        """The innermost loop over entries, if there is one."""
        if not axes:
            self._write(body)
            return
        self._writer.line(SIMD)
        self._loop((self._row, self._column)[len(axes) - 1], axes[-1], body)

    def _row_start(self, block: Read | Local | LocalBlock | Tensor, row: str = "") -> str:
        leaf = self._scope.target(block) if isinstance(block, LocalBlock | Tensor) else block
        place = self._scope.place(leaf)
        return f"{place.pointer} + {self._scope.offset(place.strides[:1], [row or self._row])}"

    def _columns_start(self, target: LocalBlock | Tensor) -> str:
        """Where the columns of a row begin that are worked on."""
        return self._row_start(target) + (f" + {self._span[0]}" if self._span else "")

    def _terms(self, axis: str, variable: str, before: Sequence[str]) -> tuple[str, str, Sequence[str]]:
        """How many entries of a row are worked on, the variable that counts them, and what is done for each."""
        if self._span is None:
            return self._scope.index(axis).count, variable, before
        first, past = self._span
        place = self._scope.names.fresh("place")
        return f"{past} - {first}", place, [f"const int64_t {variable} = {first} + {place};", *before]

    # What a step writes

    def _assignment(self, step: Assign) -> tuple[EntryPrinter, str]:
        """The statement that writes an entry, and what it needs."""
        entries, entry, value = self._entry_and_value(step)
        leaf = self._scope.target(step.target)
        kind = f"const {value_type(self._scope.element_of(leaf))} " if self._scope.is_variable(leaf) else ""
        value = f"bb::store<{storage_type(Element.BF16)}>({value})" if self._rounds(step) else value
        return entries, f"{kind}{entry} = {value};"

    def _entry_and_value(self, step: Assign, row: str = "") -> tuple[EntryPrinter, str, str]:
        """The entry that is written and its value, and what they need; `row` names the row, if not the current one."""
        axes = self._axes(step.target)
        places = self._positions(len(axes), row)
        own = self._typing.block(step.expression).axes
        positions = places[: len(own)] if own == axes else tuple(places[axes.index(axis)] for axis in own)
        entries = self._entries()
        leaf = self._scope.target(step.target)
        storage = self._scope.element_of(leaf)
        value = bare(entries.print(step.expression, positions, storage.compute_type))
        if isinstance(step.target, Tensor) and storage not in (Element.F32, Element.F64, Element.INDEX):
            value = f"bb::store<{storage_type(storage)}>({value})"
        return entries, self._scope.entry(leaf, places), value

    def _entries(self) -> EntryPrinter:
        scope = self._scope
        return EntryPrinter(self._table, self._typing, self._functions, scope.names, scope)

    def _write_call(self, step: Assign, axis: str) -> tuple[EntryPrinter, list[str]]:
        """The call that writes a row, past the caches where the whole result is large, and what it needs."""
        assert isinstance(step.target, Tensor)
        entries, _, value = self._entry_and_value(step)
        flag, count = self._scope.streamed_flag(step.target), self._scope.index(axis).count
        head = f"bb::write_row({self._row_start(step.target)}, {count}, {flag}, [&](int64_t {self._column}) {{"
        return entries, [head, *(f"  {line}" for line in (*entries.lines[2], f"return {value};")), "});"]

    def _round_call(self, step: Assign, axis: str, before: Sequence[str], value: str) -> list[str]:
        count, variable, before = self._terms(axis, self._column, before)
        head = f"bb::round_row({self._columns_start(step.target)}, {count}, "
        return [
            f"{head}[&](int64_t {variable}) {{",
            *(f"  {line}" for line in (*before, f"return {value};")),
            "});",
        ]

    def _rounds(self, step: Assign) -> bool:
        return isinstance(step.target, LocalBlock) and kept_element(step.target) is Element.BF16
