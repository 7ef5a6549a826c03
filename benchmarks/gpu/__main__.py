"""`python -m benchmarks.gpu`: all that a GPU is needed for, in the order in which it is worth knowing.

Conformance of every block operator, compute-sanitizer on it, then times against cuBLAS, PyTorch's SDPA, FlexAttention
and torch.compile; one table at the end. It needs the extras `cuda` and `gpu`, and PyTorch for the times. It stops
beginning new parts when its minutes are spent.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from time import perf_counter

from bbrewrite.runtime.gpu import Device, GpuMissing, find_gpu


def main() -> int:
    """Runs the parts; 1 where something is wrong, 3 where there is no GPU."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--only-conformance", action="store_true", help="what compute-sanitizer runs")
    arguments = parser.parse_args()
    deadline = perf_counter() + 60 * arguments.minutes
    try:
        device = find_gpu()
    except GpuMissing as missing:
        print(missing, file=sys.stderr)
        return 3
    print(f"{device.name}, {device.architecture}")
    right = _conformance(device)
    if arguments.only_conformance:
        return 0 if right else 1
    right &= _sanitized()
    _times(device, deadline)
    return 0 if right else 1


def _conformance(device: Device) -> bool:
    from benchmarks.gpu.checking import check_conformance

    right = True
    for checked in check_conformance(device):
        right &= checked.ok
        verdict = "right" if checked.ok else "WRONG"
        print(
            f"{verdict}  {checked.label}: GPU {checked.gpu_error:.1e}, emulated {checked.emulator_error:.1e}",
            flush=True,
        )
        for fault in checked.faults:
            print(f"    {fault}")
    return right


def _sanitized() -> bool:
    """The same once more under NVIDIA's own checks, where they are installed."""
    tool = shutil.which("compute-sanitizer")
    if tool is None:
        print("compute-sanitizer was not found: its checks are left out")
        return True
    command = [tool, "--error-exitcode", "9", sys.executable, "-m", "benchmarks.gpu", "--only-conformance"]
    code = subprocess.run(command, check=False).returncode
    print("compute-sanitizer: " + ("nothing found" if code == 0 else f"exit code {code}"))
    return code == 0


def _times(device: Device, deadline: float) -> None:
    from benchmarks.gpu.programs import timed_programs
    from benchmarks.gpu.timing import time_program

    lines: list[str] = []
    for program in timed_programs():
        if perf_counter() > deadline:
            lines.append(f"{program.label}: no time left")
            continue
        lines.append(time_program(device, program).line)
        print(lines[-1], flush=True)
    print("\nprogram, ours, rate, largest difference, others (their speed relative to ours)")
    print("\n".join(lines))


if __name__ == "__main__":
    sys.exit(main())
