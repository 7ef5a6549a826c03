"""Programs as Python functions: right at any extents, remembered on disk, and clear about arrays that do not fit."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import bbrewrite
from bbrewrite.core.elements import Element
from bbrewrite.lang.diagnostics import InputError
from tests.built import cache_with_products

LINEAR = """\
program linear
index m = 6, k = 8, n = 5
input X[m, k] : f32
weight W[k, n], b[n] : f32
H[m, k] = rms_norm[k](X[m, k])
output Y[m, n] = relu(sum[k](H[m, k] * W[k, n]) + b[n])
"""
EXTREMES = """\
program extremes
index m = 4, n = 4
input X[m, n] : f32
input lam : f32
output low[m] = min[n](X[m, n] * lam)
output high[m] = max[n](X[m, n] * lam)
"""
SHIFTED = """\
program shifted
index m = 4, n = m
input X[m] : f32
output Y[n] = where(n < 3, X[n + 1], 0)
"""
ROOT = """\
program root
index n = 4
input s[n] : f32
assume positive(s)
output r[n] = sqrt(s[n])
"""


def _arrays(m: int, k: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    draw = np.random.default_rng(1)
    shapes = ((m, k), (k, n), (n,))
    x, w, b = (draw.standard_normal(shape).astype(np.float32) for shape in shapes)
    return x, w, b


def _linear(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    h = x / np.sqrt(np.mean(x.astype(np.float64) ** 2, axis=1, keepdims=True) + 1e-5)
    return np.maximum(h @ w + b, 0)


@pytest.mark.parametrize("target", ["cpp", "numpy"])
def test_any_extents(target: str) -> None:
    program = bbrewrite.compile(LINEAR, target=target)  # pyright: ignore[reportArgumentType]
    assert (program.inputs, program.outputs) == (("X", "W", "b"), ("Y",))
    for extents in ((6, 8, 5), (1, 1, 1), (33, 70, 129), (0, 8, 5), (3, 0, 2), (3, 2, 0)):
        arrays = _arrays(*extents)
        with np.errstate(invalid="ignore"):
            expected = _linear(*arrays) if extents[1] else np.maximum(np.zeros((3, 2)) + arrays[2], 0)
        np.testing.assert_allclose(program(*arrays), expected, 1e-4, 1e-5)


def test_arrays_by_name_and_memory_for_the_result() -> None:
    program = bbrewrite.compile(LINEAR)
    x, w, b = _arrays(6, 8, 5)
    out = np.empty((6, 5), np.float32)
    assert program(x, b=b, W=w, out=out) is out
    np.testing.assert_array_equal(out, program(x, w, b))
    np.testing.assert_array_equal(program(np.asfortranarray(x), w, b), out)


@pytest.mark.parametrize("target", ["cpp", "numpy"])
def test_several_outputs_and_numbers(target: str) -> None:
    program = bbrewrite.compile(EXTREMES, target=target)  # pyright: ignore[reportArgumentType]
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    low, high = program(x, 2)
    np.testing.assert_array_equal(low, [0, 8, 16])
    np.testing.assert_array_equal(high, [6, 14, 22])
    memory = np.empty(3, np.float32), np.empty(3, np.float32)
    assert [a is b for a, b in zip(program(x, lam=1.0, out=memory), memory, strict=True)] == [True, True]


@pytest.mark.parametrize("target", ["cpp", "numpy"])
def test_memory_for_results_is_checked_by_name(target: str) -> None:
    program = bbrewrite.compile(EXTREMES, target=target)  # pyright: ignore[reportArgumentType]
    x, memory = np.ones((3, 4), np.float32), np.empty(5, np.float32)
    low, high = program.outputs
    for out, kind, message in [
        ((memory[:3], memory[:3]), ValueError, f"the array for {high} overlaps that of {low}"),
        ((memory[:3], memory[2:]), ValueError, f"the array for {high} overlaps that of {low}"),
        ((memory[:3], [1, 2, 3]), TypeError, f"the array for {high} must be an array, not list"),
        ({low: memory[:3], high: memory[:3]}, TypeError, f"one array for each of {low}, {high}"),
        (memory[:3], TypeError, f"one array for each of {low}, {high}"),
    ]:
        with pytest.raises(kind, match=message):
            program(x, 2, out=out)
    one = bbrewrite.compile(LINEAR, target=target)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="the array for Y must be an array, not tuple"):
        one(*_arrays(6, 8, 5), out=(np.empty((6, 5), np.float32),))


@pytest.mark.parametrize("target", ["cpp", "numpy"])
def test_memory_for_results_must_fit(target: str) -> None:
    program = bbrewrite.compile(LINEAR, target=target)  # pyright: ignore[reportArgumentType]
    arrays, fitting = _arrays(6, 8, 5), np.empty((6, 5), np.float32)
    read_only = fitting.view()
    read_only.setflags(write=False)
    for out in (fitting[:5], fitting.T, np.empty((6, 10), np.float32)[:, ::2], fitting.astype(np.float64), read_only):
        with pytest.raises(ValueError, match=r"the array for Y must be dense and writable, float32 of shape \(6, 5\)"):
            program(*arrays, out=out)
    square = _arrays(5, 5, 5)
    with pytest.raises(ValueError, match="the array for Y overlaps an input"):
        program(*square, out=square[0])


OUTPUTS_ALONE = "program alone\nindex m = 4, n, l\ninput X[m, l] : f32\noutput Y[n, l] = X[0, l] + n\n"


def test_extents_that_are_open_are_asked_for() -> None:
    with pytest.raises(InputError, match=r"the extent of n, l is open\n.*; from Python, sizes=\{'n': ..., 'l': ...\}"):
        bbrewrite.compile(OUTPUTS_ALONE, target="numpy")
    program = bbrewrite.compile(OUTPUTS_ALONE, sizes={"n": 3, "l": 2}, target="numpy")
    assert program(np.zeros((4, 5), np.float32)).shape == (3, 5)


def test_a_program_is_copied_and_sent_to_other_processes() -> None:
    x, w, b = _arrays(6, 8, 5)
    program = bbrewrite.compile(LINEAR)
    expected = program(x, w, b)
    packed = pickle.loads(pickle.dumps(program.with_weights(W=w, b=b)))
    np.testing.assert_array_equal(copy.deepcopy(program)(x, w, b), expected)
    np.testing.assert_allclose(packed(x), expected, 1e-5, 1e-6)


def test_rules_are_texts_files_or_none() -> None:
    arrays = _arrays(6, 8, 5)
    results = [
        bbrewrite.compile(LINEAR, rules=rules)(*arrays)
        for rules in (None, (), "rule consecutive\n    at(map(i, x), i) => x\n")
    ]
    for found in results:
        np.testing.assert_allclose(found, _linear(*arrays), 1e-4, 1e-5)


def test_arrays_that_do_not_fit() -> None:
    program = bbrewrite.compile(LINEAR)
    x, w, b = _arrays(6, 8, 5)
    faults = [
        ((x, w), {}, TypeError, r"3 arrays are needed \(X, W, b\), 2 were given"),
        ((x, w), {"c": b}, TypeError, "there is no array c; the arrays are X, W, b"),
        ((x, w, b), {"c": b}, TypeError, "there is no array c"),
        ((), {"X": x, "W": w}, TypeError, r"3 arrays are needed \(X, W, b\), 2 were given"),
        ((x, w), {"X": x}, TypeError, "X is given twice"),
        ((x, w, b[:-1]), {}, ValueError, "b has n = 4, another array n = 5"),
        ((x, w, w), {}, ValueError, r"b\[n\] was given an array of shape \(8, 5\)"),
        ((x, w, b.astype(np.float64)), {}, ValueError, "b is of type float64, but float32 is needed"),
        ((x, w, "b"), {}, ValueError, "b must be an array, not str"),
        ((x, w, b), {"out": x}, ValueError, "the array for Y must be dense"),
        ((x, w, b), {"threads": -1}, ValueError, "threads must be a whole number from 1 to 1024, not -1"),
    ]
    for arrays, named, kind, message in faults:
        with pytest.raises(kind, match=message):
            program(*arrays, **named)
    with pytest.raises(ValueError, match="target"):
        bbrewrite.compile(LINEAR, target="fpga")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="no index q"):
        bbrewrite.compile(LINEAR, sizes={"q": 3})


@pytest.mark.parametrize("target", ["cpp", "numpy"])
def test_weights_are_given_once(target: str) -> None:
    program = bbrewrite.compile(LINEAR, target=target)  # pyright: ignore[reportArgumentType]
    for extents in ((6, 8, 5), (33, 70, 129), (2, 0, 3), (0, 8, 5)):
        x, w, b = _arrays(*extents)
        bound = program.with_weights(W=w, b=b)
        assert bound.inputs == ("X",)
        np.testing.assert_allclose(bound(x), program(x, w, b), 1e-5, 1e-6)
        np.testing.assert_allclose(bound(x[:1]), program(x[:1], w, b), 1e-5, 1e-6)
    with pytest.raises(TypeError, match="the weights W, b are needed, not W"):
        program.with_weights(W=w)
    with pytest.raises(ValueError, match="another array k"):
        bound(np.zeros((2, 3), np.float32))


@pytest.mark.parametrize("target", ["cpp", "numpy"])
def test_weights_may_be_all_that_there_is(target: str) -> None:
    """Extents then come from no array of a call."""
    text = "program doubled\nindex n = 4\nweight W[n] : f32\noutput Y[n] = W[n] * 2\n"
    bound = bbrewrite.compile(text, target=target).with_weights(W=np.arange(7, dtype=np.float32))
    for _ in range(2):
        assert bound().tolist() == [0, 2, 4, 6, 8, 10, 12]


def test_reads_are_checked_at_the_extents_of_the_arrays() -> None:
    program = bbrewrite.compile(SHIFTED)
    np.testing.assert_array_equal(program(np.arange(4, dtype=np.float32)), [1, 2, 3, 0])
    np.testing.assert_array_equal(program(np.arange(5, dtype=np.float32)), [1, 2, 3, 0, 0])
    with pytest.raises(InputError, match=r"X\[n \+ 1\]"):
        program(np.arange(3, dtype=np.float32))


TWINS = [
    "program twins\nindex m = 6, n = 6\ninput X[m], Z[n] : f32\noutput Y[n] = X[n] * Z[n]\n",
    "program twins\nindex m = 6, n = 6\ninput X[m], Z[n] : f32\nS[m] = 2 * X[m]\n"
    "D[m] = sum[n](where(n == m, S[n] * Z[n], 0))\noutput Y[m] = D[m] / 2\n",
    "block program twins\nindex m = 6, n = 6\ninput X[m], Z[n] : f32\noutput Y = map n: X[n] * Z[n]\n",
]


@pytest.mark.parametrize("target", ["cpp", "numpy"])
@pytest.mark.parametrize("text", TWINS)
def test_extents_equal_as_declared_only(text: str, target: str) -> None:
    program = bbrewrite.compile(text, target=target)  # pyright: ignore[reportArgumentType]
    for m, n in ((6, 6), (9, 9), (9, 6), (6, 9), (2, 6), (16, 2), (2, 2), (0, 6), (9, 6)):
        x, z = np.arange(m, dtype=np.float32), np.ones(n, np.float32)
        if m == n:
            np.testing.assert_array_equal(program(x, z), x)
            continue
        with pytest.raises(InputError, match=r"declare `index n = m`") as caught:
            program(x, z)
        assert caught.value.diagnostics[0].span is not None


@pytest.mark.parametrize("target", ["cpp", "numpy"])
@pytest.mark.parametrize("index", ["layer", "l"])
def test_repeats_have_the_iterations_that_were_planned(index: str, target: str) -> None:
    text = (
        "program powers\nindex layer = 2, l = layer, m = 4\ninput X[m], g[layer] : f32\n"
        f"repeat {index}\n    carry H[m] = X[m]\n    next H[m] = 2 * H[m]\n"
        "output Y[m] = H[m] + sum[l](g[l])\n"
    )
    x = np.ones(4, np.float32)
    program = bbrewrite.compile(text, target=target)  # pyright: ignore[reportArgumentType]
    for count in (2, 0, 1, 3):
        g = np.ones(count, np.float32)
        if count != 2:
            with pytest.raises(InputError, match=rf"for 2 iterations, not {count}") as caught:
                program(x, g)
            assert f"sizes={{'layer': {count}}}" in caught.value.diagnostics[0].hint
            program_of_count = bbrewrite.compile(text, sizes={"layer": count}, target="numpy")
            np.testing.assert_array_equal(program_of_count(x, g), 2**count * x + count)
        np.testing.assert_array_equal(program(x[:3], np.ones(2, np.float32)), [6, 6, 6])


def test_an_extent_of_no_array_is_the_planned_one() -> None:
    text = "program twins\nindex m = 1000, n = 1000\ninput X[m] : f32\noutput Y[n] = X[n]\n"
    program = bbrewrite.compile(text)
    np.testing.assert_array_equal(program(np.arange(1000, dtype=np.float32)), np.arange(1000))
    for extent in (16, 1001):
        with pytest.raises(InputError, match=rf"size\(n\) is 1000 and size\(m\) is {extent}"):
            program(np.zeros(extent, np.float32))
    with pytest.raises(InputError, match=r"size\(n\) is 1000 and size\(m\) is 16"):
        bbrewrite.compile(text, sizes={"m": 16})


@pytest.mark.parametrize("number", [2, 2.0, True, np.float32(2), np.float64(2), np.int64(2), np.bool(True)])
@pytest.mark.parametrize("element", ["f32", "bf16", "i32"])
def test_numbers_of_python_and_numpy(number: object, element: str) -> None:
    program = bbrewrite.compile(f"program number\ninput a : {element}\noutput Y : f32 = a + 1\n", target="numpy")
    assert program(number) == float(number) + 1  # pyright: ignore[reportArgumentType]


def test_a_number_of_the_declared_type() -> None:
    for element in Element:
        if element not in (Element.INDEX, Element.NUMBER, Element.BOOL):
            text = f"program number\ninput a : {element.value}\noutput Y : f32 = a + 1\n"
            assert bbrewrite.compile(text, target="numpy")(element.numpy_type.type(2)) == 3


def test_the_module_lists_what_it_has() -> None:
    assert {"compile", "Program", "__version__"} <= set(dir(bbrewrite))


def test_assumptions_are_checked() -> None:
    program = bbrewrite.compile(ROOT)
    np.testing.assert_array_equal(program(np.array([4, 9], np.float32)), [2, 3])
    with pytest.raises(ValueError, match=r"assumes positive\(s\), but at \[1\] it is 0.0"):
        program(np.array([4, 0], np.float32))


def test_threads_may_call_one_program() -> None:
    program = bbrewrite.compile(LINEAR, rules=())  # with buffers
    inputs = [_arrays(m, 8, 5) for m in (1, 6, 6, 20, 33, 6)]
    wrong: list[int] = []

    def call(position: int) -> None:
        expected = _linear(*inputs[position])
        for _ in range(30):
            if not np.allclose(program(*inputs[position], threads=1), expected, 1e-4, 1e-5):
                wrong.append(position)

    threads = [threading.Thread(target=call, args=(position,)) for position in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_cache_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BBREWRITE_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.raises(InputError, match=r"file/cache, cannot be written: (?s:.*)BBREWRITE_CACHE_DIR"):
        bbrewrite.compile(LINEAR)


def test_what_was_compiled_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BBREWRITE_CACHE_DIR", str(cache_with_products(tmp_path)))
    arrays = _arrays(6, 8, 5)
    first = bbrewrite.compile(LINEAR)(*arrays)
    path = tmp_path / "linear.bb"
    path.write_text(LINEAR, encoding="utf-8")
    # Another process needs no compiler. It starts within milliseconds, so it imports neither the stages nor what of
    # Python takes as long as all the rest.
    stages = "cli|codegen|egraph|fusion|interpret|lower|pipeline|plan|request|rules|tuning|verify"
    slow = "argparse|click|dataclasses|difflib|egglog|hashlib|inspect|json|lark|ml_dtypes|tempfile"
    script = (
        "import re, sys, numpy, bbrewrite;"
        f"x, w, b = numpy.load({str(tmp_path / 'a.npz')!r}).values(); known = set(sys.modules);"
        f"y = bbrewrite.compile({str(path)!r})(x, w, b); numpy.save({str(tmp_path / 'y.npy')!r}, y);"
        f"found = [m for m in set(sys.modules) - known if re.match(r'(bbrewrite.({stages})|{slow})\\b', m)];"
        "assert 'bbrewrite.api.remembered' in sys.modules and not found, found"
    )
    np.savez(tmp_path / "a.npz", *arrays)
    subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, "PATH": ""})
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), first)
    # Other choices are other programs.
    for choice in ({"sizes": {"m": 7}}, {"blocks": {"m": 2}}, {"threads": 1}, {"rules": ()}):
        np.testing.assert_allclose(bbrewrite.compile(LINEAR, **choice)(*arrays), first, 1e-4, 1e-5)
    assert len(list((tmp_path / "compiled").iterdir())) == 5
