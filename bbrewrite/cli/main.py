"""The sub-commands and their options. Each body imports what it runs, so that `--help` starts at once."""

from __future__ import annotations

import errno
import signal
import sys
import traceback
from collections.abc import Callable
from time import perf_counter
from typing import Any

import click

from bbrewrite import __version__
from bbrewrite.cli.exit_codes import INPUT_AT_FAULT, INTERNAL_FAULT, INTERRUPTED, TOOL_MISSING
from bbrewrite.cli.options import A_PATH, NonEmptyPath, parse_blocks, parse_inputs, parse_seconds, parse_sizes
from bbrewrite.garbage import rare_collections
from bbrewrite.limits import MOST_THREADS

# What the system says where output cannot be written: the disk or the quota is full, or the device broken.
_WRITE_FAULTS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


class _Group(click.Group):
    """Turns the exceptions that users can cause into a message on standard error and an exit code."""

    def main(self, *args: Any, **extra: Any) -> Any:
        try:
            sys.exit(super().main(*args, **{**extra, "standalone_mode": False}) or 0)
        except click.UsageError as error:
            from bbrewrite.cli.usage import usage_fault

            click.echo(usage_fault(error), err=True)
            sys.exit(INPUT_AT_FAULT)
        except click.Abort:
            sys.exit(INTERRUPTED)
        except OSError as error:  # of help and version, which no command prints
            sys.exit(_reported(error))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(INPUT_AT_FAULT)
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args[0] not in self.commands and not args[0].startswith("-"):
            from bbrewrite.cli.usage import UnknownCommand

            raise UnknownCommand(args[0], ctx)
        return super().resolve_command(ctx, args)

    @rare_collections()  # a command's process is its own, and what it reads and imports stays
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
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:
            ctx.exit(_reported(error))


def _reported(error: Exception) -> int:
    """Prints an exception's message, or its traceback where it is a fault of this program; returns the exit code."""
    from bbrewrite.lang.diagnostics import InputError
    from bbrewrite.runtime.compiler import CompilerMissing

    if isinstance(error, InputError | CompilerMissing):
        click.echo(str(error), err=True)
        return INPUT_AT_FAULT if isinstance(error, InputError) else TOOL_MISSING
    if isinstance(error, OSError) and error.filename is None and error.errno in _WRITE_FAULTS:
        click.echo(f"error[output]: standard output cannot be written: {error.strerror}", err=True)
        return INPUT_AT_FAULT
    traceback.print_exception(error)
    click.echo(
        "This is a fault of bbrewrite, not of your input. Please report it with the program and rules.", err=True
    )
    return INTERNAL_FAULT


type _Command = Callable[..., None]


