"""Arguments of `bbrewrite.compile` of every wrong kind: refused by name before any stage runs; whole numbers of NumPy
are as good as Python's.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bbrewrite
from bbrewrite.limits import LARGEST_EXTENT, MOST_THREADS
from bbrewrite.runtime.library import default_threads

INCREMENT = "program increment\nindex m = 4\ninput Q[m] : f32\noutput Y[m] = Q[m] + 1\n"

_NOT_WHOLE: list[Any] = [2.5, "2", "x", None, [2], np.float32(2), np.array([1, 2])]


@pytest.fixture
def no_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    def begun(*_: object) -> None:
        pytest.fail("a stage has begun")

    monkeypatch.setattr("bbrewrite.api.compile.Program", begun)
    monkeypatch.setattr("bbrewrite.api.device.DeviceProgram", begun)


def _refused(kind: type[Exception], **arguments: Any) -> str:
    with pytest.raises(kind) as caught:
        bbrewrite.compile(**{"program": INCREMENT, **arguments})
    return str(caught.value)


@pytest.mark.usefixtures("no_stage")
@pytest.mark.parametrize("target", ["cpp", "numpy", "cuda"])
@pytest.mark.parametrize("argument", ["sizes", "blocks"])
def test_numbers_that_no_index_can_have(argument: str, target: str) -> None:
    least = {"sizes": 0, "blocks": 1}[argument]
    for value in (least - 1, -(2**63), LARGEST_EXTENT + 1, np.int64(least - 1), 10**5000):
        told = _refused(ValueError, target=target, **{argument: {"n": 4, "m": value}})
        assert told.startswith(f"{argument}['m'] must be a whole number from {least} to {LARGEST_EXTENT}, not ")
    for value in _NOT_WHOLE:
        told = _refused(TypeError, target=target, **{argument: {"n": 4, "m": value}})
        assert told.startswith(f"{argument}['m'] must be a whole number from {least} to {LARGEST_EXTENT}, not ")
    for value in ([1], 3, "m=4", {1: 4}, {("m",): 4}, {None: 4}):
        assert _refused(TypeError, target=target, **{argument: value}).startswith(f"{argument} must ")


@pytest.mark.usefixtures("no_stage")
@pytest.mark.parametrize("target", ["cpp", "numpy", "cuda"])
def test_threads_out_of_range(target: str) -> None:
    told = f"threads must be a whole number from 1 to {MOST_THREADS}, not "
    for value in (0, -1, MOST_THREADS + 1, 1_000_000, 2**70, np.int32(0)):
        assert _refused(ValueError, target=target, threads=value) == f"{told}{value}"
    for value in _NOT_WHOLE:
        if value is not None:
            assert _refused(TypeError, target=target, threads=value) == f"{told}{value!r}"


@pytest.mark.parametrize("target", ["cpp", "numpy"])
def test_threads_of_a_call_are_bounded_too(target: str) -> None:
    program = bbrewrite.compile(INCREMENT, target=target)  # pyright: ignore[reportArgumentType]
    array = np.zeros(4, np.float32)
    for value in (0, MOST_THREADS + 1, 1_000_000):
        with pytest.raises(ValueError, match=f"threads must be a whole number from 1 to {MOST_THREADS}, not {value}"):
            program(array, threads=value)
    for wrong in (2.5, "2"):
        with pytest.raises(TypeError, match=f"threads must be a whole number from 1 to {MOST_THREADS}, not {wrong!r}"):
            program(array, threads=wrong)  # pyright: ignore[reportArgumentType]


def test_no_more_threads_are_used_unasked_than_may_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(MOST_THREADS + 1), raising=False)
    assert default_threads() == MOST_THREADS


@pytest.mark.usefixtures("no_stage")
@pytest.mark.parametrize("argument", ["program", "rules"])
def test_what_is_neither_path_nor_text(argument: str) -> None:
    values: list[Any] = [3, b"x", 2.5, object()]
    values += {"program": [None, ["a.bb"], {"a": 1}], "rules": [[3], ["a\n", None], (b"x",)]}[argument]
    for value in values:
        assert _refused(TypeError, **{argument: value}).startswith(f"{argument} must be a path")
    assert _refused(ValueError, **{argument: ""}) == f"{argument} is empty: give the path of a file, or a text"


def test_whole_numbers_of_numpy_and_paths_of_any_kind(tmp_path: Path) -> None:
    class Place:
        def __fspath__(self) -> str:
            return str(tmp_path / "increment.bb")

    (tmp_path / "increment.bb").write_text(INCREMENT, encoding="utf-8")
    array = np.zeros(5, np.float32)
    program = bbrewrite.compile(
        Place(),  # pyright: ignore[reportArgumentType]
        rules=(),
        sizes={"m": np.int64(5)},  # pyright: ignore[reportArgumentType]
        blocks={"m": np.uint8(2)},  # pyright: ignore[reportArgumentType]
        threads=np.int32(1),  # pyright: ignore[reportArgumentType]
        fast_math=np.True_,  # pyright: ignore[reportArgumentType]
        tuned=np.False_,  # pyright: ignore[reportArgumentType]
    )
    np.testing.assert_array_equal(program(array, threads=np.int16(2)), array + 1)  # pyright: ignore[reportArgumentType]


def test_an_extent_of_nothing_may_be_planned_for() -> None:
    program = bbrewrite.compile(INCREMENT, sizes={"m": 0}, blocks={"m": 1}, threads=MOST_THREADS, target="numpy")
    assert program(np.zeros(0, np.float32)).shape == (0,)
