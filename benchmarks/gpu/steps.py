"""Runs the items of a part in a process of their own, which may fail, crash or hang without harm to the others.

The process says what came of each item as it ends (`worker.py`). Where it ends early, or an item takes too long, that
item has failed, and another process does the rest. Seconds are bounded for each item, for the part, and for all.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

# How lines begin that say what came of an item; libraries write other lines.
RESULT = "RESULT "
_NO_TIME = "no time left"


@dataclass(frozen=True)
class Step:
    """A part: its items, the seconds for all of them and for one, and the tool that the process runs under.

    What an item needs beside its name are `arguments`.
    """

    name: str
    items: tuple[str, ...]
    seconds: float
    seconds_each: float
    tool: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What came of an item."""

    step: str
    item: str
    ok: bool
    text: str

    @property
    def line(self) -> str:
        return f"{'right' if self.ok else 'WRONG'}  {self.item}: {self.text}"


def run_step(step: Step, deadline: float, rehearsal: bool = False) -> Iterator[Outcome]:
    """What came of the items, one after another; of all, whatever happens."""
    until = min(deadline, perf_counter() + step.seconds)
    waiting = list(step.items)
    while waiting:
        if perf_counter() >= until:
            yield from (Outcome(step.name, item, False, _NO_TIME) for item in waiting)
            return
        with _Process(step, waiting, rehearsal) as process:
            while waiting:
                allowed = min(step.seconds_each, until - perf_counter())
                try:
                    told = process.result(allowed)
                except TimeoutError:
                    text = f"took more than {allowed:.0f} s" if allowed == step.seconds_each else _NO_TIME
                    yield Outcome(step.name, waiting.pop(0), False, text)
                    break
                item = waiting.pop(0)
                if told is None:
                    yield Outcome(step.name, item, False, f"the process ended with exit code {process.exit_code()}")
                    break
                yield Outcome(step.name, item, told["ok"], told["text"])
            else:
                code = process.exit_code()
                if code != 0:
                    yield Outcome(step.name, " ".join(step.tool) or "the process", False, f"exit code {code}")


class _Process:
    """A worker, and whatever it starts; it is killed where it is left before it ends."""

    def __init__(self, step: Step, items: list[str], rehearsal: bool) -> None:
        flags = ["--rehearsal"] if rehearsal else []
        worker = [sys.executable, "-m", "benchmarks.gpu.worker", step.name, *flags]
        command = [*step.tool, *worker, "--items", *items, "--arguments", *step.arguments]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> _Process:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def result(self, seconds: float) -> dict[str, object] | None:
        """What the next item came to; None where the process ended. Raises TimeoutError."""
        try:
            line = self._lines.get(timeout=max(0.0, seconds))
        except queue.Empty:
            raise TimeoutError from None
        return None if line is None else json.loads(line)

    def exit_code(self) -> int:
        """That of the process, which has said all."""
        try:
            return self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            return -signal.SIGKILL

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(RESULT):
                self._lines.put(line.removeprefix(RESULT))
            else:
                print(line, end="", file=sys.stderr, flush=True)
        self._lines.put(None)
