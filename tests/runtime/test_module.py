"""Calling compiled programs: arrays taken as they are, kept buffers, checked arguments, threads of the caller."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from bbrewrite.core.operators import builtin_table
from bbrewrite.core.programs import Role
from bbrewrite.core.terms import Number
from bbrewrite.plan.kernel import KernelProgram, Let, Loop, Store, Update
from bbrewrite.runtime.library import CompiledProgram
from bbrewrite.runtime.module import compile_program
from tests.codegen.kernel_cases import (
    F32,
    arrays_for,
    block,
    entrywise,
    indices,
    kernel,
    op,
    output,
    program,
    read,
    tensor,
    use,
)


def _program() -> KernelProgram:
    """Y[m] = the row sums of exp(X), through a buffer."""
    table, total = indices(m=4, n=8), block("total", "m")
    buffer = tensor("T", "m n", F32, Role.BUFFER)
    first = kernel(
        table, "m n", (Store(buffer, op("exp", read("X", "m", "n"))),), [tensor("X", "m n")], [buffer], "first"
    )
    body = (
        Let(total, Number(0.0)),
        Loop("n", (Update(total, op("add", use(total), op("row_sum", read("T", "m", "n")))),)),
        Store(output("Y", "m"), use(total)),
    )
    second = kernel(table, "m", body, [buffer], [output("Y", "m")], "second")
    return program("row_sums", [first, second], [buffer])


@pytest.fixture(scope="module")
def compiled() -> CompiledProgram:
    return compile_program(_program(), builtin_table())


def test_run(compiled: CompiledProgram) -> None:
    for extents in ({"m": 5, "n": 9}, {"m": 1, "n": 1}, {"m": 5, "n": 9}, {"m": 0, "n": 2}, {"m": 2, "n": 0}):
        arrays = arrays_for(_program(), extents, 0)
        found = compiled.run(arrays, extents, 2)["Y"]
        np.testing.assert_allclose(found, np.exp(arrays["X"]).sum(axis=1), rtol=1e-6)


def test_dense_arrays_are_passed_as_they_are_and_others_are_copied(compiled: CompiledProgram) -> None:
    extents = {"m": 6, "n": 10}
    x = arrays_for(_program(), extents, 1)["X"]
    expected = compiled.run({"X": x}, extents, 1)["Y"]
    for other in (x.T.copy().T, np.asfortranarray(x), np.repeat(x, 2, axis=1)[:, ::2]):
        np.testing.assert_array_equal(compiled.run({"X": other}, extents, 1)["Y"], expected)


def test_arrays_that_may_only_be_read_are_passed_as_they_are(compiled: CompiledProgram) -> None:
    extents = {"m": 6, "n": 10}
    x = arrays_for(_program(), extents, 1)["X"]
    expected = compiled.run({"X": x}, extents, 1)["Y"]
    x.setflags(write=False)
    np.testing.assert_array_equal(compiled.run({"X": x}, extents, 1)["Y"], expected)


def test_out_is_written(compiled: CompiledProgram) -> None:
    extents = {"m": 6, "n": 10}
    arrays = arrays_for(_program(), extents, 2)
    out = np.full(6, np.nan, np.float32)
    assert compiled.run(arrays, extents, 1, {"Y": out})["Y"] is out
    np.testing.assert_array_equal(out, compiled.run(arrays, extents, 1)["Y"])


def test_arguments_are_checked(compiled: CompiledProgram) -> None:
    extents = {"m": 2, "n": 3}
    x = np.zeros((2, 3), np.float32)
    calls = [
        ({}, extents, 1, None, "no array was given for X"),
        ({"X": x.T}, extents, 1, None, r"X has shape \(3, 2\), but \(2, 3\) is needed"),
        ({"X": x.astype(np.float64)}, extents, 1, None, "X is of type float64, but float32 is needed"),
        ({"X": x}, {"m": 2}, 1, None, "the extent of n was not given"),
        ({"X": x}, extents, 0, None, "threads must be a whole number from 1 to 1024, not 0"),
        ({"X": x}, extents, 1_000_000, None, "threads must be a whole number from 1 to 1024, not 1000000"),
        ({"X": x}, extents, 1, {"Y": np.zeros(2)}, "float32"),
        ({"X": x}, extents, 1, {"Y": np.zeros(3, np.float32)}, r"shape \(2,\)"),
        ({"X": x}, extents, 1, {"Y": np.zeros((2, 2), np.float32)[:, 0]}, "dense"),
        ({"X": x}, extents, 1, {"Y": x.reshape(-1)[:2]}, "overlaps an input"),
    ]
    for arrays, sizes, threads, out, message in calls:
        with pytest.raises(ValueError, match=message):
            compiled.run(arrays, sizes, threads, out)


def test_calls_from_several_threads(compiled: CompiledProgram) -> None:
    extents = {"m": 40, "n": 33}
    inputs = [arrays_for(_program(), extents, seed) for seed in range(8)]
    expected = [compiled.run(arrays, extents, 1)["Y"] for arrays in inputs]
    found: list[np.ndarray | None] = [None] * 8

    def call(position: int) -> None:
        for _ in range(20):
            found[position] = compiled.run(inputs[position], extents, 1)["Y"]

    threads = [threading.Thread(target=call, args=(position,)) for position in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_other_sizes_are_not_another_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BBREWRITE_CACHE_DIR", str(tmp_path))
    table = builtin_table()
    case = entrywise(
        "negated", op("negate", read("X", "m", "n")), indices(m=4, n=8), "m n", tensor("X", "m n"), output("Y", "m n")
    )
    first = compile_program(case, table)
    second = compile_program(case, table)
    assert first.library == second.library
    assert len(list(tmp_path.glob("*/library.so"))) == 1
    for extents in ({"m": 3, "n": 5}, {"m": 9, "n": 2}):
        arrays = arrays_for(case, extents, 3)
        np.testing.assert_array_equal(second.run(arrays, extents, 2)["Y"], -arrays["X"])
