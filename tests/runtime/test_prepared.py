"""Weights that are packed once ahead of calls: which ones are, that results do not change, and what calls then take."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from bbrewrite.core.operators import builtin_table
from bbrewrite.core.spans import Source
from bbrewrite.fusion import fuse
from bbrewrite.lang.programs import parse_program
from bbrewrite.plan.kernel import KernelProgram
from bbrewrite.request import make_request
from bbrewrite.rules.rules import RuleSet
from bbrewrite.runtime.library import Array, CompiledProgram, PackedWeight
from bbrewrite.runtime.module import compile_programs
from bbrewrite.verify.exact import evaluate_exactly

TABLE = builtin_table()
LAYERS = """\
program layers
index m = 20, k = 70, n = 130, l = 64
input X[m, k] : f32
weight W[k, n], V[l, n] : f32
H[m, n] = relu(sum[k](X[m, k] * W[k, n]))
output Y[m, l] = sum[n](H[m, n] * V[l, n])
"""
USED_OTHERWISE = """\
program used_otherwise
index m = 20, k = 70, n = 130
input X[m, k] : f32
weight W[k, n] : f32
output Y[m, n] = sum[k](X[m, k] * W[k, n]) + sum[k](W[k, n])
"""


def _planned(text: str, **blocks: int) -> KernelProgram:
    program = parse_program(Source("test.bb", text), TABLE)
    return fuse(make_request(program, RuleSet((), TABLE, ()), blocks=blocks, threads=2)).fused.kernels


def _built(text: str, prepare: bool = True, **blocks: int) -> CompiledProgram:
    return compile_programs([_planned(text, **blocks)], TABLE, prepare=prepare)[0]


def _arrays(compiled: CompiledProgram, extents: Mapping[str, int]) -> dict[str, Array]:
    random = np.random.default_rng(0)
    return {
        argument.name: random.integers(-4, 5, [extents[axis] for axis in argument.axes]).astype(argument.numpy_type)
        for argument in compiled.signature.inputs
    }


TWICE = """\
program twice
index m = 20, k = 70, n = 70, l = 70
input X[m, k] : f32
weight W[k, n] : f32
H[m, n] = relu(sum[k](X[m, k] * W[k, n]))
output Y[m, l] = sum[n](H[m, n] * W[n, l])
"""
EXTENTS = {"m": 20, "k": 70, "n": 130, "l": 64}


@pytest.mark.parametrize("blocks", [(64, 64), (48, 40), (1, 176)], ids=str)
@pytest.mark.parametrize("element", ["f32", "bf16", "f64"])
def test_results_are_those_of_weights_as_they_are(element: str, blocks: tuple[int, int]) -> None:
    text = LAYERS.replace("V[l, n] : f32", f"V[l, n] : {element}")
    compiled = _built(text, m=8, k=32, n=blocks[0], l=blocks[1])
    parsed = parse_program(Source("test.bb", text), TABLE)
    for sizes in ((20, 70, 130, 64), (1, 1, 1, 1), (7, 33, 63, 65), (3, 32, 128, 200)):
        extents = dict(zip("mknl", sizes, strict=True))
        arrays = _arrays(compiled, extents)
        ready = compiled.prepare(arrays, 2)
        assert [name for name, given in ready.items() if isinstance(given, PackedWeight)] == ["W", "V"]
        exact = evaluate_exactly(parsed, arrays, extents, TABLE)["Y"]
        # Small whole numbers: every sum is exact.
        np.testing.assert_array_equal(compiled.run(ready, extents, 2)["Y"], np.asarray(exact, np.float32))


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        pytest.param(USED_OTHERWISE, {"n": 64}, id="used otherwise"),
        pytest.param(LAYERS.replace("weight", "input"), {"n": 64, "l": 64}, id="not constant"),
        pytest.param(TWICE, {"n": 48, "l": 32}, id="blocks of two widths inside a panel"),
    ],
)
def test_other_weights_are_taken_as_they_are(text: str, blocks: dict[str, int]) -> None:
    compiled = _built(text, m=8, k=32, **blocks)
    extents = EXTENTS | ({"n": 70, "l": 70} if text == TWICE else {})
    arrays = _arrays(compiled, extents)
    ready = compiled.prepare(arrays, 1)
    assert all(ready[name] is array for name, array in arrays.items())
    exact = evaluate_exactly(parse_program(Source("test.bb", text), TABLE), arrays, extents, TABLE)["Y"]
    np.testing.assert_array_equal(compiled.run(ready, extents, 2)["Y"], np.asarray(exact, np.float32))


def test_calls_take_each_weight_in_its_form() -> None:
    compiled = _built(LAYERS, m=8, k=32, n=64, l=64)
    plain = _built(LAYERS, prepare=False, m=8, k=32, n=64, l=64)
    extents = EXTENTS
    arrays = _arrays(compiled, extents)
    ready = compiled.prepare(arrays, 2)
    with pytest.raises(ValueError, match="W must be given as `prepare` packs it"):
        compiled.run(arrays, extents, 2)
    with pytest.raises(ValueError, match="W must be given as an array"):
        plain.run(ready, extents, 2)
    with pytest.raises(ValueError, match=r"W was packed for shape \(70, 130\), but \(70, 7\) is needed"):
        compiled.run(ready, extents | {"n": 7}, 2)
    with pytest.raises(ValueError, match=r"W\[k, n\] was given an array of shape \(70,\)"):
        compiled.prepare(arrays | {"W": arrays["W"][:, 0]}, 2)
    with pytest.raises(ValueError, match="W is of type float64, but float32 is needed"):
        compiled.prepare(arrays | {"W": arrays["W"].astype(np.float64)}, 2)
