"""`python -m benchmarks.gpu.worker`: does items of a part, and says what came of each. Started by `steps.py`."""

from __future__ import annotations

import argparse
import json
import os
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor

from bbrewrite.runtime.gpu import Device, find_gpu
from benchmarks.gpu.checking import check, compiled
from benchmarks.gpu.programs import CheckedProgram, checked_programs, conformance_programs, timed_programs
from benchmarks.gpu.steps import RESULT

type Done = tuple[bool, str]


def main() -> None:
    """Does the items in order."""
    parser = argparse.ArgumentParser()
    parser.add_argument("step")
    parser.add_argument("--rehearsal", action="store_true")
    parser.add_argument("--items", nargs="*")
    parser.add_argument("--arguments", nargs="*")
    given = parser.parse_args()
    device = find_gpu()
    work: dict[str, Callable[[str], Done]] = {
        "prepare": lambda _: _prepare(device, given.arguments, given.rehearsal),
        "conformance": lambda item: _check(device, conformance_programs(), item),
        "programs": lambda item: _check(device, checked_programs(given.rehearsal), item),
        "sanitizer": lambda item: _check(device, conformance_programs(), item),
        "times": lambda item: _time(device, given.rehearsal, item),
    }
    for item in given.items:
        try:
            ok, text = work[given.step](item)
        except Exception as fault:  # whatever it is, the next item is done
            traceback.print_exc()
            ok, text = False, f"{type(fault).__name__}: {fault}"
        print(RESULT + json.dumps({"ok": ok, "text": text}), flush=True)


def _prepare(device: Device, labels: Sequence[str], rehearsal: bool) -> Done:
    """Compiles what will be needed, on all processors: the compiler's products are kept."""
    programs = [*conformance_programs(), *checked_programs(rehearsal), *timed_programs(rehearsal)]
    texts = [program.text for program in programs if program.label in labels]
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        compilations = [pool.submit(_compile, device.target_name, text) for text in texts]
        faults = [str(fault) for done in compilations if (fault := done.exception()) is not None]
    return not faults, "; ".join(faults) or f"{len(texts)} programs compiled"


def _compile(target_name: str, text: str) -> None:
    compiled(target_name, text)


def _check(device: Device, programs: Sequence[CheckedProgram], label: str) -> Done:
    checked = check(device, _by_label(programs)[label])
    return checked.ok, checked.text


def _by_label(programs: Sequence[CheckedProgram]) -> Mapping[str, CheckedProgram]:
    return {program.label: program for program in programs}


def _time(device: Device, rehearsal: bool, label: str) -> Done:
    from benchmarks.gpu.timing import time_program

    (program,) = [program for program in timed_programs(rehearsal) if program.label == label]
    timed = time_program(device, program)
    return timed.ok, timed.line


if __name__ == "__main__":
    main()
