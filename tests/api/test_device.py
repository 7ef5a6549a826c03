"""Programs on arrays of a GPU, which the emulator stands for: no copies, streams, memory for results, and refusals."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import bbrewrite
from bbrewrite.api.cuda_form import cuda_form
from bbrewrite.api.record import CompileRequest
from bbrewrite.codegen.cuda.launches import Launches, Memory, Part
from bbrewrite.core.elements import Element
from bbrewrite.core.spans import Source
from bbrewrite.lang.diagnostics import InputError
from tests.api.emulated_driver import DeviceArray, EmulatedDriver
from tests.codegen.cuda.programs import nvcc

LINEAR = """\
program linear
index m = 6, k = 40, n = 24
input X[m, k] : f32
input lam : f32
weight W[k, n], b[n] : f32
H[m, k] = X[m, k] * lam
output Y[m, n] = relu(sum[k](H[m, k] * W[k, n]) + b[n])
"""
TOTAL = "program total\nindex n = 1048576\ninput x[n] : f32\noutput s = sum[n](x[n])\n"


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> EmulatedDriver:
    nvcc()
    found = EmulatedDriver()
    monkeypatch.setattr("bbrewrite.api.device.find_gpu", found.device)
    return found


def _linear(rules: Any = None, **choices: Any) -> Callable[..., Any]:
    return bbrewrite.compile(LINEAR, rules=rules, target="cuda", **choices)


def _request() -> CompileRequest:
    return CompileRequest(Source("linear", LINEAR), (), {}, {}, 1, False)


def _arrays(m: int, k: int, n: int) -> list[np.ndarray]:
    draw = np.random.default_rng(3)
    return [draw.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n), (n,))]


def _expected(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.maximum((2.0 * x.astype(np.float64)) @ w + b, 0)


def _call(driver: EmulatedDriver, program: Any, m: int, k: int, n: int, **options: Any) -> tuple[Any, Any]:
    x, w, b = _arrays(m, k, n)
    lent = [DeviceArray(driver, array) for array in (x, w, b)]
    out = DeviceArray(driver, np.full((m, n), np.nan, np.float32))
    assert program(lent[0], 2.0, *lent[1:], out=out, **options) is out
    np.testing.assert_allclose(out.array, _expected(x, w, b), 1e-4, 1e-4)
    return lent, out


def test_arrays_are_used_where_they_lie(driver: EmulatedDriver) -> None:
    _call(driver, _linear(), 6, 40, 24)
    # The number is the only memory that was taken, and it was given back after the launch.
    assert [name for name, _ in driver.calls] == ["alloc", "copy", "launch", "free"]
    assert driver.context_depth == 0


def test_other_extents_than_planned(driver: EmulatedDriver) -> None:
    """Smaller ones suit the same kernels, larger ones are planned for, and over nothing sums are 0."""
    program = _linear()
    for extents in ((3, 17, 5), (70, 200, 130)):
        _call(driver, program, *extents)
    launches = [name for name, _ in driver.calls].count("launch")
    for extents in ((0, 40, 24), (5, 0, 24)):
        _call(driver, program, *extents)
    assert [name for name, _ in driver.calls].count("launch") == launches


def test_the_callers_stream_is_used_for_everything(driver: EmulatedDriver) -> None:
    """Buffers too: without rules there is one. Producers hear of the stream, in the protocol's numbers."""
    program = _linear(rules=())
    lent, out = _call(driver, program, 6, 40, 24, stream=77)
    assert {stream for _, stream in driver.calls} == {77}
    assert [name for name, _ in driver.calls] == ["alloc", "copy", "alloc", "launch", "launch", "free", "free"]
    assert lent[0].streams == out.streams == [77]
    lent, _ = _call(driver, program, 6, 40, 24, stream=SimpleNamespace(cuda_stream=5))
    assert lent[1].streams == [5]
    lent, _ = _call(driver, program, 6, 40, 24)
    assert lent[1].streams == [1]
    with pytest.raises(TypeError, match="a list is no stream"):
        _call(driver, program, 6, 40, 24, stream=[])


def test_parts_of_larger_arrays(driver: EmulatedDriver) -> None:
    """A tensor may begin inside its memory."""
    x, w, b = _arrays(8, 40, 24)
    lent = [DeviceArray(driver, array) for array in (x, w, b)]
    whole = np.zeros((8, 24), np.float32)
    _linear()(DeviceArray(driver, x[2:]), 2.0, *lent[1:], out=DeviceArray(driver, whole[2:]))
    np.testing.assert_allclose(whole[2:], _expected(x[2:], w, b), 1e-4, 1e-4)
    assert not whole[:2].any()


