"""What array programs mean: resolved forms, types, layout of the text, and printing."""

from __future__ import annotations

import pytest

from bbrewrite.core.addresses import Address, index_address
from bbrewrite.core.arrays import ArrayDefinition, Call, Element, Fold, LibraryCall, Literal, Position, SizeOf
from bbrewrite.core.elements import Element as ElementType
from bbrewrite.core.indices import Index
from bbrewrite.core.programs import Assumption, Role
from bbrewrite.lang.format_array import print_array_program

from .golden_files import check_golden
from .texts import ATTENTION, LAYERS, RMSNORM_SWIGLU, TABLE, array_program

_HEAD = """program p
index m = 8, n = 8, k = 3, h = 4, g = 2, j, q = j
input X[m, k], Y[m, n], G[g, n], s : f32, mask[n] : i32, c[m] : bool, x16[m], y16[m] : f16, b16[m] : bf16, z64 : f64
"""


def _definition(text: str) -> ArrayDefinition:
    return array_program(_HEAD + text + "\noutput last = s\n").definitions[-2]


def _read(tensor: str, *names: str) -> Element:
    return Element(tensor, tuple(index_address(name) for name in names))


def test_attention() -> None:
    program = array_program(ATTENTION)
    assert program.name == "attention"
    assert list(program.indices) == [
        Index("m", 4096, None, 64),
        Index("n", 4096, None, 64),
        Index("d", 64),
        Index("l", 64),
    ]
    assert [index.block_is_fixed for index in program.indices] == [True, True, False, False]
    scores, weights, output = program.definitions
    product = Call("multiply", (_read("Q", "m", "d"), _read("K", "n", "d")))
    assert scores.expression == Call("divide", (Fold("sum", ("d",), product), Call("sqrt", (SizeOf("d"),))))
    assert weights.expression == LibraryCall("softmax", ("n",), _read("S", "m", "n"))
    assert [d.tensor.role for d in program.definitions] == [Role.BUFFER, Role.BUFFER, Role.OUTPUT]
    assert output.tensor.element is ElementType.F32


def test_an_index_with_the_extent_of_another() -> None:
    program = array_program(RMSNORM_SWIGLU)
    assert program.indices["e"] == Index("e", None, "d")
    assert program.indices.extent("e") == 1024
    assert [tensor.role for tensor in program.inputs] == [Role.INPUT] + [Role.WEIGHT] * 4


def test_the_root_of_a_chain_of_extents() -> None:
    program = array_program("program p\nindex a, b = a, c = b\ninput X[a] : f32\noutput O[c] = X[c]\n")
    assert program.indices["c"].same_as == "a"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("m", index_address("m")),
        ("m + 1", Address((("m", 1),), (), 1)),
        ("2 - m", Address((("m", -1),), (), 2)),
        ("size(n) - 1 - m", Address((("m", -1),), (("n", 1),), -1)),
        ("m / 4", Address((("m", 1),), (), 0, 4)),
        ("m / 2 / 2", Address((("m", 1),), (), 0, 4)),
        ("m / 2 + 1", Address((("m", 1),), (), 2, 2)),
        ("1 + (m - 1) / 2", Address((("m", 1),), (), 1, 2)),
        ("(2 * m + 1) / 2", index_address("m")),
        ("3 * (m - k) + k", Address((("k", -2), ("m", 3)))),
        ("m - m + 3", Address((), (), 3)),
        ("7 / 2", Address((), (), 3)),
    ],
)
def test_addresses(text: str, expected: Address) -> None:
    assert _definition(f"A[m, k] = Y[{text}, m]").expression == Element("Y", (expected, index_address("m")))


@pytest.mark.parametrize(
    ("expression", "element"),
    [
        ("x16[m] * y16[m]", "f16"),
        ("x16[m] * b16[m]", "f32"),
        ("x16[m] * s", "f32"),
        ("s + z64", "f64"),
        ("x16[m] / sqrt(size(k))", "f16"),
        ("x16[m] * 0.5 + 1", "f16"),
        ("x16[m] * m", "f16"),
        ("exp(mask[m])", "f32"),
        ("mask[m] * 2", "i32"),
        ("mask[m] * 0.5", "f32"),
        ("maximum(mask[m], -inf)", "f32"),
        ("m - 1", "i32"),
        ("0.5 * m", "f32"),
        ("m / 2", "f32"),
        ("3", "f32"),
        ("size(k)", "i32"),
        ("m < 3", "bool"),
        ("where(m < 3, x16[m], -inf)", "f16"),
        ("where(m < 3, mask[m], 0)", "i32"),
        ("c[m] * s", "f32"),
        ("c[m] + 1", "i32"),
        ("c[m] + c[m]", "i32"),
        ("sum[m](c[m])", "i32"),
        ("max[m](c[m])", "bool"),
        ("mean[m](mask[m])", "f32"),
        ("mean[m](x16[m])", "f16"),
        ("softmax[m](x16[m])", "f16"),
        ("softmax[n](mask[n])", "f32"),
    ],
)
def test_element_types(expression: str, element: str) -> None:
    assert _definition(f"A[m, n] = {expression}").tensor.element.value == element


def test_a_declared_type() -> None:
    assert _definition("A[m] : bf16 = x16[m] * s").tensor.element is ElementType.BF16


def test_masks_of_whole_numbers_are_conditions() -> None:
    masked = Call("not_equal", (_read("mask", "n"), Literal(0)))
    expected = Call(
        "where", (Call("and", (Call("less", (Position("n"), Literal(2))), masked)), _read("Y", "m", "n"), Literal(0))
    )
    assert _definition("A[m, n] = where(n < 2 and mask[n], Y[m, n], 0)").expression == expected


