"""`python -m benchmarks.gpu`, rehearsed: an emulated GPU, and NumPy for PyTorch; and parts that fail, crash or hang."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import pytest

from benchmarks.gpu import __main__ as day
from benchmarks.gpu.steps import Outcome, Step, run_step
from tests.codegen.cuda.programs import nvcc

_STUBS = Path(__file__).parent / "gpu_stubs"
_ROOT = Path(__file__).parents[2]

# A worker whose items are called what they do.
_WORKER = """\
#!{python} -IS
import json, os, sys, time
for item in sys.argv[sys.argv.index("--items") + 1 : sys.argv.index("--arguments")]:
    if item == "hangs":
        time.sleep(60)
    if item == "crashes":
        os._exit(3)
    print("what a library says")
    print("RESULT " + json.dumps({{"ok": item != "fails", "text": "done"}}), flush=True)
os._exit({code})
"""


def _rehearse(tmp_path: Path, match: str, sanitizer_finds: int) -> subprocess.CompletedProcess[str]:
    nvcc()
    tool = tmp_path / "compute-sanitizer"
    tool.write_text(f'#!/bin/sh\nshift 2\n"$@" || exit $?\nexit {sanitizer_finds}\n')
    tool.chmod(0o755)
    paths = os.pathsep.join([str(_STUBS), str(_ROOT), *sys.path])
    environment = {**os.environ, "PYTHONPATH": paths, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    command = [sys.executable, "-m", "benchmarks.gpu", "--rehearsal", "--match", match]
    return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)


def test_every_part_is_rehearsed(tmp_path: Path) -> None:
    done = _rehearse(tmp_path, "^(row sums bf16|attention causal m=128)$", 0)
    assert done.returncode == 0, done.stdout + done.stderr
    table = done.stdout.partition("\n\n")[2].splitlines()
    counts = [f"{part}: 1 of 1 right" for part in ("prepare", "conformance", "sanitizer", "times")]
    assert [line for line in table if line in counts] == counts
    assert "SDPA" in table[-1]
    assert "FlexAttention failed: no Triton here" in table[-1]


@pytest.mark.slow
def test_everything_is_rehearsed(tmp_path: Path) -> None:
    done = _rehearse(tmp_path, "", 9)
    assert done.returncode == 1
    table = done.stdout.partition("\n\n")[2]
    # Where processors are busy the compiler may not be done in time, and what it lacks is compiled later.
    wrong = [line.strip() for line in table.splitlines() if "WRONG" in line and "all:" not in line]
    assert wrong == ["WRONG  compute-sanitizer --error-exitcode 9: exit code 9"], table
    assert table.count("Tflop/s") == 6


def _step(*items: str) -> Step:
    return Step("part", items, 30, 2)


def _run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, step: Step, seconds: float, code: int = 0) -> list[Outcome]:
    worker = tmp_path / "worker"
    worker.write_text(_WORKER.format(python=sys.executable, code=code))
    worker.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(worker))
    return list(run_step(step, perf_counter() + seconds))


def test_an_item_that_fails_crashes_or_hangs_leaves_the_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = _run(monkeypatch, tmp_path, _step("one", "crashes", "two", "hangs", "fails", "three"), 60)
    assert [(outcome.item, outcome.text) for outcome in found] == [
        ("one", "done"),
        ("crashes", "the process ended with exit code 3"),
        ("two", "done"),
        ("hangs", "took more than 2 s"),
        ("fails", "done"),
        ("three", "done"),
    ]
    assert [outcome.item for outcome in found if outcome.ok] == ["one", "two", "three"]


def test_what_there_is_no_time_for_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = _run(monkeypatch, tmp_path, _step("hangs", "one"), 1)
    assert [(outcome.item, outcome.text) for outcome in found] == [("hangs", "no time left"), ("one", "no time left")]


def test_an_exit_code_at_the_end_is_a_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = _run(monkeypatch, tmp_path, _step("one"), 60, code=9)
    assert [(outcome.ok, outcome.text) for outcome in found] == [(True, "done"), (False, "exit code 9")]


def test_all_parts_fit_in_eight_minutes() -> None:
    """And a part never waits longer than its seconds: the rest of its items have no time left."""
    parts = day.steps(False, "")
    assert sum(part.seconds for part in parts) <= 8 * 60 - 15  # 15 to begin, and to end what hangs
    assert all(part.seconds_each <= part.seconds for part in parts)
