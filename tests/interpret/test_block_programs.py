"""The block executor on terms that lowering never makes but rules do: nested lists, pairs, monoids, odd reads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from bbrewrite.core.addresses import Address, index_address, make_address
from bbrewrite.core.elements import Element
from bbrewrite.core.indices import Index, IndexTable
from bbrewrite.core.operators import Monoid, ScalarFunction
from bbrewrite.core.programs import BlockProgram, Definition, Role, Tensor
from bbrewrite.core.terms import (
    Apply,
    At,
    Component,
    IndexValue,
    Loaded,
    Local,
    Map,
    Number,
    Pair,
    Read,
    Reduce,
    Stored,
    Term,
)
from bbrewrite.interpret.block_programs import TermValues, run_block_program
from tests.array_programs import TABLE

M, N = 7, 5
X = np.random.default_rng(0).normal(size=(M, N))
TENSORS = (Tensor("X", ("m", "n"), Element.F64, Role.INPUT),)


def read(tensor: str, *names: str) -> Term:
    return Read(tensor, tuple(map(index_address, names)))


def apply(operator: str, *operands: Term) -> Apply:
    return Apply(operator, operands)


def at(items: Term, *addresses: str | Address) -> Term:
    for address in addresses:
        items = At(items, index_address(address) if isinstance(address, str) else address)
    return items


def run(term: Term, indices: str, table: Any = TABLE, blocks: tuple[int, int] = (3, 2)) -> np.ndarray[Any, Any]:
    entries = [
        Index("m", M, block=blocks[0]),
        Index("n", N, block=blocks[1]),
        Index("p", None, "m"),
        Index("s", None, "m", block=4),
    ]
    output = Tensor("Y", tuple(indices.split()), Element.F64, Role.OUTPUT)
    program = BlockProgram("test", IndexTable.of(entries), TENSORS, (), (Definition(output, term),))
    return run_block_program(program, {"X": X}, {"m": M, "n": N}, table)["Y"]


ROWS = Map("n", read("X", "m", "n"))


@pytest.mark.parametrize("blocks", [(1, 1), (3, 2), (7, 5), (64, 64)])
def test_a_list_made_and_read_inside_a_loop(blocks: tuple[int, int]) -> None:
    total = Reduce("sum", "n", (apply("row_sum", at(ROWS, "n")),))
    np.testing.assert_allclose(run(Map("m", total), "m", blocks=blocks), X.sum(1))


def test_a_list_of_partial_results_one_a_block() -> None:
    partial = Map("n", apply("row_max", read("X", "m", "n")))
    np.testing.assert_allclose(run(Map("m", Reduce("max", "n", (at(partial, "n"),))), "m"), X.max(1))


def test_a_nested_list_read_at_expressions() -> None:
    items = Map("m", Map("n", read("X", "m", "n")))
    shifted = at(items, make_address([("m", 1)], offset=1), make_address([("n", -1)], [("n", 1)], -1))
    expected = np.vstack([X[1:], np.zeros((1, N))])[:, ::-1]
    np.testing.assert_allclose(run(Map("m", Map("n", shifted)), "m n"), expected)


def test_a_nested_list_read_at_crossed_names() -> None:
    square = apply("dot", read("X", "m", "n"), read("X", "s", "n"))
    items = Map("m", Map("s", Reduce("sum", "n", (square,))))
    expected = X @ X.T + np.arange(M)
    crossed = at(Map("m", Map("s", apply("col_shift", at(items, "m", "s"), IndexValue("s")))), "s", "m")
    np.testing.assert_allclose(run(Map("s", Map("m", crossed)), "s m"), expected)
    back = make_address([("s", -1)], [("m", 1)], -1), make_address([("m", -1)], [("m", 1)], -1)
    backwards = at(Map("m", Map("s", apply("col_shift", at(items, "m", "s"), IndexValue("s")))), *back)
    np.testing.assert_allclose(run(Map("s", Map("m", backwards)), "s m"), expected[::-1, ::-1])


def test_a_list_read_at_a_point_and_under_another_block_size() -> None:
    vectors = Map("m", apply("row_sum", read("X", "m", "n")))
    by_points = Map("p", Reduce("sum", "n", (at(vectors, "p"),)))
    np.testing.assert_allclose(run(by_points, "p"), X.sum(1))
    by_other_blocks = Map("s", Reduce("sum", "n", (at(vectors, "s"),)))
    np.testing.assert_allclose(run(by_other_blocks, "s"), X.sum(1))


def test_a_list_over_points_read_at_a_division() -> None:
    sums = Map("p", Reduce("sum", "n", (apply("sum_of", read("X", "p", "n")),)))
    halved = Map("p", at(sums, make_address([("p", 1)], divisor=2)))
    np.testing.assert_allclose(run(halved, "p"), X.sum(1)[np.arange(M) // 2])


def test_pairs_of_blocks_and_of_lists() -> None:
    pair = Pair(apply("row_sum", read("X", "m", "n")), apply("row_max", read("X", "m", "n")))
    pairs = Map("n", pair)
    low = Reduce("sum", "n", (at(Component(0, pairs), "n"),))
    high = Reduce("max", "n", (at(Component(1, pairs), "n"),))
    both = Map("m", apply("multiply", low, high))
    np.testing.assert_allclose(run(both, "m"), X.sum(1) * X.max(1))
    lists = Pair(Map("m", low), Map("m", high))
    np.testing.assert_allclose(run(Component(1, lists), "m"), X.max(1))


def test_a_scalar_stored_by_itself() -> None:
    total = Reduce("sum", "m", (apply("sum_of", Reduce("sum", "n", (apply("row_sum", read("X", "m", "n")),))),))
    product = apply("multiply", read("X", "m", "n"), Loaded(Stored(total)))
    scaled = Map("m", Reduce("max", "n", (apply("row_max", product),)))
    np.testing.assert_allclose(run(scaled, "m"), (X * X.sum()).max(1))
    np.testing.assert_allclose(run(Stored(total), ""), X.sum())


def online_softmax(table: Any) -> Any:
    """The monoid of a running maximum and a rescaled sum, with a user's function in it."""
    a, b = Local("a"), Local("b")
    difference = apply("exp", apply("subtract", a, b))
    body = apply("where", apply("equal", a, b), Number(1.0), difference)
    weight = ScalarFunction("weight", 2, "float", 1, parameters=("a", "b"), body=body)
    table = table.with_function(weight)
    m1, s1, m2, s2 = (Local(name) for name in ("m1", "s1", "m2", "s2"))
    m = apply("maximum", m1, m2)
    rescaled = [apply("multiply", s, apply("weight", old, m)) for s, old in ((s1, m1), (s2, m2))]
    return table.with_monoid(
        Monoid(
            "lse",
            ("m", "s"),
            (-math.inf, 0.0),
            ("x",),
            (Local("x"), Number(1.0)),
            ("m1", "s1"),
            ("m2", "s2"),
            (m, apply("add", *rescaled)),
            apply("add", Local("m"), apply("log", Local("s"))),
        )
    )


