"""Runs the command in this process, and small programs to run it on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bbrewrite.cli.main import cli

ROOT = Path(__file__).parents[2]

SCALED_SUM = """\
program scaled_sum
index m, n = 5
input X[m, n], s : f32
weight w[n] : f32
P[m, n] = X[m, n] * w[n]
output Y[m] = s * sum[n](P[m, n])
"""

type Command = Callable[..., Result]


@pytest.fixture
def bbrewrite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command, run in an empty directory; files are made there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def invoke(*arguments: object, input: str | None = None) -> Result:
        return CliRunner().invoke(cli, [str(argument) for argument in arguments], input=input)

    return invoke


@pytest.fixture
def scaled_sum(tmp_path: Path) -> Path:
    """A program with an open extent, a scalar input and a weight."""
    path = tmp_path / "scaled_sum.bb"
    path.write_text(SCALED_SUM, encoding="utf-8")
    return path


@pytest.fixture
def rules() -> Path:
    """The shipped rules."""
    return ROOT / "rules"
