"""Loops over the entries of blocks, where their rows begin, and what steps write there: with these they are printed.

Which loops a step needs, `statements.py` knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bbrewrite.codegen.expressions import EntryPrinter, Staged, UserFunctions
from bbrewrite.codegen.scope import KernelScope, Position
from bbrewrite.codegen.steps import Assign, Fold, kept_element
from bbrewrite.codegen.text import LONGEST_LINE, Writer, bare, storage_type, value_type
from bbrewrite.core.elements import Element
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Local, Read
from bbrewrite.core.types import Typing
from bbrewrite.plan.kernel import LocalBlock
from bbrewrite.plan.scheduling.spanning import AT_ONCE

SIMD = "#pragma omp simd"

# Functions of vectors that take less time where their values are going to be rounded to bf16.
_ROUNDED = {"bb::Exp": "bb::ExpRounded"}


@dataclass(frozen=True)
class Surroundings:
    """What the loops of one kernel are printed with: the text so far, and what its operators and names stand for."""

    writer: Writer
    table: OperatorTable
    typing: Typing
    functions: UserFunctions
    scope: KernelScope


class EntryLoops:
    """Prints loops of one kernel."""

    def __init__(self, around: Surroundings) -> None:
        self._writer = around.writer
        self._table = around.table
        self._typing = around.typing
        self._functions = around.functions
        self._scope = around.scope
        self._row = around.scope.names.fresh("row")
        self._column = around.scope.names.fresh("col")
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
        place, number = self._scope.place(leaf), self._scope.row_place(leaf, row or self._row)
        return f"{place.pointer} + {self._scope.offset(place.strides[:1], [number])}"

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

    def _assignment(self, step: Assign, stages: bool = False) -> tuple[EntryPrinter, str]:
        """The statement that writes an entry, and what it needs."""
        entries, entry, value = self._entry_and_value(step, stages=stages)
        leaf = self._scope.target(step.target)
        kind = f"const {value_type(self._scope.element_of(leaf))} " if self._scope.is_variable(leaf) else ""
        value = f"bb::store<{storage_type(Element.BF16)}>({value})" if self._rounds(step) else value
        return entries, f"{kind}{entry} = {value};"

    def _entry_and_value(self, step: Assign, row: str = "", stages: bool = False) -> tuple[EntryPrinter, str, str]:
        """The entry that is written and its value, and what they need; `row` names the row, if not the current one."""
        axes = self._axes(step.target)
        places = self._positions(len(axes), row)
        own = self._typing.block(step.expression).axes
        positions = places[: len(own)] if own == axes else tuple(places[axes.index(axis)] for axis in own)
        entries = self._entries(stages)
        leaf = self._scope.target(step.target)
        storage = self._scope.element_of(leaf)
        value = bare(entries.print(step.expression, positions, storage.compute_type))
        if isinstance(step.target, Tensor) and storage not in (Element.F32, Element.F64, Element.INDEX):
            value = f"bb::store<{storage_type(storage)}>({value})"
        return entries, self._scope.entry(leaf, places), value

    def _entries(self, stages: bool = False) -> EntryPrinter:
        scope = self._scope
        return EntryPrinter(self._table, self._typing, self._functions, scope.names, scope, stages=stages, bounds=True)

    def _write_call(self, step: Assign, axis: str) -> tuple[EntryPrinter, list[str]]:
        """The call that writes a row, past the caches where the whole result is large, and what it needs."""
        assert isinstance(step.target, Tensor)
        entries, _, value = self._entry_and_value(step)
        flag, count = self._scope.streamed_flag(step.target), self._scope.index(axis).count
        most = self.most_entries(axis, "<{}>")
        head = f"bb::write_row{most}({self._row_start(step.target)}, {count}, {flag}, [&](int64_t {self._column}) {{"
        return entries, [head, *(f"  {line}" for line in (*entries.lines[2], f"return {value};")), "});"]

    def _round_call(self, step: Assign, axis: str, before: Sequence[str], value: str) -> list[str]:
        count, variable, before = self._terms(axis, self._column, before)
        most = self.most_entries(axis, "<{}>")
        head = f"bb::round_row{most}({self._columns_start(step.target)}, {count}, "
        return [
            f"{head}[&](int64_t {variable}) {{",
            *(f"  {line}" for line in (*before, f"return {value};")),
            "});",
        ]

    def _rounds(self, step: Assign) -> bool:
        return isinstance(step.target, LocalBlock) and kept_element(step.target) is Element.BF16

    # Folds

    def _fold_element(self, step: Fold) -> Element:
        return self._scope.element_of(self._scope.target(step.target))

    def _fold_call(
        self,
        step: Fold,
        before: Sequence[str],
        value: str,
        beside: Sequence[Sequence[str]] = (),
        staged: Staged | None = None,
        is_rounded: bool = False,
    ) -> list[str]:
        """The entries of a row, or of a whole vector, combined in vector lanes; `before` is done for each entry, and
        `beside`, each of some lines, for each part of the row. With `staged`, that call is made for many entries, and
        the rest is done with its values. What is combined is also kept where it `is_rounded` to bf16.
        """
        axes = self._typing.block(step.fold.operands[0]).axes
        target = self._scope.entry(self._scope.target(step.target), self._positions(len(axes) - 1))
        variable = (self._row, self._column)[len(axes) - 1]
        monoid = self._table.operators[step.fold.operator].fold
        kind = value_type(self._fold_element(step))
        place: Sequence[str] = ()
        if len(axes) == 2:
            count, variable, place = self._terms(axes[1], variable, ())
        else:
            count = self._scope.index(axes[0]).count
        if before and before[-1].startswith(f"{value} = "):
            body = [*place, *before[:-1], f"return {before[-1]}"]  # it stores an entry and returns it
        else:
            body = [*place, *before, f"return {bare(value)};"]
        terms = [_closure(f"int64_t {variable}", body)]
        if staged:
            function = staged.function
            argument = _closure(f"int64_t {variable}", [*place, *staged.lines, f"return {staged.argument};"])
            terms = [argument, _closure(f"int64_t {variable}, float {staged.value}", body)]
            if [*before, value] in ([staged.value], [f"const float {value} = {staged.value};", value]):
                function = _ROUNDED.get(function, function) if is_rounded else function
                terms = [argument]
            elif list(before) == [f"{value} = {staged.value};"]:
                terms = [argument]
                (kept,) = step.fold.operands
                assert isinstance(kept, Read | Local)
                start = self._row_start(kept) + (f" + {self._span[0]}" if self._span else "")
                beside = [[f"bb::Keep{{{start}}}"], *beside]
            argument[0] = f"bb::through<{function}>({argument[0]}"
            terms[-1][-1] += ")"
        most = self.most_entries(axes[-1], ", {}")
        return _call(f"{target} = bb::{monoid}_over<{kind}{most}>({count}", [*terms, *beside])

    def most_entries(self, axis: str, form: str) -> str:
        """The most entries that a row has, in a form, or "" where they may be as many as are worked on at once."""
        size = self._scope.indices[axis].block
        if size is None or size >= AT_ONCE or axis in self._scope.whole:
            return ""
        return form.format(self._scope.index(axis).block)


def _closure(parameters: str, body: Sequence[str]) -> list[str]:
    return [f"[&]({parameters}) {{", *(f"  {line}" for line in body), "}"]


def _call(head: str, arguments: Sequence[Sequence[str]]) -> list[str]:
    """A call with more arguments, each of some lines, in one line if that is short."""
    short = ", ".join([head, *(" ".join(line.strip() for line in lines) for lines in arguments)]) + ");"
    if len(short) <= LONGEST_LINE and all(len(lines) == 1 for lines in arguments[1:]):
        return [short]
    lines = [head]
    for first, *others in arguments:
        lines[-1] += f", {first}"
        lines += others
    lines[-1] += ");"
    return lines