def test_a_users_monoid_with_two_components() -> None:
    table = online_softmax(TABLE)
    by_columns = Map("n", Reduce("lse", "p", (read("X", "p", "n"),)))
    np.testing.assert_allclose(run(by_columns, "n", table), np.log(np.exp(X).sum(0)))


def test_an_inner_loop_over_the_same_name_is_another_loop() -> None:
    inner = Reduce("sum", "m", (apply("sum_of", Reduce("sum", "n", (apply("row_sum", read("X", "m", "n")),))),))
    outer = Map("m", apply("multiply", Reduce("sum", "n", (apply("row_sum", read("X", "m", "n")),)), inner))
    np.testing.assert_allclose(run(outer, "m"), X.sum(1) * X.sum())


def test_values_that_are_kept_are_those_of_their_own_points() -> None:
    """Of terms that share terms, at points in any order and again."""
    shifted = apply(
        "row_shift", read("X", "m", "n"), apply("negate", Reduce("max", "n", (apply("row_max", read("X", "m", "n")),)))
    )
    terms = [shifted, Map("m", shifted), Reduce("sum", "n", (apply("row_sum", shifted),)), shifted.operands[1]]
    table = IndexTable.of([Index("m", M, block=3), Index("n", N, block=2), Index("p", None, "m")])
    tensors = {tensor.name: tensor for tensor in TENSORS}
    kept = TermValues(table, tensors, {"X": X}, TABLE)
    points = [{"m": m, "n": n} for m, n in [(0, 0), (1, 0), (0, 2), (2, 1), (1, 0), (0, 0)]]
    seen = set[str]()
    for point in points:
        for term in terms:
            found, expected = kept.of(term, point), TermValues(table, tensors, {"X": X}, TABLE).of(term, point)
            assert str(found) == str(expected)
            seen.add(str(found))
    assert len(seen) > len(points)
