"""`python -m benchmarks.compare`: times our kernels and the libraries side by side, and writes JSON and a chart."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--element", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--only", default="", help="rows whose label contains one of these texts, comma-separated")
    parser.add_argument("--peers", help="names of libraries, comma-separated; by default all")
    parser.add_argument("--rounds", type=int, default=7)
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
    from benchmarks.compare.libraries import BUILDERS
    from benchmarks.compare.limits import Limits
    from benchmarks.compare.measuring import Row, measure
    from benchmarks.compare.report import as_json, draw_chart, summary_lines, table_lines
    from benchmarks.compare.workloads import all_workloads

    names = list(BUILDERS) if arguments.peers is None else [name for name in arguments.peers.split(",") if name]
    wanted = [text for text in arguments.only.split(",") if text] or [""]
    limits = Limits(arguments.threads)
    rows: list[Row] = []
    for workload in all_workloads(arguments.element):
        if not any(text in workload.label for text in wanted):
            continue
        row = measure(workload, names, arguments.threads, arguments.rounds, arguments.call_ms / 1e3, limits)
        rows.append(row)
        print("\n".join(table_lines(row)), flush=True)
        if arguments.json:
            arguments.json.write_text(as_json(rows, arguments.threads), encoding="utf-8")
    print("\n".join(summary_lines(rows)))
    if arguments.chart and rows:
        try:
            draw_chart(rows, arguments.chart)
        except ImportError as error:
            print(f"no chart: {error.name} is not installed", file=sys.stderr)
    return int(any(row.ours.fault for row in rows))


if __name__ == "__main__":
    sys.exit(main())
