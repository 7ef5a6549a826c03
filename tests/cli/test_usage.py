"""Mistakes on the command line: a message like all others, with what is meant and the form, and exit code 2."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bbrewrite import __version__
from bbrewrite.cli.main import cli
from tests.cli.conftest import Command


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rnu"], "there is no command `rnu`\n  hint: did you mean `run`?"),
        (["attention.bb"], "there is no command `attention.bb`\n  hint: there are: bench, check, "),
        (["--frob"], "there is no option `--frob`"),
        (["run"], "RULES is missing"),
        (["run", "rules"], "PROGRAM is missing"),
        (["why-not", "rule"], "[RULES] PROGRAM is missing"),
        (["codegen", "rules", "p.bb"], "the option `--output` is missing"),
        (["lower", "--blok", "m=4", "p.bb"], "there is no option `--blok`\n  hint: did you mean `--block`?"),
        (["run", "r", "p.bb", "--explain"], "there is no option `--explain`\n  hint: commands that have it: fuse"),
        (["run", "r", "p.bb", "p.bb"], "unexpected extra argument"),
        (["run", "r", "p.bb", "--target"], "option '--target' requires an argument"),
        (["run", "r", "p.bb", "--target", "numpi"], "`--target`: there is no `numpi`\n  hint: did you mean `numpy`?"),
        (["run", "r", "p.bb", "--target", "x"], "`--target`: there is no `x`\n  hint: it takes cpp, cuda, numpy"),
        (["run", "r", "p.bb", "--threads", "x"], "`--threads`: x is not a whole number from 1 to 1024"),
        (["run", "r", "p.bb", "--threads", "0"], "`--threads`: 0 is not a whole number from 1 to 1024"),
        (["fuzz", "r", "--budget", "soon"], "`--budget`: soon is not a number from 0.05 to 86400"),
        (["run", "r", "p.bb", "--size", "m"], "`--size`: 'm' is not of the form m=1000"),
    ],
)
def test_a_mistake_is_told_in_our_words(bbrewrite: Command, arguments: list[str], message: str) -> None:
    result = bbrewrite(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"error[usage]: {message}")
    assert "Error:" not in result.stderr


@pytest.mark.parametrize("command", sorted(cli.commands))
def test_every_command_shows_its_form_where_it_is_misused(bbrewrite: Command, command: str) -> None:
    result = bbrewrite(command, "--frobnicate")
    assert result.exit_code == 2
    assert result.stderr.startswith("error[usage]: there is no option `--frobnicate`\n  usage: ")
    assert f" {command} [OPTIONS]" in result.stderr


def test_no_command_at_all_shows_help(bbrewrite: Command) -> None:
    result = bbrewrite()
    assert result.exit_code == 2
    assert all(command in result.stderr for command in cli.commands)


def test_the_package_is_a_command(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bbrewrite", "--version"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert (done.returncode, done.stdout) == (0, f"bbrewrite, version {__version__}\n")
