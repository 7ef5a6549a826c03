"""Results for people: a table on the terminal, the README's table, and a bar chart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import exp, log
from pathlib import Path

from benchmarks.compare.results import Results, Row

_MULTIPLIED = "\N{MULTIPLICATION SIGN}"
_NOTHING = "\N{EN DASH}"


def table_lines(row: Row) -> list[str]:
    """A workload's contenders, the fastest first."""
    lines = [f"{row.label}: {row.fraction:.0%} of {row.limit_name} ({row.limit * 1e-9:.1f} G/s)"]
    lines[0] += f", ratio {row.ratio:.2f}" if row.ratio else ""
    for each in sorted(row.contenders, key=lambda one: one.seconds if not one.fault else float("inf")):
        if each.fault:
            lines.append(f"  {each.name:20}{each.fault}")
            continue
        spread = (max(each.rounds) - min(each.rounds)) / each.seconds
        lines.append(
            f"  {each.name:20}{each.seconds * 1e3:10.3f} ms {row.work / each.seconds * 1e-9:8.1f} {row.unit}"
            f"  spread {spread:4.0%}  error {each.error:.1e}"
        )
    return lines


def summary_lines(rows: Sequence[Row]) -> list[str]:
    """The geometric mean and the least ratio of each kind."""
    kinds: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows:
        if row.ratio:
            kinds[row.kind, row.element].append(row.ratio)
    return [
        f"{kind} {element}: geometric mean {_geometric_mean(ratios):.2f}, least {min(ratios):.2f}"
        for (kind, element), ratios in kinds.items()
    ]


def markdown_table(runs: Sequence[Results]) -> str:
    """The README's table: one line for each kind of work, with one column of ratios and one of limits for each run."""
    kinds = list(dict.fromkeys(row.kind for run in runs for row in run.rows))
    head = ["", "shapes", *(title for run in runs for title in _titles(run))]
    lines = [head, ["---"] * len(head)]
    for kind in kinds:
        of_runs = [[row for row in run.rows if row.kind == kind] for run in runs]
        shapes = dict.fromkeys(row.shape for rows in of_runs for row in rows)
        cells = [kind, ", ".join(_MULTIPLIED.join(map(str, shape)) for shape in shapes)]
        for rows in of_runs:
            by_shape = {row.shape: row for row in rows}
            cells.append(", ".join(_ratio(by_shape.get(shape)) for shape in shapes))
            cells.append(_limit(rows))
        lines.append(cells)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def machine_sentence(runs: Sequence[Results]) -> str:
    """What the runs ran on and with what, as one sentence of Markdown."""
    run = runs[0]
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    return f"Measured on {run.processor} with {run.threads} threads, {run.rounds} rounds, beside {versions}."


def _titles(run: Results) -> tuple[str, str]:
    element = run.rows[0].element if run.rows else ""
    return f"{element} ratios", "of the limit"


def _ratio(row: Row | None) -> str:
    return f"{row.ratio:.2f}" if row is not None and row.ratio else _NOTHING


def _limit(rows: Sequence[Row]) -> str:
    """The shares of each limit that rows reach, the least and the greatest."""
    limits: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        limits[row.limit_name].append(row.fraction)
    texts: list[str] = []
    for name, fractions in limits.items():
        least, most = f"{min(fractions) * 100:.0f}", f"{max(fractions) * 100:.0f}"
        texts.append(f"{least if least == most else f'{least} to {most}'} % of {name}")
    return "; ".join(texts) or _NOTHING


def _geometric_mean(ratios: Sequence[float]) -> float:
    return exp(sum(map(log, ratios)) / len(ratios))


def draw_chart(rows: Sequence[Row], path: Path) -> None:
    """Bars of the best library's time over ours. Raises ImportError without matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    # The same file for the same rows, and letters as letters.
    matplotlib.rcParams["svg.hashsalt"] = "bbrewrite"
    matplotlib.rcParams["svg.fonttype"] = "none"
    from matplotlib import pyplot

    shown = [row for row in rows if row.ratio]
    figure, axes = pyplot.subplots(figsize=(8, 1 + 0.24 * len(shown)), layout="constrained")
    ratios = [row.ratio or 0.0 for row in shown]
    bars = axes.barh(range(len(shown)), ratios, color=["#2a7" if ratio >= 1 else "#c75" for ratio in ratios])
    labels = [f"{row.ratio:.2f}  {row.best_peer.name}" for row in shown if row.best_peer]
    axes.bar_label(bars, labels, padding=3, fontsize=8)
    axes.set_yticks(range(len(shown)), [row.label for row in shown], fontsize=8)
    axes.invert_yaxis()
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xlabel("best library's time / ours (above 1 ours is faster)")
    axes.margins(x=0.2, y=0.01)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)
