"""`python -m benchmarks.compare`: times our kernels and the libraries side by side, and writes JSON and a chart.

Every workload is run twice. The first time chooses the library to compare with, out of all that are installed; the
second time, later and in more rounds, times it beside ours, so that no ratio owes anything to a lucky choice.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

from benchmarks.compare.results import Results, Row, Times, fastest, read_results

_LIBRARIES = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO", "torch": "PyTorch", "jax": "JAX", "numpy": "NumPy"}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--element", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--only", default="", help="rows whose label contains one of these texts, comma-separated")
    parser.add_argument("--peers", help="names of libraries, comma-separated; by default all")
    parser.add_argument("--best-from", type=Path, help="results of an earlier run, which choose the libraries instead")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--choosing-rounds", type=int, default=3, help="rounds of the run that chooses")
    parser.add_argument("--call-ms", type=float, default=30, help="timed calls of one contender in one round")
    parser.add_argument("--json", type=Path, help="write all times here")
    parser.add_argument("--chart", type=Path, help="draw the ratios here (.png or .svg); needs matplotlib")
    return parser.parse_args()


def main() -> int:
    """Runs the comparison; 1 where a result of ours is wrong."""
    arguments = _arguments()
    # Libraries read these when they are loaded.
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(arguments.threads)
    from dataclasses import replace

    from benchmarks.compare.libraries import BUILDERS
    from benchmarks.compare.limits import Limits
    from benchmarks.compare.measuring import measure
    from benchmarks.compare.report import draw_chart, summary_lines, table_lines
    from benchmarks.compare.workloads import Workload, all_workloads

    wanted = [text for text in arguments.only.split(",") if text] or [""]
    workloads = [w for w in all_workloads(arguments.element) if any(text in w.label for text in wanted)]
    limits = Limits(arguments.threads)

    def timed(workload: Workload, names: Sequence[str], rounds: int) -> Row:
        # A copy, since a workload keeps its arrays.
        return measure(replace(workload), names, arguments.threads, rounds, arguments.call_ms / 1e3, limits)

    if arguments.best_from:
        earlier = _earlier_times(arguments.best_from)
    else:
        names = list(BUILDERS) if arguments.peers is None else [name for name in arguments.peers.split(",") if name]
        earlier = {}
        for workload in workloads:
            row = timed(workload, names, arguments.choosing_rounds)
            earlier[row.label] = row.contenders
            print("\n".join(["choosing among", *table_lines(row)]), flush=True)
    results = Results(_processor(), arguments.threads, arguments.rounds, _versions())
    for workload in workloads:
        chosen_from = earlier.get(workload.label, ())
        peer = fastest(chosen_from)
        row = timed(workload, [peer.name] if peer else [], arguments.rounds)
        row = replace(row, chosen_from=chosen_from)
        results = results.with_row(row)
        print("\n".join(table_lines(row)), flush=True)
        if arguments.json:
            results.write(arguments.json)
    print("\n".join(summary_lines(results.rows)))
    if arguments.chart and results.rows:
        try:
            draw_chart(results.rows, arguments.chart)
        except ImportError as error:
            print(f"no chart: {error.name} is not installed", file=sys.stderr)
    return int(any(row.ours.fault for row in results.rows))


def _earlier_times(path: Path) -> Mapping[str, tuple[Times, ...]]:
    """What each row of earlier results was chosen from, or else what it timed."""
    return {row.label: row.chosen_from or row.contenders for row in read_results(path).rows}


def _processor() -> str:
    """The processor's name where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _versions() -> dict[str, str]:
    """The versions of the libraries that are installed, by the names that people know."""
    found: dict[str, str] = {}
    for package, name in _LIBRARIES.items():
        try:
            found[name] = metadata.version(package).partition("+")[0]
        except metadata.PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    sys.exit(main())
