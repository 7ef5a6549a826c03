"""Whether the cost model puts plans in the order in which they run: predicted against measured times.

For each program: its snapshots are built and run, interleaved, and Spearman's rank correlation of predicted and
measured times is printed, for each program and for all of them together (there, of times relative to the program's
fastest plan). A large program is measured by the classes of its candidates. A program's plans that differ little in
time tell little; so do runs on a busy machine.

    python -m benchmarks.model_order [--runs 15] [--threads 2] [program.bb ...]
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np

from bbrewrite.fusion import Fusion, fuse, snapshot_plans
from bbrewrite.inputs import draw_inputs
from bbrewrite.plan.plans import Plan
from bbrewrite.request import make_request, read_program
from bbrewrite.resources import resource_directory
from bbrewrite.rules.load import load_rules
from bbrewrite.runtime.library import default_threads
from bbrewrite.runtime.module import compile_programs

EXAMPLES = Path(__file__).parents[1] / "examples"


@dataclass(frozen=True)
class Measured:
    """A plan with its measured time."""

    plan: Plan
    seconds: float


def measure(fusion: Fusion, runs: int) -> list[Measured]:
    """The fastest of some runs of each snapshot of a program and of its unfused form.

    The runs are interleaved, so that all plans meet the same disturbances.
    """
    request = fusion.request
    plans = list(snapshot_plans(fusion))
    if all(plan.terms != fusion.unfused.terms for plan in plans):
        plans.append(fusion.unfused)
    arrays = draw_inputs(request.program, request.extents, 0, request.given)
    compiled = compile_programs([plan.kernels for plan in plans], request.rules.table)
    outputs = [item.run(arrays, request.extents, request.threads) for item in compiled]
    best = [float("inf")] * len(plans)
    for _ in range(runs):
        for number, item in enumerate(compiled):
            start = perf_counter()
            item.run(arrays, request.extents, request.threads, out=outputs[number])
            best[number] = min(best[number], perf_counter() - start)
    return [Measured(plan, seconds) for plan, seconds in zip(plans, best, strict=True)]


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's: 1 where both orders agree, -1 where one is the other's reverse. Equal values share their rank."""
    ranks = [np.array([_rank(value, values) for value in values]) for values in (first, second)]
    deviations = [rank - rank.mean() for rank in ranks]
    scale = np.sqrt((deviations[0] ** 2).sum() * (deviations[1] ** 2).sum())
    return float((deviations[0] * deviations[1]).sum() / scale) if scale else float("nan")


def _rank(value: float, values: Sequence[float]) -> float:
    return sum(other < value for other in values) + (sum(other == value for other in values) - 1) / 2


def main() -> None:
    """The command."""
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("programs", nargs="*", type=Path)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--threads", type=int, default=default_threads())
    options = parser.parse_args()
    rules = load_rules(resource_directory("rules"))
    predicted: list[float] = []
    measured: list[float] = []
    for path in options.programs or sorted(EXAMPLES.glob("*.bb")):
        request = make_request(read_program(path, rules.table), rules, threads=options.threads)
        for part in fuse(request).classes:
            found = measure(part, options.runs)
            guesses, times = [item.plan.seconds for item in found], [item.seconds for item in found]
            print(f"{path.stem}: {len(found)} plans, rank correlation {rank_correlation(guesses, times):.2f}")
            for item in sorted(found, key=lambda item: item.plan.seconds):
                kernels, buffers = len(item.plan.kernels.kernels), len(item.plan.kernels.buffers)
                print(
                    f"  {kernels} kernels, {buffers} buffers:"
                    f" predicted {item.plan.seconds * 1e3:.3g} ms, measured {item.seconds * 1e3:.3g} ms"
                )
            predicted += [guess / min(guesses) for guess in guesses]
            measured += [time / min(times) for time in times]
    print(f"all: {len(measured)} plans, rank correlation {rank_correlation(predicted, measured):.2f}")


if __name__ == "__main__":
    main()
