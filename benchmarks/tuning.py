"""How far the model's own choices are from tuned plans: each program is tuned, and both are measured in turns.

    python -m benchmarks.tuning [--budget 60] [--threads 2] [--json FILE] [program.bb ...]

A ratio is the time of the model's own choice over the tuned one's, lower quartiles of runs that take turns. A large
program is tuned class by class. What was found is kept for later runs, as `bbrewrite bench --tune` keeps it.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from math import exp, log
from pathlib import Path

from bbrewrite.request import make_request, read_program
from bbrewrite.resources import resource_directory
from bbrewrite.rules.load import load_rules
from bbrewrite.runtime.library import default_threads
from bbrewrite.tuning.search import Tuned, tune

EXAMPLES = Path(__file__).parents[1] / "examples"


def row(program: str, tuned: Tuned) -> dict[str, object]:
    """A line of the table."""
    winner = tuned.winner
    return {
        "program": program if tuned.name == program else f"{program}, {tuned.name}",
        "own_ms": winner.own_milliseconds,
        "tuned_ms": winner.milliseconds,
        "ratio": winner.own_milliseconds / winner.milliseconds,
        "measured": winner.measured,
        "wrong": tuned.wrong,
    }


def main() -> None:
    """The command."""
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("programs", nargs="*", type=Path)
    parser.add_argument("--budget", type=float, default=60.0)
    parser.add_argument("--threads", type=int, default=default_threads())
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rules = load_rules(resource_directory("rules"))
    rows: list[dict[str, object]] = []
    print(f"{'program':40} {'own ms':>9} {'tuned ms':>9} {'ratio':>6} {'measured':>9}")
    for path in options.programs or sorted(EXAMPLES.glob("*.bb")):
        request = make_request(read_program(path, rules.table), rules, threads=options.threads)
        for tuned in tune(request, options.budget, 0)[1]:
            found = row(request.program.name, tuned)
            rows.append(found)
            print(
                f"{found['program']:40} {found['own_ms']:9.3f} {found['tuned_ms']:9.3f} {found['ratio']:6.2f}"
                f" {found['measured']:9}",
                flush=True,
            )
    ratios = [tuned["ratio"] for tuned in rows]
    mean = exp(sum(log(float(str(ratio))) for ratio in ratios) / len(ratios)) if ratios else 1.0
    worst = max((float(str(ratio)) for ratio in ratios), default=1.0)
    print(f"geometric mean {mean:.2f}, worst {worst:.2f}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
