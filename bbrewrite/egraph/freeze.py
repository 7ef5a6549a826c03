"""The engine's tables as a frozen e-graph, with the check that its classes make sense.

Two different numbers in one class, or a matrix equal to a vector, tell that some rule is unsound: that is the user's
to mend, before anything is planned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Term
from bbrewrite.egraph.canary import check_classes
from bbrewrite.egraph.engine import Engine
from bbrewrite.egraph.program import SpelledProgram
from bbrewrite.egraph.view import EClass, ENode, FrozenGraph, SaturationReport
from bbrewrite.egraph.vocabulary import placeholder_head
from bbrewrite.rules.rules import FACTS

if TYPE_CHECKING:
    from egglog.bindings import EGraph, Value

_FACTS = frozenset({"constant", "scalar", *FACTS})


def freeze(
    engine: Engine,
    spelled: SpelledProgram,
    roots: Mapping[str, Term],
    indices: IndexTable,
    tensors: Mapping[str, Tensor],
    table: OperatorTable,
) -> FrozenGraph:
    """The classes that the roots reach. Raises UnsoundRules (see `canary.py`)."""
    tables = _Tables(engine.graph, spelled)
    found = {name: tables.globals[spelled.globals[term]] for name, term in roots.items()}
    reached = tables.reached(found.values())
    numbers = {value: number for number, value in enumerate(reached)}
    classes = {
        numbers[value]: EClass(
            tuple(ENode(head, tuple(numbers[child] for child in children)) for head, children in tables.nodes[value]),
            tables.free[value],
            frozenset(fact for fact, proved in tables.facts.items() if value in proved),
        )
        for value in reached
    }
    classes = check_classes(classes, indices, tensors, table, engine.counts)
    nodes = sum(len(found.nodes) for found in classes.values())
    report = SaturationReport(nodes, len(classes), engine.iterations, engine.stopped_by, engine.counts)
    return FrozenGraph(classes, {name: numbers[value] for name, value in found.items()}, report)


class _Tables:
    """The engine's rows, decoded."""

    def __init__(self, engine: EGraph, spelled: SpelledProgram) -> None:
        self.nodes: dict[Value, list[tuple[Term, tuple[Value, ...]]]] = {}
        self.free: dict[Value, frozenset[str]] = {}
        self.facts: dict[str, set[Value]] = {}
        self.globals: dict[str, Value] = {}
        self._engine = engine
        self._spelled = spelled
        for name, function in sorted(engine.freeze().functions.items()):
            if function.is_let_binding:
                self.globals[name] = function.rows[0].output
            elif name == "free":
                for row in function.rows:
                    self.free[row.inputs[0]] = self._index_names(row.output)
            elif name in _FACTS:
                self.facts[name] = {row.inputs[0] for row in function.rows}
            elif function.output_sort == "Term":
                for row in function.rows:
                    self._add_node(name, function.input_sorts, row.inputs, row.output)
        for nodes in self.nodes.values():
            if len(nodes) > 1:
                nodes.sort(key=lambda node: repr(node[0]))

    def reached(self, roots: Iterable[Value]) -> list[Value]:
        """Every class that the roots lead to, each after the one that leads to it first."""
        order: dict[Value, None] = {}
        waiting = list(roots)
        while waiting:
            value = waiting.pop()
            if value in order:
                continue
            order[value] = None
            waiting.extend(child for _, children in reversed(self.nodes[value]) for child in reversed(children))
        return list(order)

    def _add_node(self, name: str, sorts: list[str], inputs: list[Value], output: Value) -> None:
        children = tuple(value for value, sort in zip(inputs, sorts, strict=True) if sort == "Term")
        values = tuple(self._attribute(v, sort) for v, sort in zip(inputs, sorts, strict=True) if sort != "Term")
        head = placeholder_head(name, values, self._spelled.reads, self._spelled.addresses, len(children))
        self.nodes.setdefault(output, []).append((head, children))

    def _attribute(self, value: Value, sort: str) -> object:
        if sort == "i64":
            return self._spelled.index_names[self._engine.value_to_i64(value)]
        if sort == "f64":
            return self._engine.value_to_f64(value)
        return self._engine.value_to_string(value)

    def _index_names(self, mask: Value) -> frozenset[str]:
        wide = self._spelled.masks.sort == "BigInt"
        bits = self._engine.value_to_bigint(mask) if wide else self._engine.value_to_i64(mask)
        return frozenset(name for position, name in enumerate(self._spelled.index_names) if bits >> position & 1)
