"""What README.md and docs/language.md show: programs and rules are read, commands and options are there, the run of the
README is what the command prints, and its Python runs. The page on rules has tests of its own.
"""

from __future__ import annotations

import re
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

from bbrewrite.cli.main import cli
from bbrewrite.core.operators import builtin_table
from bbrewrite.core.spans import Source
from bbrewrite.lang.programs import parse_program
from bbrewrite.rules.load import parse_rules
from tests.built import cache_with_products

_ROOT = Path(__file__).parents[2]
_PAGES = {name: (_ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/language.md")}
_BLOCKS = [
    (name, kind, text)
    for name, page in _PAGES.items()
    for kind, text in re.findall(r"^```([a-z]*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
]
_COMMANDS = re.findall(r"`bbrewrite ([^`]*)`", "\n".join(_PAGES.values()))
# What stands around the parts of programs that the page on the language shows.
_AROUND = {
    "index layer": "program repeated\n{}",
    "P = map": "block program part\nindex m = 8 by 4, n = 8 by 4, l = 4 by 4\ninput E[m, n], c[m], V[n, l] : f32\n{}",
}


def _shown(beginning: str) -> str:
    (text,) = (text for _, _, text in _BLOCKS if text.startswith(beginning))
    return text


@pytest.mark.parametrize("text", [text for _, kind, text in _BLOCKS if kind == "" and not text.startswith("$")])
def test_every_block_is_read(text: str) -> None:
    source = Source("shown", text)
    if re.search(r"^rule ", text, re.MULTILINE):
        assert parse_rules([source]).rules
        return
    around = next((form for beginning, form in _AROUND.items() if text.startswith(beginning)), "{}")
    assert parse_program(Source("shown", around.format(text)), builtin_table()).definitions


@pytest.mark.parametrize("command", dict.fromkeys(_COMMANDS))
def test_commands_are_there(command: str) -> None:
    name, *words = command.split()
    assert name in cli.commands
    options = {name for parameter in cli.commands[name].params for name in parameter.opts}
    assert {word for word in words if word.startswith("-")} <= options


def test_options_are_there() -> None:
    options = {name for command in cli.commands.values() for option in command.params for name in option.opts}
    named = set(re.findall(r"`(--[a-z][a-z0-9-]*)", "\n".join(_PAGES.values())))
    assert len(named) > 20
    assert named <= options


def test_the_table_of_commands_is_complete() -> None:
    rows = re.findall(r"^\| `bbrewrite ([a-z-]+)", _PAGES["docs/language.md"], re.MULTILINE)
    assert sorted(rows) == sorted(cli.commands)


@pytest.mark.parametrize("command", sorted(cli.commands))
def test_every_option_is_described(command: str) -> None:
    page = _PAGES["docs/language.md"]
    for parameter in cli.commands[command].params:
        if isinstance(parameter, click.Option):
            assert any(f"`{name}" in page or f" {name}" in page for name in parameter.opts), parameter.opts


def _lines(text: str) -> list[str]:
    """The lines that are the same on every machine, cut where the README cuts them."""
    kept = [line for line in text.splitlines() if not re.match(r"time |source: |target |  O: relative error", line)]
    text = "\n".join(line[:100] for line in kept)
    return re.sub(r"\n {10,}(?=\S)(?!unfused)", " ", text).splitlines()


def test_the_run_that_the_readme_shows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BBREWRITE_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "110")
    shown = _shown("$ bbrewrite run rules/ examples/attention.bb\n").split("\n", 1)[1]
    paths = [str(_ROOT / "rules"), str(_ROOT / "examples/attention.bb")]
    printed = CliRunner().invoke(cli, ["fuse", *paths, "--threads", "2"])
    assert printed.exit_code == 0, printed.output
    body = [line for line in _lines(shown) if not line.startswith("result")]
    assert (
        "\n".join(body).split("block program ", 1)[1].strip()
        == "\n".join(_lines(printed.stdout)).split("block program ", 1)[1].strip()
    )


def test_the_python_that_the_readme_shows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(_ROOT)
    monkeypatch.setenv("BBREWRITE_CACHE_DIR", str(cache_with_products(tmp_path)))
    random = np.random.default_rng(0)
    names = {name: random.standard_normal((96, 32), np.float32) for name in ("Q", "K", "V")}
    exec(_shown("import bbrewrite\n"), names)
    scores = names["Q"] @ names["K"].T / np.sqrt(np.float32(32))
    weights = np.exp(scores - scores.max(1, keepdims=True))
    assert np.allclose(names["O"], weights / weights.sum(1, keepdims=True) @ names["V"], atol=1e-5)
