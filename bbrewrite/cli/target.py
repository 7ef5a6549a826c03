"""`target`: the description of this machine, as it ships or as it was measured."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import click

from bbrewrite.cli.asking import progress
from bbrewrite.host import host_target, measured_host_file, shipped_host_file, unmeasured_host
from bbrewrite.plan.target import print_target
from bbrewrite.runtime.library import default_threads
from bbrewrite.runtime.probe import measured_target
from bbrewrite.writing import told_of_faults


def target_command(measure: bool, threads: int | None) -> None:
    """Prints the host's description, with `measure` after it was measured and written. Raises InputError."""
    path = measured_host_file()
    if not measure:
        shipped = f"{shipped_host_file()}, with the caches and vectors of this machine"
        click.echo(f"# {path if path.is_file() else shipped}")
        click.echo(print_target(host_target()), nl=False)
        return
    with progress() as step:
        step("measuring this machine")
        text = print_target(measured_target(unmeasured_host(), threads or default_threads()))
    _write(
        path,
        "# This machine, as `bbrewrite target --measure` found it. Without this file, what is shipped is used.\n"
        + text,
    )
    click.echo(text, nl=False)
    click.echo(f"wrote {path}", err=True)


def _write(path: Path, text: str) -> None:
    """Writes a file that others see whole or not at all. Raises InputError where it cannot be written."""
    hint = "name another directory in the environment variable BBREWRITE_CONFIG_DIR"
    with told_of_faults(path, "--measure", hint):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as unfinished:
            unfinished.write(text)
        os.replace(unfinished.name, path)