def test_weights_are_given_once(driver: EmulatedDriver) -> None:
    x, w, b = _arrays(6, 40, 24)
    program = _linear().with_weights(W=DeviceArray(driver, w), b=DeviceArray(driver, b))  # type: ignore[attr-defined]
    assert program.inputs == ("X", "lam")
    out = DeviceArray(driver, np.zeros((6, 24), np.float32))
    program(DeviceArray(driver, x), 2.0, out=out)
    np.testing.assert_allclose(out.array, _expected(x, w, b), 1e-4, 1e-4)


def test_results_are_made_by_the_arrays_library(driver: EmulatedDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    class Tensor(DeviceArray):
        pass

    Tensor.__module__ = "torch"

    def empty(shape: tuple[int, ...], dtype: Any, device: str) -> Tensor:
        assert device == "cuda:0"
        return Tensor(driver, np.full(shape, np.nan, dtype))

    current = SimpleNamespace(current_stream=lambda: SimpleNamespace(cuda_stream=9))
    torch = SimpleNamespace(empty=empty, cuda=current, float32=np.float32)
    monkeypatch.setitem(sys.modules, "torch", torch)
    x, w, b = _arrays(6, 40, 24)
    found = _linear()(Tensor(driver, x), 2.0, Tensor(driver, w), Tensor(driver, b))
    assert isinstance(found, Tensor)
    np.testing.assert_allclose(found.array, _expected(x, w, b), 1e-4, 1e-4)
    assert {stream for _, stream in driver.calls} == {9}
    with pytest.raises(TypeError, match="`out` is needed: no array of float32 on the GPU can be made here for Y"):
        _linear()(DeviceArray(driver, x), 2.0, DeviceArray(driver, w), DeviceArray(driver, b))


def test_repeats_slices_and_buffers_in_one_memory(driver: EmulatedDriver) -> None:
    """Each layer reads its own slice of the weights, and no layer takes memory that another has left."""
    text = """\
program layers
index layer = 4, m = 20, d = 24, e = d
input X[m, d] : f32
weight W[layer, d, e], g[layer, d] : f32
repeat layer
    carry H[m, d] = X[m, d]
    A[m, d] = rms_norm[d](H[m, d]) * g[layer, d]
    next H[m, e] = H[m, e] + sum[d](A[m, d] * W[layer, d, e])
output Y[m, d] = H[m, d]
"""
    draw = np.random.default_rng(1)
    arrays = [draw.standard_normal(shape).astype(np.float32) / 4 for shape in ((20, 24), (4, 24, 24), (4, 24))]
    expected = bbrewrite.compile(text, target="numpy")(*arrays)
    program = bbrewrite.compile(text, target="cuda", rules=())
    out = DeviceArray(driver, np.zeros((20, 24), np.float32))
    program(*(DeviceArray(driver, array) for array in arrays), out=out)
    np.testing.assert_allclose(out.array, expected, 1e-4, 1e-5)
    names = [name for name, _ in driver.calls]
    assert names.count("launch") > 2 * names.count("alloc")
    with pytest.raises(InputError, match="the repeat over layer was compiled for 4 iterations, not 3"):
        program(*(DeviceArray(driver, array) for array in (arrays[0], arrays[1][:3], arrays[2][:3])), out=out)


def test_what_was_compiled_is_remembered(driver: EmulatedDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what was planned for other extents; over nothing, a plan for NumPy is made anew."""
    text = LINEAR.replace("m = 6", "m = 7")
    program = bbrewrite.compile(text, rules=(), target="cuda")
    for extents in ((7, 40, 24), (70, 200, 130)):
        _call(driver, program, *extents)
    before = list(driver.calls)
    driver.calls.clear()
    monkeypatch.setattr("bbrewrite.api.cuda_stages.compile_for_cuda", None)
    again = bbrewrite.compile(text, rules=(), target="cuda")
    for extents in ((7, 40, 24), (70, 200, 130)):
        _call(driver, again, *extents)
    assert driver.calls == before
    _call(driver, again, 5, 0, 24)


def test_tf32_and_other_architectures_are_remembered_apart() -> None:
    nvcc()
    plain = cuda_form(_request(), "sm_80", False).ptx
    assert plain.read_text() != cuda_form(_request(), "sm_80", True).ptx.read_text()
    assert plain != cuda_form(_request(), "sm_90", False).ptx
    assert plain == cuda_form(_request(), "sm_80", False).ptx


def test_launches_are_read_as_they_were_written() -> None:
    nvcc()
    launches = cuda_form(CompileRequest(Source("total", TOTAL), (), {}, {}, 1, False), "sm_80", False).launches
    assert launches.shares
    assert launches.buffers
    parts = Part("a", Memory("w", Element.BF16, ("x", "y", "z")), (1, 2)), Part("b", launches.buffers[0])
    launches = replace(launches, parts=parts)
    assert Launches.from_json(launches.to_json()) == launches
    assert parts[0].offset({"x": 2, "y": 5, "z": 3}) == 2 * (5 + 2) * 3


def test_a_program_that_was_compiled_before_needs_none_of_the_stages() -> None:
    heavy = {"egglog", "lark", "ml_dtypes", "bbrewrite.fusion", "bbrewrite.plan", "bbrewrite.codegen.cuda.kernels"}
    script = f"import sys, bbrewrite, bbrewrite.api.device; print({heavy} & set(sys.modules))"
    told = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert told == "set()\n"


def test_split_reductions(driver: EmulatedDriver) -> None:
    """The number of shares is no choice of the caller's."""
    program = bbrewrite.compile(TOTAL, target="cuda")
    x, out = np.arange(5000, dtype=np.float32), np.zeros((), np.float32)
    program(DeviceArray(driver, x), out=DeviceArray(driver, out))
    assert out == x.sum(dtype=np.float64)
    assert [name for name, _ in driver.calls] == ["alloc", "launch", "launch", "free"]


def test_arrays_that_do_not_fit(driver: EmulatedDriver) -> None:
    program = _linear()
    x, w, b = _arrays(6, 40, 24)
    good = DeviceArray(driver, x), 2.0, DeviceArray(driver, w), DeviceArray(driver, b)
    y = DeviceArray(driver, np.zeros((6, 24), np.float32))
    doubles, halves = DeviceArray(driver, b.astype(np.float64)), DeviceArray(driver, b.astype(ml_dtypes.bfloat16))
    faults: list[tuple[tuple[Any, ...], Any, type[Exception], str]] = [
        (good[:3], y, TypeError, r"4 arrays are needed \(X, lam, W, b\), 3 were given"),
        ((x, *good[1:]), y, ValueError, "X is not on a GPU: move it there, or compile for the target cpp"),
        (([1.0], *good[1:]), y, ValueError, "X must be an array on a GPU, not list"),
        ((DeviceArray(driver, x, (2, 1)), *good[1:]), y, ValueError, "X is on GPU 1, and the program runs on GPU 0"),
        ((*good[:3], doubles), y, ValueError, "b is of f64, but f32 is needed"),
        ((*good[:3], halves), y, ValueError, "b is of bf16, but f32 is needed"),
        ((*good[:3], DeviceArray(driver, b, code=5)), y, ValueError, "b is of a type that programs do not have"),
        ((DeviceArray(driver, x[:, ::2]), *good[1:]), y, ValueError, "X has gaps between its rows, or is transposed"),
        ((DeviceArray(driver, x.T), *good[1:]), y, ValueError, "X has gaps between its rows, or is transposed"),
        ((*good[:3], DeviceArray(driver, b[:5])), y, ValueError, "b has n = 5, another array n = 24"),
        ((*good[:3], DeviceArray(driver, w)), y, ValueError, r"b\[n\] was given an array of shape \(40, 24\)"),
        (good, DeviceArray(driver, x), ValueError, r"the array for Y has shape \(6, 40\), but \(6, 24\) is needed"),
        (good, DeviceArray(driver, w[:6]), ValueError, "the array for Y overlaps that of W"),
    ]
    for arrays, out, kind, message in faults:
        with pytest.raises(kind, match=message):
            program(*arrays, out=out)
    assert "launch" not in {name for name, _ in driver.calls}
    assert driver.context_depth == 0


def test_what_a_program_assumes_is_checked(driver: EmulatedDriver) -> None:
    text = "program root\nindex n = 4\ninput s[n] : f32\nassume positive(s)\noutput r[n] = sqrt(s[n])\n"
    program = bbrewrite.compile(text, target="cuda")
    out = DeviceArray(driver, np.zeros(4, np.float32))
    program(DeviceArray(driver, np.arange(1, 5, dtype=np.float32)), out=out, stream=3)
    assert driver.calls == [("synchronise", 3), ("launch", 3)]
    with pytest.raises(ValueError, match=r"the program assumes positive\(s\), but not so at \[0\]"):
        program(DeviceArray(driver, np.arange(4, dtype=np.float32)), out=out)


def test_reads_that_leave_their_tensor_are_refused(driver: EmulatedDriver) -> None:
    text = "program shifted\nindex m = 4, n = m\ninput X[m] : f32\noutput Y[n] = where(n < 3, X[n + 1], 0)\n"
    program = bbrewrite.compile(text, target="cuda")
    array, out = (DeviceArray(driver, np.zeros(3, np.float32)) for _ in range(2))
    with pytest.raises(InputError, match="X"):
        program(array, out=out)


def test_tf32_is_for_gpus() -> None:
    with pytest.raises(ValueError, match='tf32 is for the target "cuda"'):
        bbrewrite.compile(LINEAR, tf32=True)
