"""What generated C++ computes, compared with the kernel executor: every form of kernel in one library."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from general_cases import general_cases
from kernel_cases import (
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
    table_with_weight,
    tensor,
    use,
)

from bbrewrite.core.elements import Element
from bbrewrite.core.operators import Operator
from bbrewrite.core.terms import Apply, Number
from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.plan.kernel import KernelProgram, Let, Loop, Store, Update
from bbrewrite.runtime.module import CompiledProgram, compile_programs

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
    used = list(dict.fromkeys(" ".join(shapes + [target]).split()))
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


CASES = {**general_cases(), **_operators()}


@functools.cache
def _compiled() -> dict[str, CompiledProgram]:
    return dict(zip(CASES, compile_programs(list(CASES.values()), TABLE), strict=True))


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
            for tensor in case.outputs:
                assert found[tensor.name].dtype == tensor.element.numpy_type
                _assert_close(found[tensor.name], expected[tensor.name], tensor.element, f"{name} {extents}")


def _assert_close(found: np.ndarray, expected: np.ndarray, element: Element, where: str) -> None:
    if not element.is_float:
        np.testing.assert_array_equal(found, expected, where)
        return
    tolerance = {F16: 2e-3, BF16: 1.6e-2, F32: 2e-5, F64: 1e-12}[element]
    np.testing.assert_allclose(
        found.astype(np.float64), expected.astype(np.float64), rtol=tolerance, atol=tolerance, err_msg=where
    )
