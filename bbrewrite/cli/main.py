"""The sub-commands and their options. Each body imports what it runs, so that `--help` starts at once.

Exit codes: 0 done, 1 the result is wrong, 2 the user's input is at fault, 3 a tool is missing; 130 on Ctrl-C.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from bbrewrite import __version__
from bbrewrite.cli.options import parse_blocks, parse_inputs, parse_sizes

WRONG_RESULT = 1
INPUT_AT_FAULT = 2
TOOL_MISSING = 3
INTERRUPTED = 130


class _Group(click.Group):
    """Turns the exceptions that users can cause into a message on standard error and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(INTERRUPTED)
        except MemoryError:
            click.echo("error[memory]: not enough memory for these extents", err=True)
            ctx.exit(INPUT_AT_FAULT)
        except RecursionError:
            click.echo("error[nesting]: an expression is nested too deeply", err=True)
            ctx.exit(INPUT_AT_FAULT)
        except Exception as error:
            code = _exit_code(error)
            if code is None:
                raise
            click.echo(str(error), err=True)
            ctx.exit(code)


def _exit_code(error: Exception) -> int | None:
    from bbrewrite.lang.diagnostics import InputError

    return INPUT_AT_FAULT if isinstance(error, InputError) else None


type _Command = Callable[..., None]


def _options(*options: Callable[[_Command], _Command]) -> Callable[[_Command], _Command]:
    """Several options under one name, in the order in which help shows them."""

    def apply(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return apply


_RULES = click.argument("rules", type=click.Path(path_type=Path))
_PROGRAM = click.argument("program", type=click.Path(path_type=Path))
_SIZES = _options(
    click.option("--size", "sizes", multiple=True, callback=parse_sizes, metavar="m=1000", help="An index's extent."),
    click.option("--block", "blocks", multiple=True, callback=parse_blocks, metavar="m=32", help="Its block size."),
)
_FUSION = _options(
    _SIZES,
    click.option("--threads", type=click.IntRange(1, 1024), help="Processors to use; by default all."),
    click.option("--fast-math", is_flag=True, help="Also use rules that lose accuracy in floating point."),
)
_EXECUTION = _options(
    click.option("--target", type=click.Choice(["cpp", "cuda", "numpy"]), default="cpp", show_default=True),
    _FUSION,
    click.option(
        "--input", "inputs", multiple=True, callback=parse_inputs, metavar="Q=q.npy", help="An array; else drawn by seed."
    ),
    click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="Of the drawn arrays."),
)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="bbrewrite")
def cli() -> None:
    """Fuses the operators of an array program by rewrite rules, and runs the result."""


@cli.command()
@_RULES
@_PROGRAM
@_EXECUTION
@click.option("--save", type=click.Path(path_type=Path), help="Directory to write each output to as NAME.npy.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output instead of the report.")
def run(**options: Any) -> None:
    """Fuse, generate, compile, run, compare with the reference, report."""
    from bbrewrite.cli.commands import run_command

    run_command(**options)


@cli.command()
@_RULES
@_PROGRAM
@_FUSION
def fuse(**options: Any) -> None:
    """Print the fused block program and its data movement."""
    from bbrewrite.cli.commands import fuse_command

    fuse_command(**options)


@cli.command()
@_PROGRAM
@_SIZES
def lower(**options: Any) -> None:
    """Print the unfused block program."""
    from bbrewrite.cli.commands import lower_command

    lower_command(**options)


@cli.command()
@_RULES
@_PROGRAM
@_FUSION
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Directory to write to.")
def codegen(**options: Any) -> None:
    """Write the fused program as C++ source to take away, with a C header and a build file."""
    from bbrewrite.cli.commands import codegen_command

    codegen_command(**options)


@cli.command()
@_RULES
@click.argument("program", type=click.Path(path_type=Path), required=False)
@click.option("--emit", type=click.Choice(["egglog"]), help="Print the rules as an egglog program.")
def check(**options: Any) -> None:
    """Parse and type-check rules and, if given, a program."""
    from bbrewrite.cli.commands import check_command

    check_command(**options)


@cli.command()
@_RULES
@_PROGRAM
@_EXECUTION
def bench(**options: Any) -> None:
    """Time the unfused and the fused program."""
    from bbrewrite.cli.commands import bench_command

    bench_command(**options)


def main() -> None:
    """The console script."""
    cli()
