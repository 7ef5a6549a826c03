"""Checks that two terms are equal: evaluates both by the interpreter, at small random sizes and random inputs.

Everything is computed in double precision, where casts between floats do not round. The check is that of the rule
language: wherever the left side is a number the right side is the same one.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from bbrewrite.core.elements import Element
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import BlockProgram, Tensor
from bbrewrite.core.terms import Cast, Number, Size, Term, rewrite_bottom_up, walk
from bbrewrite.explain.conditions import comparison_holds
from bbrewrite.explain.derivation import Step
from bbrewrite.explain.replay import Instance
from bbrewrite.inputs import draw_inputs
from bbrewrite.interpret.block_programs import BlockList, TermValues, Value, ValuePair
from bbrewrite.rules.rules import Comparison

CASES = 3
# Cases of growing sizes are tried until the comparisons of extents in a rule's conditions hold.
_MOST_CASES = 24
_BLOCK = 2
_TOLERANCE = 1e-8


@dataclass(frozen=True)
class Verdict:
    """What evaluation said: `compared` entries, and where they differ the two values and the sizes.

    Nothing compared is no confirmation: every entry was undefined, or no small sizes meet the rule's conditions.
    """

    compared: int
    difference: tuple[float, float] | None = None
    sizes: Mapping[str, int] | None = None

    @property
    def agrees(self) -> bool:
        return self.compared > 0 and self.difference is None

    @property
    def differs(self) -> bool:
        return self.difference is not None


@dataclass(frozen=True)
class _Case:
    indices: IndexTable
    values: TermValues
    seed: int


class StepChecker:
    """Checks steps of derivations of one program. `indices` are those of its inlined terms."""

    def __init__(self, program: BlockProgram, indices: IndexTable, table: OperatorTable) -> None:
        self._program = program
        self._indices = indices
        self._table = table
        self._cases: dict[int, _Case] = {}

    def check(self, step: Step) -> Verdict:
        """Whether the sides of a step agree."""
        left, right = step.instance.left, step.instance.right
        compared = tried = 0
        for seed in range(_MOST_CASES):
            case = self._case(seed)
            if not _sizes_fit(step.instance, case.indices):
                continue
            verdict = self.compare(left, right, case)
            if verdict.differs:
                return verdict
            compared += verdict.compared
            tried += 1
            if tried == CASES:
                break
        return Verdict(compared)

    def compare(self, left: Term, right: Term, case: _Case) -> Verdict:
        """Evaluates both terms at one random point of their loops."""
        generator = np.random.default_rng([case.seed, 1])
        sizes = {index.name: case.indices.extent(index.name) or 0 for index in case.indices}
        point = {
            index.name: int(generator.integers(0, -(-sizes[index.name] // (index.block or 1))))
            for index in case.indices
        }
        values = [case.values.of(_exact(term), point) for term in (left, right)]
        compared = 0
        for one, other in _paired(*map(_entries, values)):
            if np.isnan(one):
                continue  # undefined on the left
            compared += 1
            if one != other and not abs(one - other) <= _TOLERANCE * (1 + abs(one)):
                shown = {name: size for name, size in sizes.items() if name in _indices_of(left) | _indices_of(right)}
                return Verdict(compared, (one, other), shown)
        return Verdict(compared)

    def _case(self, seed: int) -> _Case:
        if seed not in self._cases:
            indices = small_sizes(self._indices, seed)
            inputs = tuple(_in_double(tensor) for tensor in self._program.inputs)
            program = replace(self._program, indices=indices, inputs=inputs)
            extents = {index.name: index.extent or 0 for index in indices if index.same_as is None}
            arrays = draw_inputs(program, extents, seed, {})
            if seed % 2:
                # Half of the cases have positive numbers only, so that logarithms and roots are defined.
                arrays = {name: np.abs(a) if a.dtype.kind == "f" else a for name, a in arrays.items()}
            tensors = {tensor.name: tensor for tensor in inputs}
            self._cases[seed] = _Case(indices, TermValues(indices, tensors, arrays, self._table), seed)
        return self._cases[seed]


def small_sizes(indices: IndexTable, seed: int) -> IndexTable:
    """Small extents, equal where they were and nowhere else, in blocks of 2 so that most are ragged; 1 stays 1.

    Point loops, which cost the most to interpret, get the smallest.
    """
    generator = np.random.default_rng([seed, 0])
    points = {indices.extent(index.name) for index in indices if index.block is None}
    others = list(dict.fromkeys(index.extent for index in indices if index.same_as is None and index.extent != 1))
    order = sorted((int(k) for k in generator.permutation(len(others))), key=lambda k: others[k] not in points)
    small: dict[int | None, int] = {others[k]: size for size, k in enumerate(order, 2 + seed // CASES)}
    return IndexTable.of(
        [
            replace(
                index,
                extent=small.get(index.extent, 1) if index.same_as is None else None,
                block=None if index.block is None else _BLOCK,
            )
            for index in indices
        ]
    )


def _sizes_fit(instance: Instance, indices: IndexTable) -> bool:
    """Whether the rule's conditions on extents hold at these sizes."""

    def number(name: str) -> float | None:
        value = instance.values[name]
        return value.value if isinstance(value, Number) else None

    def extent(index: str) -> float | None:
        return indices.extent(instance.binding.indices[index])

    return all(
        comparison_holds(condition.term, number, extent)
        for condition in instance.rule.conditions
        if isinstance(condition, Comparison) and any(isinstance(node, Size) for node in walk(condition.term))
    )


def _in_double(tensor: Tensor) -> Tensor:
    return replace(tensor, element=Element.F64) if tensor.element.is_float else tensor


def _exact(term: Term) -> Term:
    """The term with casts to floats that do not round."""

    def change(node: Term) -> Term:
        return Cast("f64", node.value) if isinstance(node, Cast) and Element(node.element).is_float else node

    return rewrite_bottom_up(term, change)


def _entries(value: Value) -> list[float]:
    """All entries in one order, whether a value is a pair of lists or a list of pairs: these are equal."""
    return list(itertools.chain.from_iterable(_sides(value)))


def _sides(value: Value) -> list[list[float]]:
    """The entries of each side of nested pairs."""
    match value:
        case BlockList(_, items):
            sides = zip(*map(_sides, items), strict=True)
            return [list(itertools.chain.from_iterable(side)) for side in sides]
        case ValuePair(first, second):
            return [*_sides(first), *_sides(second)]
        case _:
            return [[float(entry) for entry in np.asarray(value).ravel()]]


def _paired(left: list[float], right: list[float]) -> list[tuple[float, float]]:
    """Entries side by side; a single number stands for a block."""
    length = max(len(left), len(right))
    sides = (side * length if len(side) == 1 else side for side in (left, right))
    return list(zip(*sides, strict=True))


def _indices_of(term: Term) -> frozenset[str]:
    names: set[str] = set()
    for node in walk(term):
        names |= node.free | ({node.bound_index} if node.bound_index else set())
        if isinstance(node, Size):
            names.add(node.index)
    return frozenset(names)
