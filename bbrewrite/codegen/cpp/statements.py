"""Prints the steps of a kernel as C++ loops over the entries of blocks.

The innermost loop runs along adjacent entries and is marked for vectors. Loops over blocks, memory and threads belong
to `kernels.py`, the expression of an entry to `expressions.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from bbrewrite.codegen.cpp.entry_loops import SIMD, EntryLoops, Surroundings
from bbrewrite.codegen.cpp.product_calls import pack_calls, product_calls
from bbrewrite.codegen.describe import describe_step
from bbrewrite.codegen.expressions import EntryPrinter, Staged
from bbrewrite.codegen.passes.overlap import one_after_another
from bbrewrite.codegen.passes.rows import stages
from bbrewrite.codegen.scalars import constant_entry, folded_letter, signature_of
from bbrewrite.codegen.steps import (
    Assign,
    Combine,
    Fold,
    Pack,
    Product,
    RowPass,
    Rows,
    SpannedRows,
    kept_element,
)
from bbrewrite.codegen.text import Writer, bare, number, storage_type, value_type
from bbrewrite.core.elements import Element
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Apply, Local
from bbrewrite.core.types import BlockType, Typing
from bbrewrite.plan.kernel import compute_element


@dataclass(frozen=True)
class Parts:
    """The C++ names by which threads that work together know themselves, their number, and each other's accumulators.

    `pointers` are arrays, by the name of the block, with a pointer for each thread.
    """

    own: str
    count: str
    pointers: dict[str, str]


class StepPrinter(EntryLoops):
    """Prints single steps of one kernel."""

    def __init__(self, around: Surroundings, parts: Parts | None, streamed: frozenset[Tensor]) -> None:
        """`streamed` are the results that may be stored past the caches."""
        super().__init__(around)
        self._parts = parts
        self._streamed = streamed
        self._before = around.scope.names.fresh("before")

    def step(self, step: Assign | Fold | Pack | Product | Rows | SpannedRows | Combine) -> None:
        """Prints a step that is no loop over blocks."""
        match step:
            case Assign():
                self._assign(step)
            case Fold():
                self._fold(step)
            case Pack():
                self._write(pack_calls(step, self._scope, self._typing))
            case Product():
                self._write(product_calls(step, self._scope, self._typing))
            case Rows():
                if step.ahead:
                    with self._writer.block(f"if ({self._scope.are_fetched(step.ahead)})"):
                        self._row_loop(step)
                with self._writer.block("else") if step.ahead else contextlib.nullcontext():
                    self._row_loop(one_after_another(step))
                self._settle(step.steps)
            case SpannedRows():
                self._rows(step.rows.axis, [partial(self._spanned_row, step)])
                self._settle(step.rows.steps)
            case Combine():
                self._combine(step)

    # Entry by entry

    def _assign(self, step: Assign) -> None:
        axes = self._axes(step.target)
        if len(axes) == 2 and step.target in self._streamed:
            entries, row = self._write_call(step, axes[1])
            self._write(entries.lines[0])
            with self._writer.block(self._for(self._row, axes[0])):
                self._write([*entries.lines[1], *row])
            self._settle((step,))
            return
        if len(axes) == 2 and self._rounds(step):
            self._round(step, axes)
            return
        entries, statement = self._assignment(step)
        self._write(entries.lines[0])
        if not axes:
            self._write([statement])
        elif len(axes) == 1:
            self._writer.line(SIMD)
            self._loop(self._row, axes[0], [*entries.lines[1], statement])
        else:
            with self._writer.block(self._for(self._row, axes[0])):
                self._write(entries.lines[1])
                self._writer.line(SIMD)
                self._loop(self._column, axes[1], [*entries.lines[2], statement])

    def _settle(self, steps: Sequence[Assign | Fold]) -> None:
        """Where steps have stored results past the caches, lets other threads see them."""
        for target in dict.fromkeys(step.target for step in steps):
            if isinstance(target, Tensor) and target in self._streamed and len(self._axes(target)) == 2:
                self._writer.line(f"if ({self._scope.streamed_flag(target)}) bb::settle_streams();")

    def _round(self, step: Assign, axes: tuple[str, ...]) -> None:
        """Writes a block row by row, rounded."""
        entries, _, value = self._entry_and_value(step)
        self._write(entries.lines[0])
        with self._writer.block(self._for(self._row, axes[0])):
            self._write([*entries.lines[1], *self._round_call(step, axes[1], entries.lines[2], value)])

    # Row by row

    def _rows(self, axis: str, stages: Sequence[Callable[[], list[str]]]) -> None:
        """One loop over rows. A stage prints what is done for a row and returns what goes before the loop; of two
        stages the first one is a row ahead.
        """
        outer = self._writer
        before: list[str] = []
        printed: list[Writer] = []
        for stage in stages:
            self._writer = Writer()
            before += stage()
            printed.append(self._writer)
        self._writer = outer
        self._write(before)
        if len(printed) == 1:
            with outer.block(self._for(self._row, axis)):
                outer.paste(printed[0])
            return
        turn, count = self._scope.names.fresh("turn"), self._scope.index(axis).count
        turns = (f"{turn} < {count}", turn), (f"{turn} > 0", f"{turn} - 1")
        with outer.block(f"for (int64_t {turn} = 0; {turn} <= {count}; ++{turn})"):
            for (test, row), stage in zip(turns, printed, strict=True):
                with outer.block(f"if ({test})"):
                    outer.line(f"const int64_t {self._row} = {row};")
                    outer.paste(stage)

    def _row_loop(self, rows: Rows) -> None:
        parts = stages(rows, self._scope.single_rows)
        self._rows(rows.axis, [partial(self._row_passes, rows, passes) for passes in parts])

    def _row_passes(self, rows: Rows, passes: Sequence[RowPass]) -> list[str]:
        """Prints the passes; what goes on beside some of them begins and ends with those."""
        busy = [place for place, one in enumerate(passes) if one.quarters]
        first, past = (busy[0], busy[-1] + 1) if busy else (len(passes), len(passes))
        before = [line for one in passes[:first] for line in self._row_pass(one, (), rows)]
        if busy:
            with self._writer.block(""):
                beside, around = self._beside(rows)
                before += [*around, *(line for one in passes[first:past] for line in self._row_pass(one, beside, rows))]
        return [*before, *(line for one in passes[past:] for line in self._row_pass(one, (), rows))]

    def _beside(self, rows: Rows) -> tuple[list[str], list[str]]:
        """Prints what a row's passes do beside, and returns its names and what goes before the loop over rows."""
        names = [self._scope.names.fresh("ahead") for _ in rows.ahead]
        for name, leaf in zip(names, rows.ahead, strict=True):
            distance = self._scope.place(leaf).strides[0]
            self._writer.line(f"auto {name} = bb::row_ahead({self._row_start(leaf)}, {distance});")
        if not rows.behind:
            return names, []
        entries, behind = self._row_before(rows.behind)
        self._writer.line(f"const int64_t {self._before} = {self._row} > 0 ? {self._row} - 1 : 0;")
        names.append(self._scope.names.fresh("behind"))
        self._write([*entries.lines[1], f"auto {names[-1]} = {behind[0]}", *behind[1:-1], f"{behind[-1]};"])
        return names, entries.lines[0]

    def _spanned_row(self, step: SpannedRows) -> list[str]:
        spans, count = step.spans, self._scope.index(step.spans.axes[1]).count
        entry = {
            block: self._scope.entry(Local(block.name), self._positions(1))
            for block in (spans.begin, spans.past, spans.whole)
        }
        with self._writer.block(f"if ({entry[spans.whole]})"):
            before = self._row_passes(step.whole, step.whole.passes)
        with self._writer.block("else"):
            first, past = self._span = self._scope.names.fresh("first"), self._scope.names.fresh("past")
            self._writer.line(f"const int64_t {first} = bb::span_begin({entry[spans.begin]});")
            self._writer.line(f"const int64_t {past} = bb::span_past({entry[spans.past]}, {count});")
            before += self._row_passes(step.rows, step.rows.passes)
            self._span = None
            for block, value in step.filled:
                element = kept_element(block)
                filling = f"bb::store<{storage_type(element)}>({bare(number(value, element.compute_type))})"
                self._writer.line(f"bb::fill_outside({self._row_start(block)}, {first}, {past}, {count}, {filling});")
        return before

    def _row_pass(self, one: RowPass, beside: Sequence[str], rows: Rows) -> list[str]:
        """Prints what a pass does for one row, and `beside` it; returns what goes before the loop over rows."""
        for step in one.steps:
            self._writer.line(f"// {describe_step(step, self._table)}")
        last, rounded = one.steps[-1], self._rounded_terms(one)
        total = self._equal_terms(last) if isinstance(last, Fold) and len(one.steps) == 1 else ""
        if total:
            self._writer.line(f"{self._scope.entry(self._scope.target(last.target), self._positions(1))} = {total};")
            return []
        (first, *others) = one.steps
        axes = self._axes(first.target)
        is_streamed = not others and len(axes) == 2 and self._span is None and first.target in self._streamed
        if isinstance(first, Assign) and is_streamed:
            return self._written_row(first, axes, rows.behind == first)
        end = last if isinstance(last, Assign) and self._rounds(last) else None
        assigned = [step for step in one.steps if isinstance(step, Assign) and step not in (rounded, end)]
        printed: list[tuple[EntryPrinter, str]] = []
        for step in assigned:
            printed.append(self._assignment(step, self._may_stage(last, printed)))
        fold = self._folded(last, self._may_stage(last, printed)) if isinstance(last, Fold) else None
        ended = self._entry_and_value(end) if end else None
        parts = [entries for entries, _ in printed] + ([fold[0]] if fold else []) + ([ended[0]] if ended else [])
        self._write([line for entries in parts for line in entries.lines[1]])
        body = [line for entries, statement in printed for line in (*entries.lines[2], statement)]
        if isinstance(last, Fold) and fold:
            meanwhile = [[f"bb::KeepRounded{{{self._columns_start(rounded.target)}}}"]] if rounded else []
            meanwhile += [[f"bb::beside<{one.quarters}>({name})"] for name in beside if one.quarters]
            before, staged = [*body, *fold[0].lines[2]], _staged([*printed, fold])
            self._write(self._fold_call(last, before, fold[1], meanwhile, staged, rounded is not None))
        elif len(axes) == 1:
            self._write(body)
        elif end and ended:
            self._write(self._round_call(end, axes[1], [*body, *ended[0].lines[2]], ended[2]))
        else:
            self._writer.line(SIMD)
            self._column_loop(axes[1], body)
        return [line for entries in parts for line in entries.lines[0]]

    def _may_stage(self, last: Assign | Fold, before: Sequence[tuple[EntryPrinter, str]]) -> bool:
        """Whether a step of a pass may leave a call out, given what is printed before it: that is done for the call's
        argument as well.
        """
        if not isinstance(last, Fold) or self._fold_element(last) is not Element.F32:
            return False
        return all(text.startswith("const ") and not entries.staged for entries, text in before)

    def _written_row(self, step: Assign, axes: tuple[str, ...], is_behind: bool) -> list[str]:
        """Prints the writing of a row, which another pass has done for all rows but the last where it is large."""
        assert isinstance(step.target, Tensor)
        entries, row = self._write_call(step, axes[1])
        last = f"{self._row} + 1 == {self._scope.index(axes[0]).count}"
        test = f"if (!{self._scope.streamed_flag(step.target)} || {last})"
        with self._writer.block(test) if is_behind else contextlib.nullcontext():
            self._write([*entries.lines[1], *row])
        return entries.lines[0]

    def _row_before(self, step: Assign) -> tuple[EntryPrinter, list[str]]:
        """What writes the row before, past the caches, and what it needs."""
        assert isinstance(step.target, Tensor)
        entries, _, value = self._entry_and_value(step, self._before)
        axis = self._axes(step.target)[1]
        count, most = self._scope.index(axis).count, self.most_entries(axis, "<{}>")
        is_there = f"{self._scope.streamed_flag(step.target)} && {self._row} > 0"
        place = self._row_start(step.target, self._before)
        head = f"bb::row_behind{most}({is_there}, {place}, {count}, [&](int64_t {self._column}) {{"
        return entries, [head, *(f"  {line}" for line in (*entries.lines[2], f"return {value};")), "})"]

    def _rounded_terms(self, one: RowPass) -> Assign | None:
        """The step that rounds what the pass folds, which the fold can do by the way."""
        *before, last = one.steps
        if not isinstance(last, Fold) or self._fold_element(last) is not Element.F32:
            return None
        return next(
            (s for s in before if isinstance(s, Assign) and (s.expression,) == last.fold.operands and self._rounds(s)),
            None,
        )

    # Folds

    def _fold(self, step: Fold) -> None:
        axes = self._typing.block(step.fold.operands[0]).axes
        signature = signature_of(self._table.operators[step.fold.operator], (len(axes),))
        total = self._equal_terms(step)
        if total:
            target = self._scope.entry(self._scope.target(step.target), self._positions(len(axes) - 1))
            self._entry_loop(step.target.type.axes, [f"{target} = {total};"])
            return
        entries, value = self._folded(step)
        self._write(entries.lines[0])
        if folded_letter(signature) != signature.operands[0][-1]:
            self._fold_rows_together(step, axes, entries, value)
        elif len(axes) == 1:
            self._write(self._fold_call(step, entries.lines[1], value))
        else:
            self._loop(self._row, axes[0], [*entries.lines[1], *self._fold_call(step, entries.lines[2], value)])

    def _equal_terms(self, step: Fold) -> str:
        """The value of a sum of equal terms, such as how many entries a row has; "" for any other fold."""
        (operand,) = step.fold.operands
        operator = self._table.operators[step.fold.operator]
        term = constant_entry(operand)
        if operator.fold != "sum" or term is None:
            return ""
        axes = self._typing.block(operand).axes
        axis = dict(zip(*signature_of(operator, (len(axes),)).operands, axes, strict=True))
        count = self._scope.index(axis[folded_letter(signature_of(operator, (len(axes),)))]).count
        element = self._fold_element(step)
        return f"{value_type(element)}({count})" + ("" if term == 1 else f" * {number(term, element)}")

    def _folded(self, step: Fold, stages: bool = False) -> tuple[EntryPrinter, str]:
        """An entry of what is folded, and what it needs."""
        (operand,) = step.fold.operands
        entries = self._entries(stages)
        places = self._positions(len(self._typing.block(operand).axes))
        return entries, entries.print(operand, places, self._fold_element(step))

    def _fold_rows_together(self, step: Fold, axes: tuple[str, ...], entries: EntryPrinter, value: str) -> None:
        """One accumulator for each column: the target itself, or a wider one where errors would add up from row to
        row.
        """
        fold, element = self._table.operators[step.fold.operator].fold, self._fold_element(step)
        target = self._scope.entry(self._scope.target(step.target), self._positions(2)[1:])
        accumulator = target
        if fold == "sum" and element is Element.F32:
            totals = self._scope.names.fresh("totals")
            self._writer.line(f"{value_type(Element.F64)} {totals}[{self._scope.indices[axes[1]].block}];")
            accumulator = f"{totals}[{self._column}]"
        identity = bare(number(self._table.monoids[fold].identity[0], element))
        self._entry_loop(axes, [f"{accumulator} = {identity};"])
        with self._writer.block(self._for(self._row, axes[0])):
            self._write(entries.lines[1])
            combined = self._combined(fold, accumulator, value)
            self._entry_loop(axes, [*entries.lines[2], f"{accumulator} = {combined};"])
        if accumulator != target:
            self._entry_loop(axes, [f"{target} = {value_type(element)}({accumulator});"])

    def _combined(self, fold: str, accumulator: str, value: str) -> str:
        """The monoid's combination of the accumulator and one more value."""
        (combine,) = self._table.monoids[fold].combine
        assert isinstance(combine, Apply)
        return bare(self._table.functions[combine.operator].cpp.format(accumulator, value))

    # The threads' accumulators

    def _combine(self, step: Combine) -> None:
        assert self._parts
        axes, scope = step.target.type.axes, self._scope
        places = self._positions(len(axes))
        target = scope.entry(scope.target(step.target), places)
        source = scope.place(scope.target(step.source))
        entry = scope.offset(source.strides, [place.variable for place in places])
        whole = scope.locals[step.source.name]
        entry = entry if source.pointer == whole else f"{source.pointer} - {whole} + {entry}"
        other = scope.names.fresh("other")
        first, next_one = (f"{self._parts.pointers[step.source.name]}[{number}][{entry}]" for number in ("0", other))
        combined = self._combined_by(step, target, next_one)
        each = f"for (int64_t {other} = 1; {other} < {self._parts.count}; ++{other})"
        with contextlib.ExitStack() as loops:
            for variable, axis in zip((self._row, self._column), axes[:-1], strict=False):
                loops.enter_context(self._writer.block(self._for(variable, axis)))
            self._entry_loop(axes, [f"{target} = {first};"])
            with self._writer.block(each):
                self._entry_loop(axes, combined)

    def _combined_by(self, step: Combine, target: str, value: str) -> list[str]:
        """The statements that combine one more value into an entry of the target."""
        monoid = self._table.monoids[step.monoid]
        (left,), (right,), (combine,) = monoid.left, monoid.right, monoid.combine
        element = compute_element(step.target.type.element)
        types = {name: BlockType((), element) for name in (left, right)}
        typing = Typing(self._table, self._scope.indices, {}, types)
        parameters = {left: target, right: value}
        printer = EntryPrinter(self._table, typing, self._functions, self._scope.names, None, parameters)
        result = bare(printer.print(combine, (), element))
        return [*printer.lines[0], f"{target} = {result};"]


def _staged(printed: Sequence[tuple[EntryPrinter, str]]) -> Staged | None:
    """The call that steps leave out, with what is printed before it."""
    before: list[str] = []
    for entries, statement in printed:
        if entries.staged:
            return replace(entries.staged, lines=(*before, *entries.staged.lines))
        before += [*entries.lines[2], statement]
    return None
