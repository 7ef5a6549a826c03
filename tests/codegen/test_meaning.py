"""What generated C++ computes, compared with the kernel executor: every form of kernel in one library."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest

from bbrewrite.core.elements import Element
from bbrewrite.core.operators import Operator
from bbrewrite.core.terms import Apply, Number
from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.plan.kernel import KernelProgram, Let, Loop, Store, Update
from bbrewrite.runtime.library import CompiledProgram
from bbrewrite.runtime.module import compile_programs
from tests.built import built
from tests.codegen.general_cases import general_cases
from tests.codegen.kernel_cases import (
    BF16,
    BOOL,
    F16,
    F32,
    F64,
    arrays_for,
    block,
    indices,
    op,
    output,
    read,
    single,
    swiglu,
    table_with_weight,
    tensor,
    use,
)

TABLE = table_with_weight()
_OUTSIDE_FLOATS = ("and", "or", "not")
_POSITIVE = ("log", "log1p", "sqrt", "rsqrt", "recip", "power", "divide")


def _operator_case(operator: Operator, element: Element) -> KernelProgram:
    """The operator on inputs of the shapes that its first signature names."""
    table = indices(m=4, n=6, k=5)
    axes = {"r": "m", "c": "n", "k": "k", "*": "m n", "0": "n"}
    signature = operator.signatures[0]
    names = [f"X{position}" for position in range(operator.arity)]
    shapes = [" ".join(axes[letter] for letter in pattern) for pattern in signature.operands]
    if operator.name == "col_spread":
        axes = {**axes, "0": "m"}
    result = "".join(signature.result)
    target = " ".join(axes[letter] for letter in result)
    value = Apply(
        operator.name,
        tuple(read(name, *shape.split()) for name, shape in zip(names, shapes, strict=True)),
        (axes["0"],) if operator.index_count else (),
    )
    boolean = operator.is_elementwise and TABLE.functions[operator.function].type_rule == "bool"
    inputs = [
        tensor(
            name,
            shape,
            BOOL if operator.name in _OUTSIDE_FLOATS or (operator.name == "where" and name == "X0") else element,
        )
        for name, shape in zip(names, shapes, strict=True)
    ]
    used = list(dict.fromkeys(" ".join([*shapes, target]).split()))
    grid = " ".join(used)
    out = output("Y", target, BOOL if boolean else element)
    if not operator.fold:
        return single(f"{operator.name}_{element}", table, grid, (Store(out, value),), *inputs, out)
    folded = next(axis for axis in used if axis not in target.split())
    acc = block("acc", target, element=element)
    monoid = TABLE.monoids[operator.fold]
    (combine,) = monoid.combine
    assert isinstance(combine, Apply)
    body = (
        Let(acc, Number(monoid.identity[0])),
        Loop(folded, (Update(acc, op(combine.operator, use(acc), value)),)),
        Store(out, use(acc)),
    )
    return single(f"{operator.name}_{element}", table, target, body, *inputs, out)


def _operators() -> dict[str, KernelProgram]:
    cases = [
        _operator_case(operator, element)
        for operator in TABLE.operators.values()
        for element in ((F32,) if operator.name in _OUTSIDE_FLOATS else (F32, F64))
    ]
    return {case.name: case for case in cases}


_WHOLE_LIST = swiglu("swiglu_whole_list", whole_list=True)
_FORMS = general_cases()
_OPERATORS = _operators()
CASES = {**_FORMS, **_OPERATORS}


@functools.cache
def _compiled() -> dict[str, CompiledProgram]:
    """Every form of kernel is built as users build it, operators one by one with fewer of the optimiser's passes."""
    forms, operators = [*_FORMS.values(), _WHOLE_LIST], list(_OPERATORS.values())
    programs = (*compile_programs(forms, TABLE), *built(operators, TABLE, ("-O1",)))
    return dict(zip([case.name for case in (*forms, *operators)], programs, strict=True))


