"""The command as a process: what a shell sees."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import pytest

_COMMAND = [sys.executable, "-m", "bbrewrite.cli.main"]


def _process(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*_COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False, **options)


def test_help_is_quick_and_imports_nothing_heavy() -> None:
    heavy = ("numpy", "egglog", "lark", "rich")
    program = f"import sys; import bbrewrite.cli.main; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "[]"
    start = monotonic()
    assert _process("--help").returncode == 0
    assert monotonic() - start < 2  # on a machine that does much else besides


def test_json_is_all_there_is_on_standard_output(rules: Path, scaled_sum: Path) -> None:
    done = _process("run", rules, scaled_sum, "--target", "numpy", "--size", "m=4", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ok"] is True
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "code"), [(["run"], 2), (["frobnicate"], 2), (["check", "none"], 2), (["--version"], 0)]
)
def test_exit_codes(arguments: list[str], code: int) -> None:
    done = _process(*arguments)
    assert done.returncode == code
    assert "Traceback" not in done.stderr


def test_interruption_ends_without_a_traceback(rules: Path, scaled_sum: Path) -> None:
    process = subprocess.Popen(
        [*_COMMAND, "run", str(rules), str(scaled_sum), "--target", "numpy", "--size", "m=20000000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    sleep(2.5)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert output == ""


def test_a_closed_pipe_is_no_fault(rules: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [*_COMMAND, "check", str(rules), "--emit", "egglog"],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write)
    assert "Traceback" not in done.stderr
