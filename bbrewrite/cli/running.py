"""`run` and `bench`: from text to numbers, with a report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

from bbrewrite.cli.asking import asked_gpu, progress, read_request, report_console
from bbrewrite.cli.derivations import rule_place, wrong_rules
from bbrewrite.cli.exit_codes import TOOL_MISSING, WRONG_RESULT
from bbrewrite.cli.json_report import run_json
from bbrewrite.cli.report import print_bench, print_run
from bbrewrite.core.elements import Element
from bbrewrite.pipeline import RunResult, run
from bbrewrite.plan.target import Target
from bbrewrite.request import Request
from bbrewrite.writing import make_directory, told_of_faults


def run_command(
    import_ms: float,
    target: str,
    architecture: str,
    tf32: bool,
    emulate: bool,
    seed: int,
    save: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Runs and reports; exits with 1 where the result is wrong."""
    gpu = asked_gpu(target, architecture, tf32)
    request, parse_ms = read_request(**options)
    if save is not None:
        make_directory(save, "--save")
    with progress() as step:
        if gpu is not None:
            from bbrewrite.cuda_pipeline import run_cuda

            result = run_cuda(request, gpu, emulate, seed, step)
        else:
            result = run(request, target, seed, step)
    if save is not None:
        _save(save, result)
    if as_json:
        click.echo(run_json(result, import_ms, parse_ms))
    else:
        print_run(report_console(), result)
    _exit_by_verdict(result, as_json)


def bench_command(
    target: str, architecture: str, tf32: bool, emulate: bool, seed: int, tune: bool, budget: float, **options: Any
) -> None:
    """Runs and reports times only, of what tuning finds where that is asked for; exits with 1 for a wrong result."""
    gpu = asked_gpu(target, architecture, tf32)
    request, _ = read_request(**options)
    if tune:
        from bbrewrite.cli.tuning import tune_and_print

        tune_and_print(report_console(), request, target, budget, seed)
    with progress() as step:
        if gpu is not None:
            result = _timed_on_gpu(request, gpu, emulate, seed, step)
        else:
            result = run(request, target, seed, step)
    print_bench(report_console(), result)
    _exit_by_verdict(result, False)


def _timed_on_gpu(request: Request, target: Target, emulate: bool, seed: int, step: Callable[[str], None]) -> RunResult:
    from bbrewrite.cuda_pipeline import run_cuda
    from bbrewrite.runtime.gpu import GpuMissing, find_gpu

    try:
        find_gpu()
    except GpuMissing as missing:
        emulate = True
        message = str(missing)
    else:
        message = "--emulate times nothing"
    if emulate:
        click.echo(f"{message} `run --target cuda` checks the kernels without one, but does not time them.", err=True)
        raise SystemExit(TOOL_MISSING)
    return run_cuda(request, target, emulate, seed, step)


def _exit_by_verdict(result: RunResult, as_json: bool) -> None:
    """Exits where the result is wrong, after a word on the rules that may have made it so."""
    if result.comparison.ok:
        return
    with progress() as step:
        at_fault = wrong_rules(result.fusion, step)
    for rule in at_fault:
        click.echo(
            f"the rule {rule.name} ({rule_place(rule)}) is at fault: its two sides differ in this program;"
            f" `fuse --explain` shows where, `fuzz --rule {rule.name}` how to mend it",
            err=as_json,
        )
    raise SystemExit(WRONG_RESULT)


def _save(directory: Path, result: RunResult) -> None:
    elements = {tensor.name: tensor.element for tensor in result.fusion.request.blocks.outputs}
    for name, array in result.outputs.items():
        path = directory / f"{name}.npy"
        # NumPy's format has no bf16; every bf16 is an f32.
        portable = array.astype(np.float32) if elements[name] is Element.BF16 else array
        with told_of_faults(path, "--save"):
            np.save(path, portable)
