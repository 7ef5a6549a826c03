"""`python -m benchmarks.gpu`: all that a GPU is needed for, in the order in which it is worth knowing.

Block operators one by one, whole programs against the reference, compute-sanitizer, then times against cuBLAS,
PyTorch's SDPA, FlexAttention and torch.compile; one table at the end. It needs the extras `cuda` and `gpu`, and PyTorch
for the times. A part that fails, hangs or crashes is a line of the table, and the next one begins; no part takes more
than its share of the minutes.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

from bbrewrite.runtime.gpu import GpuMissing, find_gpu
from benchmarks.gpu.programs import (
    CheckedProgram,
    TimedProgram,
    checked_programs,
    conformance_programs,
    timed_programs,
)
from benchmarks.gpu.steps import Outcome, Step, run_step

_PATIENCE = 30  # how many times as long a rehearsal may take

_HEADING = "program, ours, rate, largest difference, others (their speed relative to ours)"


def steps(rehearsal: bool, chosen: str) -> list[Step]:
    """The parts with their seconds, together less than 8 minutes; items are those in which `chosen` is found.

    A rehearsal may take longer, on whatever machine: it tells whether all is there, not how fast anything is.
    """

    def labels(programs: Sequence[CheckedProgram] | Sequence[TimedProgram]) -> tuple[str, ...]:
        return tuple(program.label for program in programs if re.search(chosen, program.label))

    conformance, timed = labels(conformance_programs()), labels(timed_programs(rehearsal))
    # Under the sanitizer all is many times as slow: one type stands for all.
    few = tuple(label for label in conformance if label.endswith("bf16"))
    found = [
        Step("prepare", ("all",), 60, 60, arguments=(*conformance, *labels(checked_programs(rehearsal)), *timed)),
        Step("conformance", conformance, 60, 20),
        Step("programs", labels(checked_programs(rehearsal)), 60, 30),
        Step("sanitizer", few, 60, 40, tool=("compute-sanitizer", "--error-exitcode", "9")),
        Step("times", timed, 225, 60),
    ]
    patience = _PATIENCE if rehearsal else 1
    return [
        replace(step, seconds=patience * step.seconds, seconds_each=patience * step.seconds_each)
        for step in found
        if step.items
    ]


def main() -> int:
    """Runs the parts; 1 where something is wrong, 3 where there is no GPU."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--minutes", type=float, default=8.0, help="for all parts together")
    parser.add_argument("--match", default="", help="only what this regular expression is found in")
    parser.add_argument("--rehearsal", action="store_true", help="time small sizes, where a stub stands for the GPU")
    arguments = parser.parse_args()
    deadline = perf_counter() + 60 * arguments.minutes * (_PATIENCE if arguments.rehearsal else 1)
    try:
        device = find_gpu()
    except GpuMissing as missing:
        print(missing, file=sys.stderr)
        return 3
    print(f"{device.name}, {device.architecture}", flush=True)
    outcomes: list[Outcome] = []
    for step in steps(arguments.rehearsal, arguments.match):
        began = perf_counter()
        if step.tool and shutil.which(step.tool[0]) is None:
            print(f"{step.tool[0]} was not found: its checks are left out")
            continue
        for outcome in run_step(step, deadline, arguments.rehearsal):
            print(f"{outcome.step:12} {outcome.line}", flush=True)
            outcomes.append(outcome)
        print(f"{step.name:12} took {perf_counter() - began:.0f} s", flush=True)
    print("\n" + "\n".join(table(outcomes)))
    return 0 if all(outcome.ok for outcome in outcomes) else 1


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """How many were right in each part, what was not, and the times."""
    lines: list[str] = []
    for name in dict.fromkeys(outcome.step for outcome in outcomes):
        own = [outcome for outcome in outcomes if outcome.step == name]
        lines.append(f"{name}: {sum(outcome.ok for outcome in own)} of {len(own)} right")
        lines += [f"    {outcome.line}" for outcome in own if not outcome.ok]
        if name == "times":
            lines += [_HEADING, *(f"{outcome.item:28} {outcome.text}" for outcome in own if outcome.ok)]
    return lines


if __name__ == "__main__":
    sys.exit(main())
