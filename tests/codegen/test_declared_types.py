"""What is computed from a list that is declared wider keeps that precision and range, wherever products take it from.

Units for products want operands of 16 bits, which they are rounded to where the program says that they have such a
type. The values here need more than 16 bits, and more range than f16 has.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from bbrewrite.codegen.cuda.program import print_cuda
from bbrewrite.core.spans import Source
from bbrewrite.emulate.program import EmulatedProgram
from bbrewrite.fusion import Fusion, fuse
from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.lang.programs import parse_program
from bbrewrite.plan.kernel import KernelProgram
from bbrewrite.plan.target import gpu_target
from bbrewrite.request import make_request
from bbrewrite.runtime.compiler import processor_name
from bbrewrite.runtime.library import CompiledProgram
from bbrewrite.verify.exact import evaluate_exactly
from tests.built import QUICKLY, built
from tests.codegen.cuda.programs import nvcc
from tests.plan.pipelines import shipped_rules

type Array = npt.NDArray[Any]

_GPU = gpu_target("sm_80")
_TEXT = """\
program declared
index m = 40, k = 48, f = 32, n = 24, h = 8
input X[m, k], W[k, f], U[f, n], V[n, m], Z[k, m] : {element}
A[m, f] : {declared} = sum[k](X[m, k] * W[k, f]) * 3000
B[m, f] = A[m, f] * abs(A[m, f])
C[m, f] : {element} = A[m, f] * 0.0001
S[m] : {declared} = sum[k](X[m, k] * X[m, k]) * 500
N[m, k] = X[m, k] * X[m, k] * S[m]
output left[m, n] = sum[f](B[m, f] * U[f, n])
output right[n, f] = sum[m](V[n, m] * A[m, f])
output both[m, h] = sum[f](A[m, f] * A[h * 2, f])
output gathered[h, n] = sum[f](A[h * 3, f] * U[f, n])
output scaled[m, f] = sum[k](N[m, k] * W[k, f])
output turned[f, k] = sum[m](A[m, f] * Z[k, m])
output narrowed[m, n] = sum[f](C[m, f] * U[f, n])
"""
_PRECISION = {"f32": 1e-6, "f64": 1e-13, "f16": 1e-3, "bf16": 1e-2}
_TYPES = [("f16", "f32"), ("bf16", "f32"), ("bf16", "f64")]
# How a processor is named that has no instructions for bf16.
_WITHOUT_NARROW_PRODUCTS = ("-march=x86-64-v3",)


@pytest.mark.parametrize("target", ["numpy", "cpp", "cpp without bf16", "cuda"])
@pytest.mark.parametrize(("element", "declared"), _TYPES)
def test_a_declared_type_is_kept_in_products(element: str, declared: str, target: str) -> None:
    fusion = _fused(_text(element, declared), target == "cuda")
    request = fusion.request
    arrays = _arrays(fusion)
    exact = evaluate_exactly(request.program, arrays, request.extents, request.rules.table)
    for name, found in _run(fusion, arrays, target).items():
        allowed = _PRECISION[element if name == "narrowed" else declared]
        error = np.abs(found.astype(np.float64) - exact[name]).max() / np.abs(exact[name]).max()
        assert error <= allowed, name


_BY_HAND = {
    "scores": """
    S[m, k] : f32 = sum[f](Q[m, f] * K[k, f]) / sqrt(size(f))
    P[m, k] {result} = softmax[k](S[m, k])
    output Y[m, n] = sum[k](P[m, k] * W[k, n])
    """,
    "statistics": """
    mu[m] : f32 = mean[k](X[m, k])
    v[m] : f32 = mean[k]((X[m, k] - mu[m])^2)
    P[m, k] {result} = (X[m, k] - mu[m]) / sqrt(v[m] + 1e-5)
    output Y[m, n] = sum[k](P[m, k] * W[k, n])
    """,
    "squares": """
    q[m] : f32 = mean[k](X[m, k] * X[m, k])
    P[m, k] {result} = X[m, k] / sqrt(q[m] + 1e-5)
    output Y[m, n] = sum[k](P[m, k] * W[k, n])
    """,
}


@pytest.mark.parametrize("is_gpu", [False, True], ids=["cpp", "cuda"])
@pytest.mark.parametrize("result", ["", ": bf16"], ids=["wide", "narrow"])
@pytest.mark.parametrize("name", _BY_HAND)
def test_declared_sums_leave_a_program_fused(name: str, result: str, is_gpu: bool) -> None:
    head = "index m = 64, k = 64, f = 64, n = 64\ninput X[m, k], Q[m, f], K[k, f], W[k, n] : bf16\n"
    kernels = _fused(f"program by_hand\n{head}{_BY_HAND[name].format(result=result)}", is_gpu).fused.kernels
    assert len(kernels.kernels) == 1


@pytest.mark.parametrize(
    ("name", "element", "result", "is_narrow"),
    [
        ("scores", "bf16", ": bf16", True),
        ("scores", "bf16", "", False),
        ("statistics", "bf16", ": bf16", True),
        ("statistics", "bf16", "", False),
        ("statistics", "f16", ": f16", False),  # which has not the range of f32
        ("squares", "bf16", "", True),  # the scale passes through the product, and what is loaded is not rounded
        ("squares", "f16", "", True),
    ],
)
def test_which_products_are_left_to_tensor_cores(name: str, element: str, result: str, is_narrow: bool) -> None:
    head = f"index m = 64, k = 64, f = 64, n = 64\ninput X[m, k], Q[m, f], K[k, f], W[k, n] : {element}\n"
    fusion = _fused(f"program by_hand\n{head}{_BY_HAND[name].format(result=result)}", True)
    assert _GPU.gpu is not None
    source = print_cuda(fusion.fused.kernels, fusion.request.rules.table, _GPU.gpu).text
    assert ("dot_add_entries" not in source) == is_narrow


def test_lists_have_one_type_whichever_kernel_stores_or_reads_them() -> None:
    """The list that only some plans store may be wider in some than in others, and kernels of several plans are one."""
    text = """\
