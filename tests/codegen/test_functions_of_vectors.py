"""Calls in rows that are made for several vectors at a time: which, and that rows of any length come out right."""

from __future__ import annotations

import numpy as np
import pytest

from bbrewrite.codegen.cpp.program import print_programs
from bbrewrite.core.elements import Element
from bbrewrite.core.operators import builtin_table
from bbrewrite.core.terms import Number, Term
from bbrewrite.plan.kernel import KernelProgram, Let, Loop, Store, Update
from bbrewrite.runtime.module import compile_programs
from tests.codegen.kernel_cases import F32, F64, add_to, block, indices, op, output, read, single, tensor, use

TABLE = builtin_table()
X = read("X", "m", "n")
EXP, TANH = op("exp", X), op("tanh", X)


def _rows(name: str, value: Term, fold: str = "row_sum", element: Element = F32) -> KernelProgram:
    """Y = the values of each row, each divided by their fold."""
    kept, total = block("kept", "m n", element=element), block("total", "m", element=element)
    body = (
        Let(kept, value),
        Let(total, op(fold, use(kept))),
        Store(output("Y", "m n", element), op("row_scale", use(kept), op("recip", use(total)))),
    )
    return single(name, indices(m=3, n=170), "m n", body, tensor("X", "m n", element), output("Y", "m n", element))


CASES = {
    "kept": (_rows("kept", EXP), "bb::through<bb::Exp>"),
    "used": (_rows("used", op("add", op("multiply", TANH, 3), op("abs", X)), "row_max"), "bb::through<bb::Tanh>"),
    "inner": (_rows("inner", op("exp", TANH)), "bb::through<bb::Tanh>"),
    "double": (_rows("double", EXP, element=F64), ""),
    "without": (_rows("without", op("sigmoid", X)), ""),
}


@pytest.mark.parametrize("case", CASES)
def test_calls_in_folded_rows_of_floats_are_made_for_vectors(case: str) -> None:
    program, call = CASES[case]
    text = print_programs([program], TABLE).text
    assert (call in text) if call else "bb::through" not in text
    assert ("bb::Keep{kept" in text) == (case == "kept")


def test_nan_anywhere_in_a_row_of_any_length_passes_through_its_extremes() -> None:
    folds = {"row_max": ("maximum", -np.inf, np.max), "row_min": ("minimum", np.inf, np.min)}
    best = block("best", "m")
    programs: list[KernelProgram] = []
    for fold, (better, start, _) in folds.items():
        update = Update(best, op(better, use(best), op(fold, X)))
        body = (Let(best, Number(start)), Loop("n", (update,)), Store(output("Y", "m"), use(best)))
        programs.append(single(fold, indices(m=8, n=170), "m", body, tensor("X", "m n"), output("Y", "m")))
    for compiled, (_, _, expected) in zip(compile_programs(programs, TABLE), folds.values(), strict=True):
        for n in (1, 15, 16, 17, 63, 64, 65, 100, 128, 170):
            x = np.random.default_rng(n).standard_normal((n + 1, n)).astype(np.float32)
            x[range(n), range(n)] = np.where(np.arange(n) % 2, np.nan, -np.nan)  # all rows but the last
            found = compiled.run({"X": x}, {"m": n + 1, "n": n}, 2)["Y"]
            np.testing.assert_array_equal(found, expected(x, axis=1))


def test_rows_of_all_lengths() -> None:
    compiled = compile_programs([program for program, _ in CASES.values()], TABLE)
    random = np.random.default_rng(0)
    for n in (1, 15, 16, 17, 63, 64, 65, 100, 128, 170):
        exact = random.standard_normal((7, n)) + 0.1
        values = {
            "kept": np.exp(exact),
            "used": np.tanh(exact) * 3 + np.abs(exact),
            "inner": np.exp(np.tanh(exact)),
            "double": np.exp(exact),
            "without": 1 / (1 + np.exp(-exact)),
        }
        for (name, (program, _)), one in zip(CASES.items(), compiled, strict=True):
            value = values[name]
            fold = value.max(axis=1) if name == "used" else value.sum(axis=1)
            x = exact.astype(program.inputs[0].element.numpy_type)
            found = one.run({"X": x}, {"m": 7, "n": n}, 2)["Y"]
            np.testing.assert_allclose(found, value / fold[:, None], rtol=1e-4, atol=1e-5)


def _weighted(name: str, value: Term, element: Element) -> KernelProgram:
    """Y = the values of each row times V, divided by their sum: rounded for the product where all is bf16."""
    kept, total, product = block("kept", "m n"), block("total", "m"), block("product", "m l")
    v = op("transpose", read("V", "n", "l"))
    added = add_to(total, op("row_sum", use(kept))), add_to(product, op("dot", use(kept), v))
    body = (
        Let(total, Number(0.0)),
        Let(product, Number(0.0)),
        Loop("n", (Let(kept, value), *added)),
        Store(output("Y", "m l"), op("row_scale", use(product), op("recip", use(total)))),
    )
    tensors = tensor("X", "m n", element), tensor("V", "n l", element), output("Y", "m l")
    return single(name, indices(m=3, n=170, l=8), "m l", body, *tensors)


@pytest.mark.parametrize(
    ("value", "element", "call"),
    [
        pytest.param(EXP, Element.BF16, "bb::ExpRounded", id="rounded"),
        pytest.param(EXP, F32, "bb::Exp", id="of single precision"),
        pytest.param(op("multiply", EXP, 3), Element.BF16, "bb::Exp", id="what is rounded is made of it"),
        pytest.param(TANH, Element.BF16, "bb::Tanh", id="without such a form"),
    ],
)
def test_what_is_rounded_to_bf16_need_not_be_more_exact(value: Term, element: Element, call: str) -> None:
    program = _weighted("weighted", value, element)
    assert f"bb::through<{call}>" in print_programs([program], TABLE).text
    (compiled,) = compile_programs([program], TABLE)
    random = np.random.default_rng(0)
    for n in (1, 15, 16, 17, 63, 64, 65, 100, 128, 170):
        x = (random.standard_normal((7, n)) + 2).astype(element.numpy_type)
        v = random.standard_normal((n, 9)).astype(element.numpy_type)
        found = compiled.run({"X": x, "V": v}, {"m": 7, "n": n, "l": 9}, 2)["Y"]
        wide = x.astype(np.float64)
        values = np.tanh(wide) if value is TANH else np.exp(wide)
        expected = values @ v.astype(np.float64) / values.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(found, expected, rtol=0, atol=0.01 if element is Element.BF16 else 1e-5)
