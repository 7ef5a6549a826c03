"""`fuzz`: the soundness of every rule of some files, on a terminal or as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from bbrewrite.cli.exit_codes import WRONG_RESULT
from bbrewrite.core.operators import builtin_table
from bbrewrite.fuzz.campaign import Report, run_tasks, tasks_of
from bbrewrite.fuzz.soundness import Budget
from bbrewrite.lang.diagnostics import Diagnostic, InputError, did_you_mean, shortened
from bbrewrite.lang.sources import read_source
from bbrewrite.rules.load import known_rules
from bbrewrite.rules.rules import RuleSet
from bbrewrite.runtime.library import default_threads


def fuzz_command(
    paths: tuple[Path, ...], seed: int, budget: float, rule: str | None, jobs: int | None, as_json: bool
) -> None:
    """Reports on every rule as it is tested; exits with 1 where one is unsound or could not be tested."""
    sources = [read_source(file) for path in paths for file in _files(path)]
    rules = known_rules(sources)
    if rule is not None:
        _check_known(rule, rules)
    console = Console(highlight=False)
    known = tuple(builtin_table().monoids)
    width = max(60, console.width - 8)
    tasks = tasks_of(rules, known, Budget(seed, budget), width, rule or "")
    reports: list[Report] = []
    with _progress(len(tasks)) as step:
        for report in run_tasks(sources, rules, tasks, jobs or default_threads()):
            reports.append(report)
            step(report.name)
            if not as_json:
                _print(console, report)
    if as_json:
        order = {(task.what, task.name): position for position, task in enumerate(tasks)}
        reports.sort(key=lambda report: order[report.what, report.name])
        click.echo(_json(reports, seed))
    else:
        _print_summary(console, reports)
    if any(report.verdict != "sound" for report in reports):
        click.get_current_context().exit(WRONG_RESULT)


def _files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.rules")) if path.is_dir() else [path]


def _check_known(name: str, rules: RuleSet) -> None:
    names = [*(rule.name for rule in rules.rules), *rules.table.monoids]
    if name not in names:
        raise InputError(
            [Diagnostic("unknown-rule", f"--rule: there is no rule `{name}`", None, did_you_mean(name, names))]
        )


@contextmanager
def _progress(total: int) -> Generator[Callable[[str], None]]:
    """A function that advances a bar on a terminal's standard error; elsewhere it does nothing."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    columns = (TextColumn("fuzzing"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda name: bar.update(task, advance=1, description=name)


def _print(console: Console, report: Report) -> None:
    def line(text: str, style: str = "") -> None:
        console.print(text, style=style, markup=False, soft_wrap=True)

    label = "ok" if report.verdict == "sound" else report.verdict
    name = report.name if report.what == "rule" else f"monoid {report.name}"
    place = f"  {report.file}:{report.line}" if report.verdict != "sound" and report.file else ""
    detail = place or f"  {report.instances} instances, {_exactness(report)}  {report.seconds:.1f} s"
    line(f"{label:8} {name}{detail}", "" if report.verdict == "sound" else "bold red")
    for text in report.lines:
        line(f"    {shortened(text)}")
    if report.saved_by:
        line(f"    it would hold where {', or where '.join(report.saved_by)}")
    for text in report.notes:
        line(f"    note: {text}")
    for text in report.warnings:
        line(f"    warning: {text}", "yellow")


def _exactness(report: Report) -> str:
    forms = ", ".join(sorted(report.exact_in, key=lambda form: -report.exact_in[form])) or "exact numbers"
    return f"{forms} ({report.undecided} values undecided)" if report.undecided else forms


def _print_summary(console: Console, reports: list[Report]) -> None:
    count = Counter(report.verdict for report in reports)
    parts = [f"{count[verdict]} {verdict}" for verdict in ("sound", "unsound", "untested") if count[verdict]]
    warned = sum(bool(report.warnings) for report in reports)
    noted = sum(bool(report.notes) for report in reports)
    parts += [f"{warned} with warnings"] * bool(warned) + [f"{noted} with notes"] * bool(noted)
    console.print(f"\n{len(reports)} tested: {', '.join(parts) or 'there are no rules'}", markup=False)


def _json(reports: list[Report], seed: int) -> str:
    ok = all(report.verdict == "sound" for report in reports)
    return json.dumps({"ok": ok, "seed": seed, "reports": [asdict(report) for report in reports]})