def _options(*options: Callable[[_Command], _Command]) -> Callable[[_Command], _Command]:
    """Several options under one name, in the order in which help shows them."""

    def apply(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return apply


_PATHS = "RULES is a .rules file or a directory of them, PROGRAM a .bb file."
_RULES = click.argument("rules", type=A_PATH)
_PROGRAM = click.argument("program", type=A_PATH)
_SIZES = _options(
    click.option(
        "--size", "sizes", multiple=True, callback=parse_sizes, metavar="m=1000", help="An index's extent; repeatable."
    ),
    click.option(
        "--block", "blocks", multiple=True, callback=parse_blocks, metavar="m=32", help="Its block size; repeatable."
    ),
)
_THREADS = click.option(
    "--threads",
    type=click.IntRange(1, MOST_THREADS),
    metavar="COUNT",
    help="Processors to use; by default all.",
)
_FUSION = _options(
    _SIZES,
    _THREADS,
    click.option("--fast-math", is_flag=True, help="Also use rules that lose accuracy in floating point."),
    click.option("--no-tuned", "tuned", flag_value=False, default=True, help="Plan without what `bench --tune` found."),
)
_ARCHITECTURE = click.option(
    "--gpu",
    "architecture",
    type=click.Choice(["sm_80", "sm_90"]),
    default="sm_80",
    show_default=True,
    help="For the target cuda: what it plans for.",
)
_TF32 = click.option(
    "--tf32", is_flag=True, help="For the target cuda: round operands of f32 products to tf32, for tensor cores."
)
_EXECUTION = _options(
    click.option(
        "--target",
        type=click.Choice(["cpp", "cuda", "numpy"]),
        default="cpp",
        show_default=True,
        help="What to generate; numpy needs no compiler.",
    ),
    _ARCHITECTURE,
    _TF32,
    click.option("--emulate", is_flag=True, help="For the target cuda: no GPU, though there is one."),
    _FUSION,
    click.option(
        "--input",
        "inputs",
        multiple=True,
        callback=parse_inputs,
        metavar="Q=q.npy",
        help="An array for an input, else drawn; repeatable.",
    ),
    click.option(
        "--seed",
        type=click.IntRange(0, 2**63 - 1),
        default=0,
        show_default=True,
        metavar="NUMBER",
        help="Of the drawn arrays.",
    ),
)


@click.group(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="For a start: bbrewrite run rules/ examples/attention.bb",
)
@click.version_option(__version__, prog_name="bbrewrite")
def cli() -> None:
    """Fuses the operators of an array program by rewrite rules, and runs the result."""


@cli.command(epilog=_PATHS)
@_RULES
@_PROGRAM
@_EXECUTION
@click.option("--save", type=A_PATH, help="Directory to write each output to as NAME.npy.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output instead of the report.")
def run(**options: Any) -> None:
    """Fuse, generate, compile, run, compare with the reference, report."""
    start = perf_counter()
    from bbrewrite.cli.running import run_command

    run_command((perf_counter() - start) * 1000, **options)


@cli.command(epilog=_PATHS)
@_RULES
@_PROGRAM
@_FUSION
@click.option("--explain", is_flag=True, help="The derivation of the plan, each step checked.")
@click.option("--stats", is_flag=True, help="Tries, hits, time and new nodes of every rule.")
@click.option("--snapshots", is_flag=True, help="The plans from which the cheapest was chosen.")
@click.option("--html", type=A_PATH, help="A page to write: pictures of both forms, and the steps.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output instead of the report.")
def fuse(**options: Any) -> None:
    """Print the fused block program and its data movement."""
    start = perf_counter()
    from bbrewrite.cli.fusing import fuse_command

    fuse_command((perf_counter() - start) * 1000, **options)


@cli.command("why-not", epilog=_PATHS)
@click.argument("name", metavar="RULE")
@click.argument("paths", nargs=-1, required=True, metavar="[RULES] PROGRAM", type=A_PATH)
@click.option("--rules", type=A_PATH, help="Rule files; by default those that come with bbrewrite.")
@_FUSION
def why_not(**options: Any) -> None:
    """Say why a rule did not fire on a program, or where it did."""
    from bbrewrite.cli.explaining import why_not_command

    why_not_command(**options)


@cli.command(short_help="Print the unfused block program.", epilog=_PATHS)
@click.argument("paths", nargs=-1, required=True, metavar="[RULES] PROGRAM", type=A_PATH)
@_SIZES
def lower(**options: Any) -> None:
    """Print the unfused block program. Rules are needed where it uses their operators or monoids; none is applied."""
    from bbrewrite.cli.checking import lower_command

    lower_command(**options)


@cli.command(short_help="Write the fused program as source to take away.", epilog=_PATHS)
@_RULES
@_PROGRAM
@_FUSION
@click.option(
    "--target", type=click.Choice(["cpp", "cuda"]), default="cpp", show_default=True, help="What to generate."
)
@_ARCHITECTURE
@_TF32
@click.option("-o", "--output", type=A_PATH, required=True, help="Directory to write to.")
def codegen(**options: Any) -> None:
    """Write the fused program as C++ or CUDA source to take away, with a header and a build file."""
    from bbrewrite.cli.fusing import codegen_command

    codegen_command(**options)


@cli.command(short_help="Parse, type-check and try rules, and a program.", epilog=_PATHS)
@_RULES
@click.argument("program", type=A_PATH, required=False)
@_SIZES
@click.option("--emit", type=click.Choice(["egglog"]), help="Print the rules as an egglog program.")
@click.option("--types", is_flag=True, help="Print what each rule's variables were inferred to be.")
def check(**options: Any) -> None:
    """Parse and type-check rules, run their examples, and check a program if one is given."""
    from bbrewrite.cli.checking import check_command

    check_command(**options)


@cli.command(short_help="Test the soundness of every rule.", epilog=_PATHS)
@click.argument("paths", nargs=-1, required=True, type=A_PATH, metavar="RULES...")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    default=0,
    show_default=True,
    metavar="NUMBER",
    help="Of the instances.",
)
@click.option(
    "--budget",
    type=click.FloatRange(0.05, 86400),
    callback=parse_seconds,
    default=1.5,
    show_default=True,
    metavar="SECONDS",
    help="For each rule; 50 instances and shrinking a counterexample may take longer.",
)
@click.option("--rule", metavar="NAME", help="Only this rule or monoid.")
@click.option(
    "--jobs",
    type=click.IntRange(1, 1024),
    metavar="COUNT",
    help="Processes to use; by default one for each processor.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output instead of the report.")
def fuzz(**options: Any) -> None:
    """Test the soundness of every rule; show a counterexample for each that is unsound."""
    from bbrewrite.cli.fuzzing import fuzz_command

    fuzz_command(**options)


@cli.command(short_help="Lay out rule files and programs in place.")
@click.argument("files", nargs=-1, required=True, type=NonEmptyPath(), metavar="FILE...")
@click.option("--check", "only_check", is_flag=True, help="Write nothing; name what would change and exit with 1.")
def fmt(**options: Any) -> None:
    """Lay out rule files and programs in one way, in place; `-` is standard input."""
    from bbrewrite.cli.formatting import fmt_command

    fmt_command(**options)


@cli.command(short_help="Time the unfused and the fused program, or tune it.", epilog=_PATHS)
@_RULES
@_PROGRAM
@_EXECUTION
@click.option("--tune", is_flag=True, help="First look for the fastest plan, and keep it for later runs.")
@click.option(
    "--budget",
    type=click.FloatRange(1, 86400),
    callback=parse_seconds,
    default=60,
    show_default=True,
    metavar="SECONDS",
    help="For --tune.",
)
def bench(**options: Any) -> None:
    """Time the unfused and the fused program; with --tune, look for the fastest plan."""
    from bbrewrite.cli.running import bench_command

    bench_command(**options)


@cli.command()
@click.option("--measure", is_flag=True, help="Measure this machine, and plan for it from now on.")
@_THREADS
def target(**options: Any) -> None:
    """Print the description of this machine by which plans are priced."""
    from bbrewrite.cli.target import target_command

    target_command(**options)


def main() -> None:
    """The console script. It ends without a word when nobody reads its output any more, as other commands do."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    cli()


if __name__ == "__main__":
    main()
