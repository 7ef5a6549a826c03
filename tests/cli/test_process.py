"""The command as a process: what a shell sees."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

_COMMAND = [sys.executable, "-m", "bbrewrite.cli.main"]

# The command, which is interrupted where a stage begins. What a shell starts in the background ignores interrupts, and
# so does all that it starts.
_INTERRUPTED = """\
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from bbrewrite import pipeline
from bbrewrite.cli.main import main

stage = getattr(pipeline, sys.argv[1])


def interrupted(*arguments, **named):
    os.kill(os.getpid(), signal.SIGINT)
    return stage(*arguments, **named)


setattr(pipeline, sys.argv.pop(1), interrupted)
main()
"""


def _process(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*_COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False, **options)


def test_help_imports_nothing_heavy() -> None:
    heavy = ("numpy", "egglog", "lark", "rich")
    program = f"import sys; import bbrewrite.cli.main; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "[]"
    assert _process("--help").returncode == 0


def test_json_is_all_there_is_on_standard_output(rules: Path, scaled_sum: Path) -> None:
    done = _process("run", rules, scaled_sum, "--target", "numpy", "--size", "m=4", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ok"] is True
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_a_second_run_starts_no_compiler(rules: Path, scaled_sum: Path, tmp_path: Path) -> None:
    log, wrapper = tmp_path / "log", tmp_path / "wrapper"
    wrapper.write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec c++ "$@" -O0\n', encoding="utf-8")
    wrapper.chmod(0o755)
    calls: list[str] = []
    for _ in range(2):
        done = _process(
            *("run", rules, scaled_sum, "--size", "m=4", "--json"),
            env={**os.environ, "CXX": str(wrapper), "BBREWRITE_CACHE_DIR": str(tmp_path / "cache")},
        )
        assert json.loads(done.stdout)["ok"] is True, done.stderr
        calls.append(log.read_text(encoding="utf-8"))
    assert "-shared" in calls[0]
    assert calls[1] == calls[0]
    wrapper.write_text(wrapper.read_text(encoding="utf-8") + "# another\n", encoding="utf-8")
    _process("run", rules, scaled_sum, "--size", "m=4", env={**os.environ, "CXX": str(wrapper)})
    assert log.read_text(encoding="utf-8") != calls[0]


@pytest.mark.parametrize(
    ("arguments", "code"), [(["run"], 2), (["frobnicate"], 2), (["check", "none"], 2), (["--version"], 0)]
)
def test_exit_codes(arguments: list[str], code: int) -> None:
    done = _process(*arguments)
    assert done.returncode == code
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("stage", ["draw_inputs", "fuse", "run_in_turns"])
def test_interruption_ends_without_a_traceback(rules: Path, scaled_sum: Path, stage: str) -> None:
    run = ("run", rules, scaled_sum, "--target", "numpy", "--size", "m=4")
    command = [sys.executable, "-c", _INTERRUPTED, stage, *map(str, run)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def _printing_commands(rules: Path, program: Path) -> list[list[object]]:
    """One for each way of printing: by the option parser, by lines and by the report's console."""
    return [
        ["--help"],
        ["lower", program, "--size", "m=4"],
        ["fuse", rules, program, "--size", "m=4"],
    ]


def test_a_closed_pipe_is_no_fault(rules: Path, scaled_sum: Path) -> None:
    for command in _printing_commands(rules, scaled_sum):
        read, write = os.pipe()
        os.close(read)
        done = _printing_to(write, command, scaled_sum)
        os.close(write)
        assert done.returncode == -signal.SIGPIPE, command
        assert done.stderr == "", command


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is always full")
def test_output_that_cannot_be_written(rules: Path, scaled_sum: Path) -> None:
    for command in _printing_commands(rules, scaled_sum):
        with open("/dev/full", "w") as full:
            done = _printing_to(full.fileno(), command, scaled_sum)
        assert done.returncode == 2, command
        assert done.stderr == "error[output]: standard output cannot be written: No space left on device\n", command


def _printing_to(output: int, command: list[object], program: Path) -> subprocess.CompletedProcess[str]:
    with program.open() as text:
        arguments = [*_COMMAND, *map(str, command)]
        return subprocess.run(arguments, stdin=text, stdout=output, stderr=subprocess.PIPE, text=True, check=False)


@pytest.mark.parametrize("command", ["codegen", "run"])
def test_a_disk_that_is_full(command: str, rules: Path, scaled_sum: Path, tmp_path: Path) -> None:
    option = "-o" if command == "codegen" else "--save"
    options = ["--size", "m=4", option, tmp_path / "made", *(["--target", "numpy"] if command == "run" else [])]
    # Files may not grow beyond 0 bytes.
    arguments = ["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", *_COMMAND, command, rules, scaled_sum, *options]
    done = subprocess.run(list(map(str, arguments)), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"{option}: cannot write {tmp_path / 'made'}" in done.stderr
    assert "Traceback" not in done.stderr
