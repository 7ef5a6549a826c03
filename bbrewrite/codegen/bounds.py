"""Prints the bounds of loops that masks narrow: the first block, the one after the last, and the test of a block; and
the same for the columns of each row of a block.

Extremes of what tensors hold are found by a scan of their current block, once for each loop that needs them; all
other leaves are positions and extents that the kernel already names.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from bbrewrite.codegen.scope import KernelScope, Position
from bbrewrite.codegen.steps import Spans
from bbrewrite.codegen.text import Writer, bare
from bbrewrite.core.terms import IndexValue, Local, Read, Size, Term
from bbrewrite.plan.masks.visible import (
    ALWAYS,
    AllOf,
    AnyOf,
    Bound,
    Condition,
    Floored,
    Linear,
    LoopBounds,
    Nonnegative,
    Outermost,
    Quotient,
)


class BoundsPrinter:
    """Prints for a place inside the loops over `bound`. `lines` are the declarations needed before, and `known` the
    extremes of tensors that have a name by then. Of the index `row`, if any, the place is that of a variable in its
    block.
    """

    def __init__(
        self,
        scope: KernelScope,
        bound: frozenset[str],
        known: Mapping[tuple[Read, bool], str] = MappingProxyType({}),
        row: tuple[str, Position] | None = None,
    ) -> None:
        self._row = row
        self._scope = scope
        self._bound = bound
        self.known = dict(known)
        self.lines: list[str] = []

    def block_range(self, bounds: LoopBounds, name: str) -> tuple[str, str]:
        """The numbers of the first block and of the one after the last; "0" and "" where all are visited."""
        index, steps = self._scope.index(name), self._scope.steps_of(name)
        # What does not change in the loop is scanned before it.
        for read in bounds.reads:
            if name not in read.free:
                self._extreme(read, False)
                self._extreme(read, True)
        first, end = "0", ""
        if bounds.begin is not None:
            position = bare(self._position(bounds.begin))
            block = f"bb::floor_div({position}, {index.block})" if index.block else position
            first = self._named(f"{name}_first", f"bb::maximum<int64_t>(0, {block})")
        if bounds.end is not None:
            position = bare(self._position(bounds.end))
            block = f"bb::ceil_div({position}, {index.block})" if index.block else position
            end = self._named(f"{name}_end", f"bb::maximum<int64_t>({first}, bb::minimum<int64_t>({steps}, {block}))")
        elif bounds.begin is not None:
            end = self._named(f"{name}_end", f"bb::maximum<int64_t>({first}, {steps})")
        return first, end

    def columns(self, spans: Spans) -> tuple[str, str]:
        """The first column of a row that may be seen and the one after the last, counted from the block's first."""
        index = self._scope.index(spans.axes[1])
        begin, past = "0", index.count
        if spans.bounds.begin is not None:
            begin = (
                f"bb::minimum<int64_t>({past}, bb::maximum<int64_t>(0, {self._from(spans.bounds.begin, index.start)}))"
            )
        if spans.bounds.end is not None:
            past = f"bb::minimum<int64_t>({past}, {self._from(spans.bounds.end, index.start)})"
        if spans.bounds.test != ALWAYS:
            past = f"{_factor(self.possible(spans.bounds.test))} ? {past} : 0"
        return begin, past

    def _from(self, bound: Bound, start: str) -> str:
        return f"{bare(self._position(bound))} - {start}"

    def possible(self, condition: Condition) -> str:
        """A test whether some entry of the current blocks may meet a condition."""
        match condition:
            case Nonnegative(linear):
                left = Linear(tuple(part for part in linear.parts if part[1] > 0), max(linear.offset, 0))
                right = Linear(tuple((leaf, -c) for leaf, c in linear.parts if c < 0), max(-linear.offset, 0))
                return f"{self._sum(left, True)} >= {self._sum(right, False)}"
            case AllOf(conditions):
                return " && ".join(self._inner(condition) for condition in conditions) or "true"
            case AnyOf(conditions):
                return " || ".join(self._inner(condition) for condition in conditions) or "false"

    def _inner(self, condition: Condition) -> str:
        text = self.possible(condition)
        return text if isinstance(condition, Nonnegative) else f"({text})"

    def _named(self, stem: str, value: str) -> str:
        name = self._scope.names.fresh(stem)
        self.lines.append(f"const int64_t {name} = {value};")
        return name

    def _position(self, bound: Bound) -> str:
        match bound:
            case Quotient(linear, greatest, divisor):
                text = self._sum(linear, greatest)
                return text if divisor == 1 else f"bb::floor_div({text}, INT64_C({divisor}))"
            case Outermost(positions, greatest):
                function = "bb::maximum" if greatest else "bb::minimum"
                text = self._position(positions[0])
                for other in positions[1:]:
                    text = f"{function}<int64_t>({text}, {self._position(other)})"
                return text

    def _sum(self, linear: Linear, greatest: bool) -> str:
        text = ""
        for leaf, coefficient in linear.parts:
            value = self._extreme(leaf, greatest == (coefficient > 0))
            value = value if abs(coefficient) == 1 else f"{abs(coefficient)} * {_factor(value)}"
            sign = "-" if coefficient < 0 else "+"
            value = _factor(value) if coefficient < 0 else value
            text = f"{text} {sign} {value}" if text else (f"-{_factor(value)}" if coefficient < 0 else value)
        if linear.offset or not text:
            text = f"{text} {'-' if linear.offset < 0 else '+'} {abs(linear.offset)}" if text else str(linear.offset)
        return text

    def _extreme(self, leaf: Term, greatest: bool) -> str:
        match leaf:
            case Floored(linear, divisor):
                return f"bb::floor_div({self._sum(linear, greatest)}, INT64_C({divisor}))"
            case Size(index):
                return self._scope.size(index)
            case IndexValue(index) if self._row and self._row[0] == index:
                return f"{self._scope.index(index).start} + {self._row[1].variable}"
            case Read() if self._row and self._row[0] in leaf.free:
                return f"int64_t({self._scope.entry(leaf, [self._row[1]])})"
            case IndexValue(index):
                names = self._scope.index(index)
                if index not in self._bound:
                    return f"{names.size} - 1" if greatest else "0"
                if not names.start:
                    return names.number
                return f"{names.start} + {names.count} - 1" if greatest else names.start
            case Read():
                if (leaf, greatest) not in self.known:
                    self.known[leaf, greatest] = self._scanned(leaf, greatest)
                return self.known[leaf, greatest]
            case _:
                raise AssertionError(leaf)

    def _scanned(self, read: Read, greatest: bool) -> str:
        """The extreme of a block of a tensor, in a variable."""
        place = self._scope.place(read)
        blocked = [
            a.plain_index for a in read.addresses if a.plain_index and self._scope.indices.is_blocked(a.plain_index)
        ]
        if not blocked:
            return self._named(f"{read.tensor}_value", f"{place.pointer}[0]")
        stride, count = place.strides[0], self._scope.index(blocked[0]).count
        end = "greatest" if greatest else "least"
        return self._named(f"{read.tensor}_{end}", f"bb::{end}({place.pointer}, {stride}, {count})")


