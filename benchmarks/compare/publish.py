"""`python -m benchmarks.compare.publish RESULTS.json...`: the README's chart and table of speed, from stored results.

Results of one element type are joined, later rows replacing earlier ones, and stored beside this file; without
arguments what is stored is shown again. No number of the README is typed by hand.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.compare.report import draw_chart, machine_sentence, markdown_table
from benchmarks.compare.results import Results, read_results

_STORED = Path(__file__).with_name("results")
_ROOT = Path(__file__).parents[2]
_CHART = "docs/speed.svg"
BEGIN, END = "<!-- speed: written by benchmarks.compare.publish -->", "<!-- end of speed -->"


def stored_results() -> list[Results]:
    """The results that the README shows, f32 first."""
    return [read_results(path) for path in sorted(_STORED.glob("*.json"), reverse=True)]


def joined(runs: Sequence[Results]) -> dict[str, Results]:
    """The results of each element type, with the rows of all runs; of rows for one workload the last."""
    found: dict[str, Results] = {}
    for run in runs:
        for row in run.rows:
            known = found.get(row.element, replace(run, rows=()))
            others = [each for each in known.rows if each.label != row.label]
            found[row.element] = replace(run, rows=(*others, row))
    return found


def with_results(readme: str, runs: Sequence[Results]) -> str:
    """The README with its table made of these results."""
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    chart = f"![The best library's time over ours, a bar for each workload]({_CHART})"
    parts = ("", machine_sentence(runs), "", markdown_table(runs), "", chart, "")
    return before + BEGIN + "\n".join(parts) + END + after


def main(paths: Sequence[str]) -> int:
    """Stores given results by their element type, and writes chart and table."""
    for element, results in joined([read_results(Path(path)) for path in paths]).items():
        results.write(_STORED / f"{element}.json")
    runs = stored_results()
    readme = _ROOT / "README.md"
    readme.write_text(with_results(readme.read_text(encoding="utf-8"), runs), encoding="utf-8")
    draw_chart([row for run in runs for row in run.rows], _ROOT / _CHART)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
