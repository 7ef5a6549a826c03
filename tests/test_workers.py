"""Other processes change nothing in what tasks come to, however they fare."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from bbrewrite.workers import Workers
from tests import worker_tasks

TASKS = range(20)
UNGUARDED = """
import signal
from bbrewrite.workers import Workers
from tests import worker_tasks
signal.signal(signal.SIGPIPE, {on_broken_pipe})
print("main")
with Workers("tests.worker_tasks:{maker}", 100, 2) as workers:
    for _ in range(3):
        found = workers.results(list(range(20)), worker_tasks.adding_slowly(100))
    print([total for total, _ in found])
try:
    with Workers("tests.worker_tasks:adding", bytes(10**7), 2) as workers:
        workers.results(list(range(20)), [].index)
except ValueError:
    print("an error while much is still to be read")
"""


def by_several(workers: Workers, tasks: Sequence[int]) -> list[int]:
    """What tasks come to where other processes had a part in it; on a busy machine they start late."""
    for _ in range(100):
        found = workers.results(tasks, worker_tasks.adding_slowly(100))
        if len({process for _, process in found}) > 1:
            return [total for total, _ in found]
    pytest.fail("no other process did anything")


@pytest.mark.parametrize("maker", ["adding", "printing"])
def test_tasks_are_done_side_by_side_and_come_back_in_their_order(maker: str) -> None:
    with Workers(f"tests.worker_tasks:{maker}", 100, 3) as workers:
        assert by_several(workers, TASKS) == [100 + task for task in TASKS]


@pytest.mark.parametrize("processors", [1, 2])
def test_few_tasks_start_no_process(processors: int) -> None:
    with Workers("tests.worker_tasks:adding", 0, processors) as workers:
        found = workers.results(TASKS if processors == 1 else range(3), worker_tasks.adding(0))
    assert {process for _, process in found} == {os.getpid()}


@pytest.mark.parametrize("maker", ["ending", "not_starting", "missing"])
def test_what_a_process_leaves_undone_is_done_here(maker: str) -> None:
    with Workers(f"tests.worker_tasks:{maker}", None, 2) as workers:
        for _ in range(2):
            assert workers.results(TASKS, lambda task: task + 1) == [task + 1 for task in TASKS]


def test_what_cannot_be_sent_is_done_here() -> None:
    tasks = [lambda number=number: number for number in TASKS]
    with Workers("tests.worker_tasks:adding", 100, 2) as workers:
        assert workers.results(tasks, lambda task: task()) == list(TASKS)


def test_errors_are_those_of_this_process() -> None:
    with (
        Workers("tests.worker_tasks:failing", None, 2) as workers,
        pytest.raises(ValueError, match=r"^3$"),
    ):
        # All but one are done elsewhere or here alike.
        workers.results([*[2] * 30, 3], worker_tasks.failing(None))


def test_processes_that_run_help_with_few_tasks_too() -> None:
    with Workers("tests.worker_tasks:adding", 100, 2) as workers:
        by_several(workers, TASKS)
        assert by_several(workers, range(2)) == [100, 101]


def test_processes_end_with_what_they_were_started_for() -> None:
    with Workers("tests.worker_tasks:adding", 0, 3) as workers:
        workers.results(TASKS, worker_tasks.adding(0))
        running = [worker.process for worker in workers.running]
        assert running
    assert all(process.returncode is not None for process in running)


@pytest.mark.parametrize("maker", ["adding", "ending"])
@pytest.mark.parametrize("on_broken_pipe", ["signal.SIG_IGN", "signal.SIG_DFL"])
def test_a_script_is_not_run_again_and_runs_to_its_end(tmp_path: Path, maker: str, on_broken_pipe: str) -> None:
    """As a program that guards nothing, and as a command that a broken pipe ends."""
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED.format(maker=maker, on_broken_pipe=on_broken_pipe))
    root = Path(__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    found = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, env=environment)
    last = "an error while much is still to be read"
    assert found.stdout == f"main\n{[100 + task for task in TASKS]}\n{last}\n"
    assert not found.stderr
