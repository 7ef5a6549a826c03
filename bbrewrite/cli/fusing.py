"""`fuse` and `codegen`: the commands that plan a program and run nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bbrewrite.cli.asking import asked_gpu, progress, read_request, report_console
from bbrewrite.cli.exit_codes import WRONG_RESULT
from bbrewrite.cli.explaining import explain_fusion
from bbrewrite.cli.json_report import fusion_json
from bbrewrite.cli.report import print_fusion
from bbrewrite.codegen.cpp.project import project_files
from bbrewrite.fusion import Fusion, fuse
from bbrewrite.lang.diagnostics import Diagnostic, InputError
from bbrewrite.writing import make_directory, told_of_faults


def fuse_command(
    import_ms: float, explain: bool, stats: bool, snapshots: bool, html: Path | None, as_json: bool, **options: Any
) -> None:
    """Prints the fused block program and its movement, and what else is asked for.

    Exits with 1 where a step of the derivation does not hold.
    """
    request, parse_ms = read_request(**options)
    with progress() as step:
        step("saturating and planning")
        fusion = fuse(request)
    if not as_json:
        print_fusion(report_console(), fusion)
    asked = {"explain": explain, "stats": stats, "snapshots": snapshots}
    parts = [name for name, wanted in asked.items() if wanted]
    if html is not None:
        _write_page(html, fusion)
    if not parts and not as_json:
        return
    known = fusion_json(fusion, import_ms, parse_ms) if as_json else None
    if not explain_fusion(fusion, parts, known):
        click.get_current_context().exit(WRONG_RESULT)


def _write_page(path: Path, fusion: Fusion) -> None:
    if fusion.cover:
        parts = len(fusion.cover)
        message = f"--html draws a program that is planned at once; this one is planned in {parts} candidates"
        hint = "its candidates are in what `fuse` prints, with their derivations under --explain"
        raise InputError([Diagnostic("planned-in-parts", message, hint=hint)])
    from bbrewrite.cli.derivations import CheckedDerivations
    from bbrewrite.cli.html_report import write_html_report

    with progress() as step:
        derivations = CheckedDerivations(fusion, step)
    write_html_report(path, fusion, derivations)
    click.echo(f"wrote {path}", err=True)


def codegen_command(target: str, architecture: str, tf32: bool, output: Path, **options: Any) -> None:
    """Writes the fused program's source, header and build file to a directory."""
    gpu = asked_gpu(target, architecture, tf32)
    request, _ = read_request(**options)
    make_directory(output, "-o")
    with progress() as step:
        step("saturating and planning")
        if gpu is not None:
            from bbrewrite.cuda_pipeline import cuda_files

            files = cuda_files(request, gpu)
        else:
            fusion = fuse(request)
            kernels, unfused = fusion.fused.kernels, fusion.unfused.kernels
            files = project_files(kernels, request.rules.table, unfused, request.program.equal_extents)
    for name, text in files.items():
        with told_of_faults(output / name, "-o"):
            (output / name).write_text(text, encoding="utf-8")
    click.echo(f"wrote {', '.join(files)} to {output}")