def test_eps() -> None:
    assert _definition("A[m, k] = layer_norm[k](X[m, k])").expression == LibraryCall(
        "layer_norm", ("k",), _read("X", "m", "k"), 1e-5
    )
    assert _definition("A[m, k] = rms_norm[k](X[m, k], eps = 0)").expression == LibraryCall(
        "rms_norm", ("k",), _read("X", "m", "k"), 0
    )


def test_defs_are_expanded() -> None:
    text = "def softcap(x, c) = c * tanh(x / c)\nA[m] = softcap(X[m, 0] + 1, 20)"
    inner = Call("add", (Element("X", (index_address("m"), Address(()))), Literal(1)))
    expected = Call("multiply", (Literal(20), Call("tanh", (Call("divide", (inner, Literal(20))),))))
    assert _definition(text).expression == expected


def test_parameters_shadow_and_are_not_captured() -> None:
    # The argument `s` is the tensor, whatever the parameters are called, and so is `k` the index.
    text = "def f(k, s) = k - s\nA[k] = f(s, k)"
    assert _definition(text).expression == Call("subtract", (_read("s"), Position("k")))


def test_defs_use_defs_and_reductions() -> None:
    text = "def square(x) = x * x\ndef rows[i](x) = sum[i](square(x)) / size(i)\nA[m] = rows[k](X[m, k])"
    product = Call("multiply", (_read("X", "m", "k"), _read("X", "m", "k")))
    assert _definition(text).expression == Call("divide", (Fold("sum", ("k",), product), SizeOf("k")))


def test_a_reduction_in_a_def_binds_the_programs_index() -> None:
    text = "def total(x) = sum[k](x)\nA[m] = total(X[m, k])"
    assert _definition(text).expression == Fold("sum", ("k",), _read("X", "m", "k"))


def test_inner_reductions_shadow() -> None:
    definition = _definition("A[m] = X[m, 0] / sum[m](X[m, 0]) + sum[k](sum[k](X[m, k]))")
    assert isinstance(definition.expression, Call)


def test_broadcast_and_swapped_indices() -> None:
    assert _definition("A[h, m, n] = Y[n, m]").tensor.indices == ("h", "m", "n")


def test_names_may_be_words_that_begin_statements() -> None:
    text = (
        "program weight\nindex input = 3, by = 4\ninput block[input], output[by] : f32\nindex[input] = block[input]\n"
    )
    program = array_program(text + "output program = sum[by](output[by])\n")
    assert [d.tensor.name for d in program.definitions] == ["index", "program"]


def test_types_of_groups() -> None:
    program = array_program("program p\nindex m = 2\ninput A[m], B[m] : f16, C : i32\noutput O[m] = A[m]\n")
    assert [tensor.element.value for tensor in program.inputs] == ["f16", "f16", "i32"]


def test_assumptions() -> None:
    text = "assume positive(s), finite(X)\nassume positive(s)"
    program = array_program(_HEAD + text + "\noutput O = s\n")
    assert program.assumptions == (Assumption("positive", "s"), Assumption("finite", "X"))


def test_statements_over_several_lines() -> None:
    text = """A[m] = sum[k](
        X[m, k]   # a comment
        * 2
    ) +
      s -

      1
B[m] =
    A[m]"""
    one_line = "A[m] = sum[k](X[m, k] * 2) + s - 1\nB[m] = A[m]"
    assert array_program(_HEAD + text + "\noutput O = s\n") == array_program(_HEAD + one_line + "\noutput O = s\n")


def test_thousands_of_brackets() -> None:
    assert _definition("A = " + "(" * 5000 + "s" + ")" * 5000).expression == _read("s")


def test_a_long_sum() -> None:
    definition = _definition("A = " + " + ".join(["s"] * 149))
    assert definition == _definition("A = " + " + ".join(["s"] * 149))


def test_thousands_of_statements_are_quick() -> None:
    lines = [f"A{i}[m] = A{i - 1}[m] * 2 + exp(A{i - 1}[m])" for i in range(1, 1500)]
    program = array_program("\n".join([_HEAD + "A0[m] = s", *lines, "output O[m] = A1499[m]", ""]))
    assert len(program.definitions) == 1501


@pytest.mark.parametrize("text", [ATTENTION, RMSNORM_SWIGLU, LAYERS], ids=["attention", "rmsnorm_swiglu", "layers"])
def test_printed_programs(text: str) -> None:
    program = array_program(text)
    printed = print_array_program(program, TABLE)
    check_golden(f"array/{program.name}.txt", printed)
    assert array_program(printed) == program


def test_printing_keeps_what_is_not_default() -> None:
    text = _HEAD + (
        "assume positive(s)\n"
        "A[m] : bf16 = -(3) - -3 - --3 + s^-m^2 + (-s)^2 - -s^2\n"
        "B[m, n] = where(not (n <= m and c[m]) or n == m, -inf, (1 - (2 - s)) / (3 * s / 4))\n"
        "C[h, n] = G[h / 2, n] + G[(h + 1) / 2 - 1, size(n) - 1 - n]\n"
        "output O = variance[m, k](X[m, k]) + mean[m](rms_norm[m](s, eps = 1e-12))\n"
    )
    program = array_program(text)
    printed = print_array_program(program, TABLE)
    check_golden("array/mixed.txt", printed)
    assert array_program(printed) == program
