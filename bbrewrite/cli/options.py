"""The values of command-line options: `--size m=1000`, `--block m=32`, `--input Q=q.npy`, `--budget 1.5`.

Only their form is checked here; whether a program has such an index or tensor is checked where the program is known.
Each function is a click callback, for a repeatable option of strings where it says no more.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bbrewrite.limits import LARGEST_EXTENT


class NonEmptyPath(click.Path):
    """A path; an empty one would be the working directory, where a variable of a script has no value."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not value:
            self.fail("the path is empty", param, ctx)
        return super().convert(value, param, ctx)


A_PATH = NonEmptyPath(path_type=Path)


def parse_sizes(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, int]:
    """Extents by index name, each at least 0."""
    return {name: _number(text, 0) for name, text in _pairs(texts, "m=1000").items()}


def parse_blocks(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, int]:
    """Block sizes by index name, each at least 1."""
    return {name: _number(text, 1) for name, text in _pairs(texts, "m=32").items()}


def parse_inputs(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, Path]:
    """Paths of .npy files by tensor name."""
    return {name: Path(text) for name, text in _pairs(texts, "Q=q.npy").items()}


def parse_seconds(ctx: click.Context, param: click.Parameter, seconds: float) -> float:
    """A duration that its range has let through, as it does what is no number."""
    if seconds != seconds:
        raise click.BadParameter("nan is no number of seconds")
    return seconds


def _pairs(texts: tuple[str, ...], form: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        name, _, value = (part.strip() for part in text.partition("="))
        if not (name and value):
            raise click.BadParameter(f"{text!r} is not of the form {form}")
        if name in found:
            raise click.BadParameter(f"{name!r} is given twice")
        found[name] = value
    return found


def _number(text: str, minimum: int) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        raise click.BadParameter(f"{text!r} is not a whole number")
    # Thousands of digits would be slow to convert, and more than 64 bits hold in any case.
    if len(digits) > 20 or int(text) > LARGEST_EXTENT:
        raise click.BadParameter(f"{text!r} is too large")
    if int(text) < minimum:
        raise click.BadParameter(f"{text!r} is less than {minimum}")
    return int(text)
