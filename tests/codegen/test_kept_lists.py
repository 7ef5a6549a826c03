"""Lists of blocks kept in local memory, of every type in which a value can be kept, and of every kind of block."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from bbrewrite.core.elements import Element
from bbrewrite.core.operators import builtin_table
from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.plan.kernel import KernelProgram, Let, Loop, Store
from bbrewrite.runtime.library import CompiledProgram
from tests.built import built
from tests.codegen.kernel_cases import arrays_for, block, indices, op, output, read, single, tensor, use

TABLE = builtin_table()
_KINDS = {"matrix": ("m n", "m n"), "vector": ("n", "n"), "scalar": ("", "")}
_ELEMENTS = (Element.BOOL, Element.I32, Element.F16, Element.BF16, Element.F32, Element.F64)


def _case(kind: str, element: Element) -> KernelProgram:
    """Keeps every block of X in one loop over n, and stores them in a second one."""
    axes, shape = _KINDS[kind]
    point = kind == "scalar"
    index_table = indices(m=4, n=None if point else 4)
    held = "n" if point else shape
    kept = block("kept", axes, of="n", element=element.compute_type)
    source = read("X", *held.split())
    # What is only loaded in its own type is no list, but read again.
    value = op("multiply", source, 1) if element.is_float else source
    body = (
        Loop("n", (Let(kept, value),)),
        Loop("n", (Store(output("Y", held, element), use(kept)),)),
    )
    grid = "m" if kind == "matrix" else ""
    name = f"kept_{kind}_{element}"
    return single(name, index_table, grid, body, tensor("X", held, element), output("Y", held, element))


CASES = {case.name: case for case in (_case(kind, element) for kind in _KINDS for element in _ELEMENTS)}


@functools.cache
def _compiled() -> dict[str, CompiledProgram]:
    return dict(zip(CASES, built(list(CASES.values()), TABLE), strict=True))


@pytest.mark.parametrize("name", CASES)
def test_what_is_kept_comes_back(name: str) -> None:
    for extents in ({"m": 6, "n": 11}, {"m": 1, "n": 1}):
        arrays = arrays_for(CASES[name], extents, 1)
        found = _compiled()[name].run(arrays, extents, 2)["Y"]
        np.testing.assert_array_equal(found, arrays["X"])
        np.testing.assert_array_equal(run_kernels(CASES[name], arrays, extents, TABLE)["Y"], arrays["X"])
