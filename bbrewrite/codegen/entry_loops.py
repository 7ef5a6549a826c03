"""Loops over the entries of blocks, and where their rows begin: what the steps of a kernel are printed with."""

from __future__ import annotations

from collections.abc import Sequence

from bbrewrite.codegen.scope import KernelScope, Position
from bbrewrite.codegen.text import LONGEST_LINE, Writer
from bbrewrite.core.programs import Tensor
from bbrewrite.plan.kernel import LocalBlock

SIMD = "#pragma omp simd"


class EntryLoops:
    """Prints loops of one kernel."""

    def __init__(self, writer: Writer, scope: KernelScope) -> None:
        self._writer = writer
        self._scope = scope
        self._row = scope.names.fresh("row")
        self._column = scope.names.fresh("col")
        self._span: tuple[str, str] | None = None  # the columns of a row that are worked on, where these are not all

    def _axes(self, target: LocalBlock | Tensor) -> tuple[str, ...]:
        if isinstance(target, LocalBlock):
            return target.type.axes
        return tuple(index for index in target.indices if self._scope.indices.is_blocked(index))

    def _positions(self, rank: int) -> tuple[Position, ...]:
        return (Position(self._row, 1), Position(self._column, 2))[:rank]

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

    def _row_start(self, target: LocalBlock | Tensor) -> str:
        place = self._scope.place(self._scope.target(target))
        return f"{place.pointer} + {self._scope.offset(place.strides[:1], [self._row])}"

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
