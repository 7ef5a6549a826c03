"""Inlining: every edge between definitions shows, under the right names, without capture."""

from __future__ import annotations

from bbrewrite.core.addresses import Address, index_address, make_address
from bbrewrite.core.indices import Index, IndexTable
from bbrewrite.core.operators import builtin_table
from bbrewrite.core.programs import BlockProgram, Role
from bbrewrite.core.terms import Apply, At, Loaded, Map, Read, Reduce, Stored, Term, walk
from bbrewrite.core.types import Typing
from bbrewrite.egraph.inline import inline
from tests.programs import apply, define, program, read, tensor, total


def table(**blocks: int | None) -> IndexTable:
    """Indices of one extent: the first is the root of the others."""
    names = list(blocks)
    return IndexTable.of(
        [Index(n, 256 if n == names[0] else None, None if n == names[0] else names[0], blocks[n]) for n in names]
    )


def checked(source: BlockProgram) -> tuple[dict[str, Term], IndexTable]:
    """The inlined program; every term is closed and has a type."""
    inlined = inline(source)
    for term in inlined.roots.values():
        assert not term.free
        Typing(builtin_table(), inlined.indices, source.tensors).of(term)
    return dict(inlined.roots), inlined.indices


def test_a_read_is_the_definitions_own_term() -> None:
    source = program(
        "p",
        table(m=64, n=64),
        [tensor("A", "m n", Role.INPUT)],
        [
            define("B", "m n", apply("exp", read("A", "m", "n"))),
            define("C", "m n", apply("log", read("B", "m", "n")), Role.OUTPUT),
        ],
    )
    roots, _ = checked(source)
    assert roots["C"] == Map("m", Map("n", apply("log", At(At(roots["B"], index_address("m")), index_address("n")))))


def test_a_list_read_under_other_names_is_instantiated() -> None:
    """Self-attention: X is computed, and read at two names."""
    source = program(
        "p",
        table(m=64, n=64, d=64),
        [tensor("A", "m d", Role.INPUT)],
        [
            define("X", "m d", apply("exp", read("A", "m", "d"))),
            define("S", "m n", total("d", apply("dot", read("X", "m", "d"), read("X", "n", "d"))), Role.OUTPUT),
        ],
    )
    roots, _ = checked(source)
    at_n = Map("n", Map("d", apply("exp", read("A", "n", "d"))))
    loads = {node for node in walk(roots["S"]) if isinstance(node, At) and isinstance(node.items, At)}
    assert loads == {
        At(At(roots["X"], index_address("m")), index_address("d")),
        At(At(at_n, index_address("n")), index_address("d")),
    }


def test_renaming_reaches_through_definitions() -> None:
    source = program(
        "p",
        table(m=64, n=64),
        [tensor("A", "m", Role.INPUT)],
        [
            define("B", "m", apply("exp", read("A", "m"))),
            define("C", "m", apply("log", read("B", "m"))),
            define("D", "n", read("C", "n"), Role.OUTPUT),
        ],
    )
    roots, _ = checked(source)
    b = Map("n", apply("exp", read("A", "n")))
    c = Map("n", apply("log", At(b, index_address("n"))))
    assert roots["D"] == Map("n", At(c, index_address("n")))


def test_bound_indices_are_renamed_where_they_would_capture() -> None:
    """B[m] sums over n; read at n, its own n has to be another."""
    source = program(
        "p",
        table(m=64, n=64),
        [tensor("A", "m n", Role.INPUT)],
        [
            define("B", "m", total("n", apply("row_sum", read("A", "m", "n")))),
            define("C", "n", read("B", "n"), Role.OUTPUT),
        ],
    )
    roots, indices = checked(source)
    fresh = total("n_", apply("row_sum", read("A", "n", "n_")))
    assert roots["C"] == Map("n", At(Map("n", fresh), index_address("n")))
    assert indices["n_"] == Index("n_", None, "m", 64)
    assert roots["B"] == Map("m", total("n", apply("row_sum", read("A", "m", "n"))))


