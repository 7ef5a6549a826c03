"""The values of command-line options: `--size m=1000`, `--block m=32`, `--input Q=q.npy`.

Only their form is checked here; whether a program has such an index or tensor is checked where the program is known.
"""

from __future__ import annotations

from pathlib import Path

import click


class Assignment(click.ParamType):
    """`name=number`, the number at least `minimum`."""

    name = "name=number"

    def __init__(self, minimum: int) -> None:
        self._minimum = minimum

    def convert(
        self, value: str | tuple[str, int], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        name, equals, number = (part.strip() for part in value.partition("="))
        if not (name and equals):
            self.fail(f"{value!r} is not of the form m=1000", param, ctx)
        if not (number.lstrip("-").isascii() and number.lstrip("-").isdigit()):
            self.fail(f"{value!r}: {number!r} is not a whole number", param, ctx)
        if int(number) < self._minimum:
            self.fail(f"{value!r}: the number must be at least {self._minimum}", param, ctx)
        if int(number) > 2**62:
            self.fail(f"{value!r}: the number is too large", param, ctx)
        return name, int(number)


class FileAssignment(click.ParamType):
    """`name=path`."""

    name = "name=file"

    def convert(
        self, value: str | tuple[str, Path], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Path]:
        if isinstance(value, tuple):
            return value
        name, equals, path = value.partition("=")
        if not (name.strip() and equals and path):
            self.fail(f"{value!r} is not of the form Q=q.npy", param, ctx)
        return name.strip(), Path(path)


def unique[T](ctx: click.Context, param: click.Parameter, pairs: tuple[tuple[str, T], ...]) -> dict[str, T]:
    """A repeatable option's pairs by name; the same name twice is an error."""
    found: dict[str, T] = {}
    for name, value in pairs:
        if name in found:
            raise click.BadParameter(f"{name} is given twice", ctx, param)
        found[name] = value
    return found
