"""C++ functions for the operators that users define in rule files, made on demand for the types they are used with."""

from __future__ import annotations

from bbrewrite.codegen.expressions import EntryPrinter
from bbrewrite.codegen.names import Names
from bbrewrite.codegen.text import Writer, value_type
from bbrewrite.core.elements import Element
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable, ScalarFunction
from bbrewrite.core.types import BlockType, Typing, result_element


class FunctionPrinter:
    """Collects function definitions, each after those that it calls. One C++ name is overloaded for all types."""

    def __init__(self, table: OperatorTable, names: Names) -> None:
        self._table = table
        self._names = names
        # Taken ahead of everything else: kernels call functions by these names, whatever a program calls its tensors.
        users = [function.name for function in table.functions.values() if function.body is not None]
        self._identifiers = {name: names.fresh(name) for name in users}
        self._done: set[tuple[str, tuple[Element, ...]]] = set()
        self.definitions: list[str] = []

    def call(self, function: ScalarFunction, operands: tuple[Element, ...]) -> str:
        """The name by which the function is called with operands of these compute types."""
        if (function.name, operands) not in self._done:
            self._done.add((function.name, operands))
            self._define(function, operands)
        return self._identifiers[function.name]

    def _define(self, function: ScalarFunction, operands: tuple[Element, ...]) -> None:
        assert function.body is not None
        names = self._names.inner()
        parameters = {name: names.fresh(name) for name in function.parameters}
        types = {name: BlockType((), kind) for name, kind in zip(function.parameters, operands, strict=True)}
        typing = Typing(self._table, IndexTable.of([]), {}, types)
        result = (result_element(function, operands) or Element.F32).compute_type
        printer = EntryPrinter(self._table, typing, self, names, None, parameters)
        value = printer.print(function.body, (), result)
        writer = Writer()
        taken = ", ".join(
            f"{value_type(kind)} {parameters[name]}" for name, kind in zip(function.parameters, operands, strict=True)
        )
        with writer.block(f"static BB_INLINE {value_type(result)} {self._identifiers[function.name]}({taken})"):
            for line in printer.lines[0]:
                writer.line(line)
            writer.line(f"return {value};")
        self.definitions.append(writer.text)
