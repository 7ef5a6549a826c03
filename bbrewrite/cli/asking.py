"""What the commands on a program share: reading what the user gave, and showing progress. It plans nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.console import Console

# Saturation imports its engine when first used; here it is imported at once, so that it counts as import time.
import bbrewrite.egraph.bindings  # noqa: F401  # isort: skip  # pyright: ignore[reportUnusedImport]

from bbrewrite.lang.diagnostics import counted
from bbrewrite.plan.target import Target, gpu_target
from bbrewrite.request import Request, make_request, read_program
from bbrewrite.rules.load import load_rules
from bbrewrite.timing import timed

# Parameters that other targets have no use for, and how the user writes them.
_FOR_GPUS = {"architecture": "--gpu", "tf32": "--tf32", "emulate": "--emulate"}


def read_request(rules: Path, program: Path, **choices: Any) -> tuple[Request, float]:
    """Reads and checks everything that the user gave; and how long parsing took. Raises InputError."""
    ruleset, rules_ms = timed(lambda: load_rules(rules))
    parsed, program_ms = timed(lambda: read_program(program, ruleset.table))
    if ruleset.warnings:
        click.echo(f"{rules}: {counted(len(ruleset.warnings), 'warning')}; `bbrewrite check` shows them", err=True)
    return make_request(parsed, ruleset, **choices), rules_ms + program_ms


def report_console() -> Console:
    """Where reports go. A terminal's lines are broken between words; lines of a file or a pipe are left whole."""
    return Console(highlight=False, soft_wrap=not sys.stdout.isatty())


@contextmanager
def progress() -> Generator[Callable[[str], None]]:
    """A function that shows on a terminal's standard error what is being done; elsewhere it shows nothing."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status("") as status:
        yield status.update


def asked_gpu(target: str, architecture: str, tf32: bool) -> Target | None:
    """The GPU that is planned for; None for the other targets, for which options of GPUs are refused."""
    if target == "cuda":
        return gpu_target(architecture, tf32)
    context = click.get_current_context()
    for name, option in _FOR_GPUS.items():
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{option} is for the target cuda")
    return None