def _sizes(case: KernelProgram) -> list[dict[str, int]]:
    """Ragged, exact, single and empty extents of the program's roots."""
    roots = [index.name for index in case.indices if not index.same_as]
    patterns = [
        itertools.cycle(sizes)
        for sizes in ((9, 11, 7, 13), (8, 16, 8), (1,), (17, 5, 23, 3), (0, 3), (3, 0), (2, 3, 0))
    ]
    return [dict(zip(roots, pattern, strict=False)) for pattern in patterns]


@pytest.mark.parametrize("name", CASES)
def test_generated_code_agrees_with_the_executor(name: str) -> None:
    case, compiled = CASES[name], _compiled()[name]
    positive = name.rpartition("_")[0] in _POSITIVE
    for seed, extents in enumerate(_sizes(case)):
        arrays = arrays_for(case, extents, seed, positive)
        expected = run_kernels(case, arrays, extents, TABLE)
        for threads in (1, 2):
            found = compiled.run(arrays, extents, threads)
            for target in case.outputs:
                assert found[target.name].dtype == target.element.numpy_type
                _assert_close(found[target.name], expected[target.name], target.element, f"{name} {extents}")


def _assert_close(found: np.ndarray, expected: np.ndarray, element: Element, where: str) -> None:
    if not element.is_float:
        np.testing.assert_array_equal(found, expected, where)
        return
    tolerance = {F16: 2e-3, BF16: 1.6e-2, F32: 2e-5, F64: 1e-12}[element]
    finite = np.abs(expected[np.isfinite(expected)].astype(np.float64))
    largest = finite.max() if finite.size else 0.0
    np.testing.assert_allclose(
        found.astype(np.float64), expected.astype(np.float64), tolerance, tolerance * max(1.0, largest), err_msg=where
    )


def _softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def test_attention_is_softmax_of_products() -> None:
    extents = {"m": 21, "n": 130, "d": 19, "l": 11}
    arrays = arrays_for(CASES["attention"], extents, 5)
    q, k, v = (arrays[name].astype(np.float64) for name in "QKV")
    found = _compiled()["attention"].run(arrays, extents, 2)["O"]
    _assert_close(found, _softmax(q @ k.T / np.sqrt(19)) @ v, F32, "attention")


def test_hidden_keys_weigh_nothing_and_nan_stays_in_its_row() -> None:
    extents = {"m": 20, "n": 20, "d": 9, "l": 5}
    arrays = arrays_for(CASES["causal"], extents, 6)
    clean = _compiled()["causal"].run(arrays, extents, 1)["O"]
    arrays["K"][7] = np.nan
    found = _compiled()["causal"].run(arrays, extents, 1)["O"]
    np.testing.assert_array_equal(found[:7], clean[:7])
    assert np.isnan(found[7:]).all()


def test_attention_over_no_keys_is_zero() -> None:
    extents = {"m": 9, "n": 0, "d": 4, "l": 3}
    arrays = arrays_for(CASES["attention"], extents, 0)
    np.testing.assert_array_equal(_compiled()["attention"].run(arrays, extents, 2)["O"], np.zeros((9, 3)))


def test_let_outside_the_loops_of_its_list_fills_the_list() -> None:
    extents = {"m": 9, "d": 21, "f": 25}
    arrays = arrays_for(CASES["swiglu"], extents, 7)
    explicit = _compiled()["swiglu"].run(arrays, extents, 1)["Y"]
    np.testing.assert_array_equal(_compiled()["swiglu_whole_list"].run(arrays, extents, 1)["Y"], explicit)


def test_the_same_bits_twice_and_for_every_number_of_threads() -> None:
    extents = {"m": 77, "n": 61, "d": 19, "l": 11}
    arrays = arrays_for(CASES["attention"], extents, 8)
    runs = [_compiled()["attention"].run(arrays, extents, threads)["O"].tobytes() for threads in (1, 1, 2, 3)]
    assert len(set(runs)) == 1


def test_nan_passes_through_maxima() -> None:
    extents = {"m": 3, "n": 20, "k": 1}
    arrays = arrays_for(CASES["row_max_f32"], extents, 9)
    arrays["X0"][1, 13] = np.nan
    for name in ("row_max_f32", "row_min_f32"):
        found = _compiled()[name].run(arrays, extents, 1)["Y"]
        np.testing.assert_array_equal(np.isnan(found), [False, True, False])
