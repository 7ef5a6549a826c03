"""`python -m benchmarks.first_result`: how long a user waits for the first result of `bbrewrite.compile`.

Each program is compiled and called in a process of its own: cold, where the cache is empty, and warm, where an earlier
process left the library in it. The wait begins with the call of `bbrewrite.compile` and ends with the first result in
hand. What the call imports counts, since bbrewrite imports late; starting Python, importing NumPy and reading arrays
do not. Python's own bytecode is there, as an installation leaves it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.compare.workloads import Workload, all_workloads

_WARM_RUNS = 5
_ONE = """
import sys
import time
import numpy
import bbrewrite
text, path = open(sys.argv[1]).read(), sys.argv[2]
arrays = dict(numpy.load(path))
began = time.perf_counter()
program = bbrewrite.compile(text)
program(**arrays)
print(time.perf_counter() - began)
"""


@dataclass(frozen=True)
class Wait:
    """Milliseconds until the first result of one program, cold and warm."""

    label: str
    cold: float
    warm: float


def measure(workload: Workload, directory: Path) -> Wait:
    """Compiles and calls a workload's program in processes of their own, the first with an empty cache."""
    program, arrays = directory / "program.bb", directory / "arrays.npz"
    program.write_text(workload.text, encoding="utf-8")
    np.savez(arrays, **workload.inputs, **workload.weights)
    bytecode = {**os.environ, "PYTHONPYCACHEPREFIX": str(directory / "bytecode")}
    bytecode.pop("PYTHONDONTWRITEBYTECODE", None)

    def waited(cache: Path) -> float:
        environment = {**bytecode, "BBREWRITE_CACHE_DIR": str(cache)}
        command = [sys.executable, "-c", _ONE, str(program), str(arrays)]
        return float(subprocess.check_output(command, env=environment, text=True)) * 1e3

    if not (directory / "bytecode").exists():
        waited(directory / "another")
    with TemporaryDirectory() as cache:
        cold = waited(Path(cache))
        warm = [waited(Path(cache)) for _ in range(_WARM_RUNS)]
    return Wait(workload.label, cold, median(warm))


def main() -> int:
    """Measures one shape of each kind of work."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_result", description=__doc__)
    parser.add_argument("--only", default="", help="kinds of work that contain this text")
    arguments = parser.parse_args()
    # The smallest shape of each: how long kernels run is another benchmark's question.
    kinds = {workload.kind: workload for workload in reversed(all_workloads("f32"))}
    with TemporaryDirectory() as directory:
        for workload in reversed(kinds.values()):
            if arguments.only in workload.kind:
                wait = measure(workload, Path(directory))
                print(f"{wait.label:44} cold {wait.cold:6.0f} ms   warm {wait.warm:6.1f} ms", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
