"""The evaluator against the interpreter's block operators, and what it does with loops, lists and scopes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from bbrewrite.core.elements import Element
from bbrewrite.core.operators import builtin_table
from bbrewrite.core.spans import Source
from bbrewrite.core.terms import Local
from bbrewrite.core.types import BlockType
from bbrewrite.fuzz.evaluate import Evaluator, ExactDomain, apply_operator
from bbrewrite.fuzz.instances import IndexInstance, Instance, Variable
from bbrewrite.fuzz.plans import claims
from bbrewrite.fuzz.shapes import Shapes, Symbols
from bbrewrite.interpret.block_operators import apply_operator as interpreted
from bbrewrite.rules.load import parse_rules

TABLE = builtin_table()
STRUCTURED = [name for name, operator in TABLE.operators.items() if not operator.is_elementwise]
LENGTHS = {"r": 2, "c": 3, "k": 4}


@pytest.mark.parametrize("name", STRUCTURED)
def test_block_operators_agree_with_the_interpreter(name: str) -> None:
    operator = TABLE.operators[name]
    generator = np.random.default_rng(0)
    lengths = (5,) * operator.index_count
    for signature in operator.signatures:
        shapes = [tuple(LENGTHS[letter] for letter in letters) for letters in signature.operands]
        arrays = [generator.integers(-3, 4, shape).astype(float) for shape in shapes]
        exact = [np.vectorize(Fraction, otypes=[object])(array) for array in arrays]
        found = apply_operator(TABLE, ExactDomain(), operator, exact, lengths)
        expected = interpreted(TABLE, operator, arrays, [Element.F64] * len(arrays), lengths)
        assert found.shape == expected.shape
        assert np.array_equal(found.astype(float), expected)


def value(text: str, instance: Instance) -> object:
    """The left side of a rule on an instance."""
    rules = parse_rules([Source("t.rules", f"rule t\n    {text} => 0\n")])
    ((left, _),) = claims(rules.rules[0])[0].sides
    shapes = Shapes(rules.table, {name: v.type for name, v in instance.variables.items()}, Symbols())
    shapes.of(left)
    found = Evaluator(rules.table, ExactDomain(), instance, shapes).value(left, instance.outer)
    return found.tolist() if isinstance(found, np.ndarray) else [item.tolist() for item in found]


def scalar(number: int) -> np.ndarray:
    return np.array(Fraction(number), dtype=object)


def instance(extent: int, block: int | None = None, outer: int = 0) -> Instance:
    """x = 1, 2, 3, ... by the position of i, and c = 10."""
    index = IndexInstance(extent, block)
    kind = BlockType((), Element.F64)
    x = Variable(kind, ("i",), {(k,): scalar(k + 1) for k in range(max(1, index.trips))})
    return Instance({"i": index}, {"i": outer}, {}, {"x": x, "c": Variable(kind, (), {(): scalar(10)})})


def test_loops_and_their_extents() -> None:
    assert value("reduce(sum, i, x * c)", instance(3)) == 60
    assert value("reduce(sum, i, x)", instance(0)) == 0
    assert value("reduce(max, i, x)", instance(0)) == -np.inf
    assert value("reduce(prod, i, x) * size(i)", instance(5, block=2)) == 30  # three blocks, five elements


def test_a_variable_outside_its_loop_has_the_outer_position() -> None:
    assert value("reduce(sum, i, x) + x", instance(3, outer=2)) == 9
    assert value("at(map(i, x), i)", instance(3, outer=1)) == 2
    assert value("map(i, x + c)", instance(2)) == [11, 12]


def test_the_last_block_is_shorter() -> None:
    index = IndexInstance(5, 2)
    assert [index.length(k) for k in range(index.trips)] == [2, 2, 1]
    rules = parse_rules([Source("t.rules", "rule t\n    reduce(sum, i, sum_of(row_spread(c, i))) => 0\n")])
    ((left, _),) = claims(rules.rules[0])[0].sides
    given = instance(5, block=2)
    shapes = Shapes(rules.table, {"c": BlockType((), Element.F64)}, Symbols())
    shapes.of(left)
    assert Evaluator(rules.table, ExactDomain(), given, shapes).block(left, given.outer)[()] == 50
    assert Local("c") in shapes.known