program types
index m = 4096, k = 1024, n = 1024
input X[m, k] : f32
weight W[k, n] : f32
mu[m] : f64 = mean[k](X[m, k])
H[m, k] : f32 = exp(X[m, k] - mu[m])
output Y[m, n] = sum[k](H[m, k] * W[k, n])
"""
    for is_gpu in (False, True):
        kernels = _fused(text, is_gpu).fused.kernels
        types = {(t.name, t.element) for kernel in kernels.kernels for t in (*kernel.reads, *kernel.writes)}
        assert len(types) == len({name for name, _ in types})


@cache
def _fused(text: str, is_gpu: bool) -> Fusion:
    rules = shipped_rules()
    request = make_request(parse_program(Source("declared", text), rules.table), rules, threads=2)
    return fuse(request, _GPU) if is_gpu else fuse(request)


def _arrays(fusion: Fusion) -> dict[str, Array]:
    """Quarters, of which products and their sums are exact, so that what is declared f64 can be."""
    random = np.random.default_rng(0)
    indices = fusion.request.blocks.indices.with_extents(fusion.request.extents)
    found: dict[str, Array] = {}
    for tensor in fusion.request.blocks.inputs:
        shape = [indices.extent(index) or 0 for index in tensor.indices]
        found[tensor.name] = (random.integers(-4, 5, shape) / 4).astype(tensor.element.numpy_type)
    return found


def _run(fusion: Fusion, arrays: Mapping[str, Array], target: str) -> Mapping[str, Array]:
    kernels, extents, table = fusion.fused.kernels, fusion.request.extents, fusion.request.rules.table
    if target == "numpy":
        return run_kernels(kernels, arrays, extents, table)
    if target == "cuda":
        assert _GPU.gpu is not None
        source = print_cuda(kernels, table, _GPU.gpu)
        done = EmulatedProgram(kernels, source, nvcc().ptx(source.text)).run(arrays, extents)
        assert done.faults == ()
        return done.outputs
    processor = _WITHOUT_NARROW_PRODUCTS if "without" in target else ()
    return _compiled(processor)[kernels].run(arrays, extents, 2)


@cache
def _compiled(processor: tuple[str, ...]) -> Mapping[KernelProgram, CompiledProgram]:
    """The programs in all types, in one library."""
    if processor == _WITHOUT_NARROW_PRODUCTS and (platform.machine() != "x86_64" or "avx2" not in processor_name()):
        pytest.skip("another processor to build for is known for x86-64 only")
    fusions = [_fused(_text(*types), False) for types in _TYPES]
    kernels = [fusion.fused.kernels for fusion in fusions]
    compiled = built(kernels, fusions[0].request.rules.table, (*processor, *QUICKLY))
    return dict(zip(kernels, compiled, strict=True))


def _text(element: str, declared: str) -> str:
    return _TEXT.format(element=element, declared=declared).replace("declared", f"declared_{element}_{declared}", 1)
