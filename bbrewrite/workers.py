"""Other processes of this package, which do one kind of task beside this one: for work that takes many seconds.

They are programs of their own. A fork of a process that has threads may hang, and what Python's own pools start runs
the user's main module again. Of what a task comes to nothing depends on where it is done: what a process that ends or
fails leaves undone is done here, where its errors are raised. What the tasks are is for others to say.
"""

from __future__ import annotations

import importlib
import os
import pickle
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any

from bbrewrite.pickling import pickled

# What a process needs to start is then a small part of what it does.
_TASKS_EACH = 8
_MOST = 7

_PROGRAM = "import sys; sys.path[:] = {path!r}; from bbrewrite.workers import serve; serve()"


class Workers:
    """Up to as many processes as there are other processors, started where there is enough to do, ended on leaving.

    `maker` names a module's function, as "module:function"; in each process it makes of `start` what does the tasks.
    """

    def __init__(self, maker: str, start: Any, processors: int) -> None:
        self._beginning = (maker, start)
        can_start = bool(sys.executable) and not getattr(sys, "frozen", False)
        self._most = min(processors - 1, _MOST) if can_start else 0
        self.running: list[_Worker] = []

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.running:
            worker.end()

    def results[T, R](self, tasks: Sequence[T], here: Callable[[T], R]) -> list[R]:
        """What all tasks come to, in their order; begun in that order, so the longest are best first."""
        found: dict[int, R] = {}
        failed: list[int] = []
        waiting = deque(range(len(tasks)))
        workers, messages = self._sent(tasks)

        def waiting_still() -> Iterator[int]:
            with suppress(IndexError):
                while True:
                    yield waiting.popleft()

        def done_by(worker: _Worker) -> None:
            for number in waiting_still():
                try:
                    found[number] = worker.result(messages[number])
                except Exception:  # whatever it is, it shows again where the task is done here
                    failed.append(number)
                if not worker.runs:
                    return

        threads = [Thread(target=done_by, args=(worker,), daemon=True) for worker in workers]
        for thread in threads:
            thread.start()
        for number in waiting_still():
            found[number] = here(tasks[number])
        for thread in threads:
            thread.join()
        found.update((number, here(tasks[number])) for number in failed)
        return [found[number] for number in range(len(tasks))]

    def _sent(self, tasks: Sequence[Any]) -> tuple[Sequence[_Worker], Sequence[bytes]]:
        """The processes for so many tasks, and what they get to read of each."""
        enough = min(self._most, len(tasks) // _TASKS_EACH)
        if len(tasks) < 2 or not (enough or self.running):
            return (), ()
        try:
            # Now: what is done here meanwhile may change objects that tasks have in common.
            messages = [pickled(task) for task in tasks]
            while len(self.running) < enough:
                self.running.append(_Worker(pickled(self._beginning)))
        except Exception:  # too deep for pickling, or no memory for another process: all is done here
            return (), ()
        return [worker for worker in self.running if worker.runs], messages


class _Worker:
    """One process, which `runs` until something goes wrong between it and this one."""

    def __init__(self, beginning: bytes) -> None:
        # In a session of its own a process hears nothing of the terminal's Ctrl-C: it ends when its input does.
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM.format(path=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._unsent = beginning
        self.runs = True

    def result(self, task: bytes) -> Any:
        """What a pickled task comes to. Raises what goes wrong on the way."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.runs = False
        with _broken_pipes_as_errors():
            self.process.stdin.write(self._unsent + task)
            self.process.stdin.flush()
        self._unsent = b""
        is_done, found = pickle.load(self.process.stdout)
        self.runs = True
        if not is_done:
            raise RuntimeError(found)
        return found

    def end(self) -> None:
        self.process.kill()
        with _broken_pipes_as_errors():
            self.process.communicate()


@contextmanager
def _broken_pipes_as_errors() -> Generator[None]:
    """For this thread, as they are for Python by itself; a command that nobody listens to is ended by them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE})
    try:
        yield
    finally:
        if signal.SIGPIPE in signal.sigpending():
            signal.sigwait({signal.SIGPIPE})
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def serve() -> None:
    """Does the tasks that come in on standard input until it ends: all that such a process does."""
    tasks, results = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what is printed by mistake is no result
    with suppress(EOFError, BrokenPipeError):
        maker, start = pickle.load(tasks)
        module, name = maker.split(":")
        do = getattr(importlib.import_module(module), name)(start)
        while True:
            task = pickle.load(tasks)
            try:
                found = pickled((True, do(task)))
            except Exception as error:
                found = pickled((False, repr(error)))
            results.write(found)
            results.flush()
