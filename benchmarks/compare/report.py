"""The comparison as a table, as JSON and as a bar chart."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from math import exp, log
from pathlib import Path
from typing import Any

from benchmarks.compare.measuring import Row


def table_lines(row: Row) -> list[str]:
    """A workload's contenders, the fastest first."""
    lines = [f"{row.workload.label}: {row.fraction:.0%} of {row.limit_name} ({row.limit * 1e-9:.1f} G/s)"]
    lines[0] += f", ratio {row.ratio:.2f}" if row.ratio else ""
    for each in sorted(row.contenders, key=lambda one: one.seconds if not one.fault else float("inf")):
        if each.fault:
            lines.append(f"  {each.name:20}{each.fault}")
            continue
        rate = row.workload.flops if row.workload.is_product else row.workload.least_bytes
        unit = "GFLOP/s" if row.workload.is_product else "GB/s"
        spread = (max(each.rounds) - min(each.rounds)) / each.seconds
        lines.append(
            f"  {each.name:20}{each.seconds * 1e3:10.3f} ms {rate / each.seconds * 1e-9:8.1f} {unit}"
            f"  spread {spread:4.0%}  error {each.error:.1e}"
        )
    return lines


def summary_lines(rows: Sequence[Row]) -> list[str]:
    """The geometric mean and the least ratio of each kind."""
    kinds: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows:
        if row.ratio:
            kinds[row.workload.kind, row.workload.element].append(row.ratio)
    return [
        f"{kind} {element}: geometric mean {exp(sum(map(log, ratios)) / len(ratios)):.2f}, least {min(ratios):.2f}"
        for (kind, element), ratios in kinds.items()
    ]


def as_json(rows: Sequence[Row], threads: int) -> str:
    """Everything that was measured."""

    def one(row: Row) -> dict[str, Any]:
        return {
            "kind": row.workload.kind,
            "shape": row.workload.shape,
            "element": row.workload.element,
            "limit": row.limit_name,
            "limit_per_second": row.limit,
            "fraction_of_limit": row.fraction,
            "ratio": row.ratio,
            "contenders": [
                {"name": each.name, "round_seconds": each.rounds, "error": each.error, "fault": each.fault}
                for each in row.contenders
            ],
        }

    return json.dumps({"threads": threads, "rows": [one(row) for row in rows]}, indent=1)


def draw_chart(rows: Sequence[Row], path: Path) -> None:
    """Bars of the best peer's time over ours. Raises ImportError without matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = [row for row in rows if row.ratio]
    figure, axes = pyplot.subplots(figsize=(8, 1 + 0.28 * len(shown)), layout="constrained")
    ratios = [row.ratio or 0.0 for row in shown]
    bars = axes.barh(range(len(shown)), ratios, color=["#2a7" if ratio >= 1 else "#c75" for ratio in ratios])
    axes.bar_label(bars, [f"{row.ratio:.2f} ({row.best_peer.name})" for row in shown if row.best_peer])
    axes.set_yticks(range(len(shown)), [row.workload.label for row in shown])
    axes.invert_yaxis()
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xlabel("best library's time / ours (more is better)")
    axes.margins(x=0.25)
    figure.savefig(path)
    pyplot.close(figure)