def test_an_inner_binder_of_the_same_name_keeps_its_own() -> None:
    inner = total("n", apply("row_max", read("A", "m", "n")), "max")
    body = total("n", apply("row_sum", apply("row_shift", read("A", "m", "n"), inner)))
    source = program(
        "p",
        table(m=64, n=64, s=64),
        [tensor("A", "m n", Role.INPUT)],
        [define("B", "m", body), define("C", "n", read("B", "n"), Role.OUTPUT)],
    )
    roots, _ = checked(source)
    (outer,) = {node for node in walk(roots["C"]) if isinstance(node, Reduce) and node.monoid == "sum"}
    (largest,) = {node for node in walk(roots["C"]) if isinstance(node, Reduce) and node.monoid == "max"}
    assert outer.index == "n_"
    assert largest.free == {"n"}
    assert not roots["C"].free


def test_a_read_at_an_expression_keeps_the_list() -> None:
    shifted = make_address([("m", 1)], offset=-1)
    source = program(
        "p",
        table(m=64, n=64),
        [tensor("A", "m n", Role.INPUT)],
        [
            define("B", "m n", apply("exp", read("A", "m", "n"))),
            define("C", "m n", read("B", shifted, "n"), Role.OUTPUT),
        ],
    )
    roots, _ = checked(source)
    assert roots["C"] == Map("m", Map("n", At(At(roots["B"], shifted), index_address("n"))))


def test_a_diagonal_and_a_point_index_keep_the_list() -> None:
    source = program(
        "p",
        table(m=64, n=64, h=None),
        [tensor("A", "m n", Role.INPUT)],
        [
            define("B", "m n", apply("exp", read("A", "m", "n"))),
            define("C", "h n", read("B", "h", "n"), Role.OUTPUT),
            define("D", "m", total("n", apply("row_sum", read("B", "m", "n"))), Role.OUTPUT),
        ],
    )
    roots, _ = checked(source)
    assert roots["C"] == Map("h", Map("n", At(At(roots["B"], index_address("h")), index_address("n"))))


def test_scalars_are_stored_and_loaded() -> None:
    source = program(
        "p",
        table(m=64),
        [tensor("A", "m", Role.INPUT), tensor("lam", "", Role.INPUT)],
        [
            define("t", "", total("m", apply("sum_of", read("A", "m")))),
            define("u", "", apply("add", read("t"), read("lam")), Role.OUTPUT),
        ],
    )
    roots, _ = checked(source)
    assert roots["t"] == Stored(total("m", apply("sum_of", read("A", "m"))))
    assert roots["u"] == Stored(Apply("add", (Loaded(roots["t"]), Read("lam"))))


def test_a_binder_takes_the_name_that_a_list_was_made_under() -> None:
    """Softmax over n, summed over t: one loop, whatever the names."""
    source = program(
        "p",
        table(n=64, t=64, m=64, s=32),
        [tensor("A", "m n", Role.INPUT), tensor("V", "n", Role.INPUT)],
        [
            define("B", "m n", apply("exp", read("A", "m", "n"))),
            define("C", "m", total("t", apply("row_sum", apply("col_scale", read("B", "m", "t"), read("V", "t"))))),
            define("D", "m", total("s", apply("row_sum", read("B", "m", "s"))), Role.OUTPUT),
            define("E", "n", total("t", apply("row_sum", read("B", "n", "t"))), Role.OUTPUT),
        ],
    )
    roots, _ = checked(source)
    b = At(At(roots["B"], index_address("m")), index_address("n"))
    assert roots["C"] == Map("m", total("n", apply("row_sum", apply("col_scale", b, read("V", "n")))))
    assert isinstance(roots["D"], Map)
    assert roots["D"].body.bound_index == "s"  # of other blocks
    assert isinstance(roots["E"], Map)
    assert roots["E"].body.bound_index == "t"  # n is taken


def test_addresses_in_a_renamed_body_follow() -> None:
    half = Address((("m", 1),), divisor=2)
    source = program(
        "p",
        table(m=None, n=None),
        [tensor("A", "m", Role.INPUT)],
        [define("B", "m", read("A", half)), define("C", "n", read("B", "n"), Role.OUTPUT)],
    )
    roots, _ = checked(source)
    assert roots["C"] == Map("n", At(Map("n", read("A", Address((("n", 1),), divisor=2))), index_address("n")))