def write_spans(writer: Writer, scope: KernelScope, bound: frozenset[str], spans: Spans, variable: str) -> None:
    """Writes the loop that finds the spans of the current blocks; `variable` is a name for the row."""
    row, column = spans.axes
    position = Position(variable, 1)
    printer = BoundsPrinter(scope, bound, row=(row, position))
    begin, past = printer.columns(spans)
    hidden = printer.possible(spans.hides)
    for line in printer.lines:
        writer.line(line)
    first, end = scope.names.fresh("from"), scope.names.fresh("to")
    targets = [scope.entry(Local(block.name), [position]) for block in (spans.begin, spans.past, spans.whole)]
    writer.line()
    writer.line(f"// the span of {column} that each {row} sees")
    writer.line("#pragma omp simd")
    with writer.block(f"for (int64_t {variable} = 0; {variable} < {scope.index(row).count}; ++{variable})"):
        writer.line(f"const int64_t {first} = {begin}, {end} = {past};")
        writer.line(f"{targets[0]} = {first} < {end} ? {first} : 0;")
        writer.line(f"{targets[1]} = {first} < {end} ? {end} : 0;")
        writer.line(f"{targets[2]} = !({hidden});")


def _factor(text: str) -> str:
    return text if text.isidentifier() or text.isdigit() else f"({text})"
