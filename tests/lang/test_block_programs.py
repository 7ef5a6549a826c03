"""Block programs: parsing, spreads, printing, and round trips of generated programs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bbrewrite.core.addresses import index_address, make_address
from bbrewrite.core.elements import Element, stored_element
from bbrewrite.core.indices import Index, IndexTable
from bbrewrite.core.operators import Monoid
from bbrewrite.core.printing import print_block_program, print_term
from bbrewrite.core.programs import BlockProgram, Definition, Role, Tensor
from bbrewrite.core.spans import Source
from bbrewrite.core.terms import (
    Apply,
    At,
    Cast,
    Component,
    IndexValue,
    Local,
    Map,
    Number,
    Pair,
    Read,
    Reduce,
    Size,
    Term,
)
from bbrewrite.core.types import Typing
from bbrewrite.lang.programs import parse_program

from .texts import BLOCK_ATTENTION, TABLE, block_program

_INDICES = IndexTable.of(
    [Index("m", 8, None, 4), Index("n", None, None, 4), Index("k", 6, None, 3), Index("e", None, "m", 4), Index("h", 2)]
)
_INPUTS = (
    Tensor("X", ("m", "n"), Element.F32, Role.INPUT),
    Tensor("K", ("h", "k", "n"), Element.F16, Role.INPUT),
    Tensor("v", ("m",), Element.F32, Role.WEIGHT),
    Tensor("s", (), Element.F32, Role.INPUT),
)
_HEAD = """block program p
index m = 8 by 4, n by 4, k = 6 by 3, e = m by 4, h = 2
input X[m, n] : f32
input K[h, k, n] : f16
weight v[m] : f32
input s : f32
"""


def _read(tensor: str, *names: str) -> Read:
    return Read(tensor, tuple(index_address(name) for name in names))


def _body(text: str) -> Term:
    return block_program(f"{_HEAD}output O = {text}\n").definitions[0].body


def test_attention_prints_as_it_is_written() -> None:
    assert print_block_program(block_program(BLOCK_ATTENTION), TABLE) == BLOCK_ATTENTION


def test_attention() -> None:
    program = block_program(BLOCK_ATTENTION)
    scores = Reduce("sum", "d", (Apply("dot", (_read("Q", "m", "d"), _read("K", "n", "d"))),))
    body = Apply("divide", (scores, Apply("sqrt", (Size("d"),))))
    assert program.definitions[0].term == Map("m", Map("n", body))
    assert program.tensor("c").indices == ("m",)
    assert program.indices["m"].block == 64
    assert program.outputs == (program.tensor("O"),)


def test_index_values_spread_beside_a_matrix() -> None:
    rows = Apply("row_spread", (IndexValue("m"),), ("n",))
    columns = Apply("col_spread", (IndexValue("n"),), ("m",))
    masked = Apply("where", (Apply("less_equal", (columns, rows)), _read("X", "m", "n"), Number(0)))
    assert _body("map m: map n: where(n <= m, X[m, n], 0)") == masked
    across = Apply("row_spread", (IndexValue("n"),), ("m",))
    assert _body("map n: map m: transpose(X[m, n]) * n") == Apply(
        "multiply", (Apply("transpose", (_read("X", "m", "n"),)), across)
    )


def test_index_values_alone_spread_in_the_order_of_the_loops() -> None:
    in_order = Apply(
        "less", (Apply("row_spread", (IndexValue("m"),), ("n",)), Apply("col_spread", (IndexValue("n"),), ("m",)))
    )
    assert _body("map m: map n: m < n") == in_order
    swapped = Apply(
        "less", (Apply("col_spread", (IndexValue("m"),), ("n",)), Apply("row_spread", (IndexValue("n"),), ("m",)))
    )
    assert _body("map n: map m: m < n") == swapped
    printed = print_block_program(
        block_program(f"{_HEAD}output O = map n: map m: transpose(row_spread(m, n) + col_spread(n, m))\n"), TABLE
    )
    assert "transpose(row_spread(m, n) + col_spread(n, m))" in printed


def test_index_values_of_vectors_and_points_do_not_spread() -> None:
    assert _body("map m: v[m] + m") == Apply("add", (_read("v", "m"), IndexValue("m")))
    assert _body("map h: map m: map n: X[m, n] + h") == Apply("add", (_read("X", "m", "n"), IndexValue("h")))


def test_a_scalar_fills_the_blocks_it_is_stored_to() -> None:
    filled = Apply("row_spread", (Apply("row_spread", (Read("s"),), ("m",)),), ("n",))
    assert _body("map m: map h: map n: s") == filled
    assert _body("map h: s") == Read("s")


def test_element_types() -> None:
    text = (
        "A = map h: map k: map n: K[h, k, n] / 2\nB : bf16 = map m: v[m]\nC = map m: m\noutput O = map m: f16(v[m])\n"
    )
    program = block_program(_HEAD + text)
    assert [d.tensor.element.value for d in program.definitions] == ["f16", "bf16", "i32", "f16"]
    assert print_block_program(program, TABLE) == _HEAD + text


def test_fused_forms() -> None:
    fused = "output O = map m: (reduce sum n: row_sum((map e: map n: X[e, n])[m, n])) * first(pair(v[m], 2))\n"
    assert print_block_program(block_program(_HEAD + fused), TABLE) == _HEAD + fused
    body = _body("map m: (map e: map n: row_sum(X[e, n]))[m, 0]")
    assert body == At(
        At(Map("e", Map("n", Apply("row_sum", (_read("X", "e", "n"),)))), index_address("m")), make_address([])
    )


def test_stored_scalars() -> None:
    text = _HEAD + "T = stored(reduce sum m: sum_of(v[m]))\noutput O = map m: v[m] / loaded(stored(s + 1))\n"
    program = block_program(text)
    assert program.tensor("T").indices == ()
    assert print_block_program(program, TABLE) == text


def test_monoids_of_several_operands() -> None:
    element, combine = (Local("x"), Local("y")), (Local("a"), Local("d"))
    merge = Monoid("merge", ("m", "t"), (0.0, 0.0), ("x", "y"), element, ("a", "b"), ("c", "d"), combine, Local("t"))
    table = TABLE.with_monoid(merge)
    text = _HEAD + "output O = map m: reduce merge n: (row_sum(X[m, n]), v[m])\n"
    program = parse_program(Source("p.bb", text), table)
    assert isinstance(program, BlockProgram)
    assert isinstance(program.definitions[0].body, Reduce)
    assert len(program.definitions[0].body.operands) == 2
    assert print_block_program(program, table) == text


@pytest.mark.parametrize(
    ("term", "text"),
    [
        (Apply("multiply", (Reduce("sum", "n", (Local("x"),)), Number(2))), "(reduce sum n: x) * 2"),
        (Apply("negate", (Number(3),)), "-(3)"),
        (Apply("negate", (Number(-3),)), "--3"),
        (Apply("power", (Number(-3), Number(-2))), "(-3)^-2"),
        (Apply("subtract", (Number(1), Number(-1e-6))), "1 - -1e-6"),
        (Apply("not", (Apply("less", (Local("a"), Local("b"))),)), "not a < b"),
        (
            Apply("add", (Apply("add", (Local("a"), Local("b"))), Apply("add", (Local("c"), Local("d"))))),
            "a + b + (c + d)",
        ),
        (At(Component(0, Local("p")), index_address("m")), "first(p)[m]"),
        (Local("acc", ("m", "n")), "acc[m, n]"),
        (Cast("f16", Number(float("inf"))), "f16(inf)"),
    ],
)
def test_printed_terms(term: Term, text: str) -> None:
    assert print_term(term, TABLE) == text


def test_shared_terms_are_printed_once() -> None:
    term: Term = Local("x")
    for _ in range(18):
        term = Apply("maximum", (term, term))
    assert print_term(term, TABLE).count("x,") == 2**17


# Generated programs: blocks of one shape, under loops over h, m and n.

_LEAVES: dict[str, list[Term]] = {
    "scalar": [
        *(Number(value) for value in (0.0, 1.0, -3.0, 0.5, -1e-6, 1e20, float("inf"), float("-inf"))),
        Size("n"),
        Read("s"),
        IndexValue("h"),
    ],
    "vector": [
        _read("v", "m"),
        IndexValue("m"),
        Read("v", (make_address([("m", 1)], [], 1),)),
        Reduce("max", "n", (Apply("row_max", (_read("X", "m", "n"),)),)),
        At(Map("e", _read("v", "e")), index_address("m")),
    ],
    "matrix": [
        _read("X", "m", "n"),
        Read("X", (make_address([("m", 1)], [], 0, 2), make_address([("n", -1)], [("n", 1)], -1))),
        Apply("row_spread", (IndexValue("m"),), ("n",)),
        Apply("col_spread", (IndexValue("n"),), ("m",)),
        Apply("row_spread", (_read("v", "m"),), ("n",)),
        Apply("row_spread", (Apply("add", (IndexValue("m"), Number(1))),), ("n",)),
        Reduce(
            "sum",
            "k",
            (Apply("outer", (_read("v", "m"), Apply("col_sum", (_read("K", "h", "k", "n"),)))),),
        ),
    ],
}
_BINARY = ["add", "subtract", "multiply", "divide", "power", "maximum", "less", "equal", "and", "or"]


@st.composite
def _terms(draw: st.DrawFn, shape: str, depth: int) -> Term:
    """A well-typed block of that shape."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from(_LEAVES[shape]))

    def operand(of: str = shape) -> Term:
        return draw(_terms(of, depth - 1))

    def beside() -> Term:
        # Numbers and scalar blocks stand beside blocks of any shape.
        return operand(draw(st.sampled_from([shape, shape, "scalar"])))

    match draw(st.integers(0, 9 if shape == "matrix" else 6)):
        case 0:
            return Apply(draw(st.sampled_from(["negate", "not", "exp"])), (operand(),))
        case 1 | 2:
            pair = draw(st.permutations([operand(), beside()]))
            return Apply(draw(st.sampled_from(_BINARY)), tuple(pair))
        case 3:
            return Apply("where", tuple(draw(st.permutations([operand(), beside(), beside()]))))
        case 4:
            return Cast(draw(st.sampled_from(["f16", "f64", "bool"])), operand())
        case 5:
            return Component(draw(st.integers(0, 1)), Pair(operand(), operand()))
        case 6:
            return Reduce("sum", "k", (operand(),))
        case 7:
            return Apply(draw(st.sampled_from(["row_scale", "row_shift"])), (operand(), operand("vector")))
        case 8:
            return Apply("transpose", (Apply("transpose", (operand(),)),))
        case _:
            return At(Map("n", operand()), index_address("n"))


def _check_round_trip(term: Term, names: tuple[str, ...], declared: Element | None) -> None:
    for name in reversed(names):
        term = Map(name, term)
    tensor = Tensor("O", names, Element.F32, Role.OUTPUT)
    program = BlockProgram("p", _INDICES, _INPUTS, (), (Definition(tensor, term),))
    inferred = Typing(TABLE, _INDICES, program.tensors).block(program.definitions[0].body).element
    tensor = replace(tensor, element=declared or stored_element(inferred))
    program = replace(program, definitions=(Definition(tensor, term),))
    text = print_block_program(program, TABLE)
    assert block_program(text) == program
    assert print_block_program(block_program(text), TABLE) == text


@settings(max_examples=400, deadline=None, derandomize=True)
@given(_terms("matrix", 4), st.booleans(), st.sampled_from([None, Element.BF16]))
def test_generated_matrices_come_back(term: Term, transposed: bool, declared: Element | None) -> None:
    if transposed:
        _check_round_trip(Apply("transpose", (term,)), ("h", "n", "m"), declared)
    else:
        _check_round_trip(term, ("h", "m", "n"), declared)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(_terms("vector", 4))
def test_generated_vectors_come_back(term: Term) -> None:
    _check_round_trip(term, ("h", "m"), None)
