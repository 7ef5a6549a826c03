"""`bench --tune`: measures plans, keeps the fastest, and says how it compares with the model's own choice."""

from __future__ import annotations

from rich.console import Console

from bbrewrite.cli.asking import progress
from bbrewrite.lang.diagnostics import Diagnostic, InputError, counted
from bbrewrite.request import Request
from bbrewrite.tuning.search import Tuned, tune


def tune_and_print(console: Console, request: Request, target: str, budget: float, seed: int) -> None:
    """Tunes, and prints a line for the program or each class of it. Raises InputError for another target than C++."""
    if target != "cpp":
        raise InputError([Diagnostic("tune", f"--tune measures generated C++, not the target {target}")])
    with progress() as step:
        _, found = tune(request, budget, seed, step)
    for tuned in found:
        console.print(_line(tuned), markup=False)
    console.print()


def _line(tuned: Tuned) -> str:
    winner = tuned.winner
    wrong = f", {tuned.wrong} set aside for wrong results" if tuned.wrong else ""
    head = f"tuned {tuned.name}: {counted(winner.measured, 'plan')} measured{wrong}; "
    if tuned.is_own:
        return f"{head}none is faster than the model's own choice ({winner.own_milliseconds:.3g} ms)"
    ratio = winner.own_milliseconds / winner.milliseconds
    return (
        f"{head}the fastest takes {winner.milliseconds:.3g} ms, the model's own choice"
        f" {winner.own_milliseconds:.3g} ms ({ratio:.2f}x)"
    )
