"""The report that people read: plain text on a pipe, with emphasis on a terminal, at most the console's width.

It is printed from a `RunResult` alone. The JSON object is in `json_report.py`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import chain, repeat
from statistics import median

from rich.console import Console

from bbrewrite.cli.candidates import is_shown_in_full, print_candidates
from bbrewrite.cli.wrapping import wrapped
from bbrewrite.fusion import Fusion, Movement
from bbrewrite.lang.diagnostics import counted
from bbrewrite.pipeline import RunResult
from bbrewrite.plan.planner import Plan
from bbrewrite.plan.printing import print_kernels
from bbrewrite.timing import spread
from bbrewrite.units import byte_count, operation_count
from bbrewrite.verify.compare import Comparison

_WIDE_SPREAD = 0.2  # of the middle half of repetitions, relative to their median

type _Row = tuple[str, str, str, str]  # what it is, unfused, fused, a remark


def print_run(console: Console, result: RunResult) -> None:
    """Everything about a run: the fused program, what it saves, how it was derived, and whether it is right."""
    fusion = result.fusion
    _print_heading(console, result)
    _print_program(console, fusion)
    times = [] if result.emulated_at else [_time_row("time", median(result.unfused_ms), median(result.fused_ms))]
    _print_table(console, [*movement_rows(fusion.before, fusion.after), *times])
    if not result.emulated_at:
        _print_spread(console, result)
    _print_skipped(console, fusion.after, result.skipped_blocks)
    print_derivation(console, fusion)
    _print_verdict(console, result.comparison)
    _print_notes(console, fusion)
    for source in result.prepared.sources[-1:]:
        console.print(f"source: {source}", soft_wrap=True, markup=False)


def print_bench(console: Console, result: RunResult) -> None:
    """The times of a run, and what they mean against the work and traffic of the plan."""
    fusion = result.fusion
    unfused, fused = result.unfused_ms, result.fused_ms
    before, after = fusion.before, fusion.after
    _print_heading(console, result)
    _print_table(
        console,
        [
            _time_row("median", median(unfused), median(fused)),
            _time_row("fastest", min(unfused), min(fused)),
            _time_row("slowest", max(unfused), max(fused)),
            ("runs", str(len(unfused)), str(len(fused)), ""),
            ("arithmetic rate", _rate(before.flops, unfused), _rate(after.flops, fused), ""),
            ("compiled in", "", _time(result.prepared.compile_ms), ""),
        ],
    )
    _print_spread(console, result)
    _print_verdict(console, result.comparison)
    _print_notes(console, fusion)


def print_fusion(console: Console, fusion: Fusion) -> None:
    """The fused block program, its data movement and derivation."""
    _print_program(console, fusion)
    _print_table(console, movement_rows(fusion.before, fusion.after))
    _print_skipped(console, fusion.after)
    print_derivation(console, fusion)
    _print_notes(console, fusion)


def _print_heading(console: Console, result: RunResult) -> None:
    fusion = result.fusion
    sizes = "  ".join(f"{name} = {extent}" for name, extent in fusion.sizes.items())
    threads = fusion.request.threads
    console.print(f"[bold]{fusion.request.program.name}[/]  {sizes}")
    rounded = "\noperands of products of f32 are rounded to tf32" if result.tf32 else ""
    if result.emulated_at:
        small = "  ".join(f"{name} = {extent}" for name, extent in result.emulated_at.items())
        console.print("target cuda, emulated: what nvcc made is run and checked without a GPU, and not timed,")
        console.print(f"at {small}{rounded}\n")
        return
    used = rounded if result.target == "cuda" else f", {threads} thread{'s' if threads != 1 else ''}"
    console.print(f"target {result.target}{used}\n")


def _print_program(console: Console, fusion: Fusion) -> None:
    """The fused program and its kernels; of a long one, what its candidates are."""
    if is_shown_in_full(fusion):
        print_block_program(console, fusion.text)
        _print_kernels(console, fusion)
        _print_occupancy(console, fusion.fused)
    print_candidates(console, fusion, byte_count)


def print_block_program(console: Console, text: str) -> None:
    """A block program as it parses back: broken only where the language allows it, so that it can be copied."""
    console.print(wrapped(text.rstrip("\n"), console.width) + "\n", soft_wrap=True, markup=False)


def _print_kernels(console: Console, fusion: Fusion) -> None:
    text = print_kernels(fusion.fused.kernels, fusion.request.rules.table)
    console.print(text.rstrip("\n") + "\n", soft_wrap=True, markup=False)


def _print_occupancy(console: Console, plan: Plan) -> None:
    """How each kernel's blocks of threads fill a GPU, as planned; nothing for other targets."""
    lines: list[str] = []
    for kernel, cost in zip(plan.kernels.kernels, plan.costs, strict=True):
        used = cost.occupancy
        if used is not None:
            size = f"{used.registers} registers a thread (estimated), {byte_count(used.shared_bytes)} of shared memory"
            lines.append(
                f"  {kernel.name}: {counted(used.blocks, 'block')} of {used.threads} threads,"
                f" {used.resident} at a time on a multiprocessor, {used.waves:.1f} waves; {size}"
            )
    if lines:
        console.print("occupancy as planned:\n" + "\n".join(lines) + "\n", markup=False, soft_wrap=True)


def print_derivation(console: Console, fusion: Fusion) -> None:
    """Which rules took part, how often, and what each means."""
    saturation = fusion.saturation
    console.print(
        f"rules that matched ({saturation.nodes} e-nodes in {saturation.classes} classes,"
        f" {saturation.iterations} iterations, {_stop(saturation.stopped_by)}):",
        markup=False,
    )
    applied = fusion.rules_applied
    if not applied:
        matched = sum(map(bool, saturation.rules_applied.values()))
        tried = f": {counted(matched, 'rule')} matched, and no plan with them takes less time" if matched else ""
        console.print(f"  none{tried}", markup=False)
    meanings = {rule.name: rule.meaning for rule in fusion.request.rules.rules}
    width = max((len(name) for name in applied), default=0)
    for name, count in sorted(applied.items(), key=lambda item: (-item[1], item[0])):
        head = f"{count:5}  {name:{width}}  "
        room = max(console.width - len(head), 20)
        lines = [meanings[name]] if console.soft_wrap else textwrap.wrap(meanings[name], room) or [""]
        for start, line in zip(chain([head], repeat(" " * len(head))), lines, strict=False):
            console.print((start + line).rstrip(), markup=False, soft_wrap=True)
    console.print()


def _print_notes(console: Console, fusion: Fusion) -> None:
    for note in fusion.notes:
        console.print(f"note: {note}", markup=False)


def _print_verdict(console: Console, comparison: Comparison) -> None:
    verdict = "[bold green]right[/]" if comparison.ok else "[bold red]WRONG[/]"
    console.print(f"result: {verdict}, compared with the float64 reference")
    for output in comparison.outputs:
        judged = "" if output.ok else "  too large"
        console.print(
            f"  {output.output}: relative error {output.error:.1e},"
            f" unfused {output.unfused_error:.1e}, allowed {output.bound:.1e}{judged}",
            markup=False,
        )
        for remark in output.remarks:
            console.print(f"  {remark}", markup=False)


def movement_rows(before: Movement, after: Movement) -> list[_Row]:
    """What both forms move and compute, for a table."""
    return [
        ("kernels", str(before.kernels), str(after.kernels), ""),
        ("buffers", str(before.buffers), str(after.buffers), ""),
        ("global memory", byte_count(before.global_bytes), byte_count(after.global_bytes), _less(before, after)),
        ("arithmetic", operation_count(before.flops), operation_count(after.flops), ""),
        ("local memory", byte_count(before.local_bytes), byte_count(after.local_bytes), ""),
    ]


def _print_table(console: Console, rows: list[_Row]) -> None:
    rows = [("", "unfused", "fused", ""), *rows]
    name_width, *widths = (max(len(row[column]) for row in rows) for column in range(3))
    for name, unfused, fused, remark in rows:
        line = f"{name:{name_width}}  {unfused:>{widths[0]}}  {fused:>{widths[1]}}  {remark}"
        console.print(line.rstrip(), markup=False, soft_wrap=True)
    console.print()


def _print_spread(console: Console, result: RunResult) -> None:
    """A word of warning where times scatter so widely that their ratio says little."""
    unfused, fused = spread(result.unfused_ms), spread(result.fused_ms)
    if max(unfused, fused) > _WIDE_SPREAD:
        console.print(
            f"note: timings vary by {unfused:.0%} (unfused) and {fused:.0%} (fused), as on a busy machine\n",
            markup=False,
        )


def _print_skipped(console: Console, movement: Movement, of_arrays: float | None = None) -> None:
    """What masks save: with the arrays at hand, where it depends on them, else what follows from extents."""
    if of_arrays is not None:
        console.print(f"blocks skipped by masks, for these arrays: {of_arrays * 100:.0f} %\n", markup=False)
    elif movement.skipped_share is not None:
        console.print(f"work skipped by masks: {movement.skipped_share * 100:.0f} %\n", markup=False)


def _time(milliseconds: float) -> str:
    if milliseconds >= 1000:
        return f"{milliseconds / 1000:.2f} s"
    return f"{milliseconds:.3g} ms" if milliseconds >= 0.1 else f"{milliseconds * 1000:.3g} µs"


def _less(before: Movement, after: Movement) -> str:
    if not after.global_bytes:
        return ""
    ratio = before.global_bytes / after.global_bytes
    return f"{ratio:.1f}x less" if ratio >= 1 else f"{1 / ratio:.1f}x more"


def _time_row(name: str, unfused: float, fused: float) -> _Row:
    ratio = unfused / fused if fused else 1.0
    speed = f"{ratio:.2f}x faster" if ratio >= 1 else f"{1 / ratio:.2f}x slower"
    if speed.startswith("1.00x"):
        speed = "as fast"
    return (name, _time(unfused), _time(fused), speed)


def _rate(flops: int, times: Sequence[float]) -> str:
    return f"{flops / median(times) / 1e6:.1f} Gflop/s"


def _stop(stopped_by: str) -> str:
    return "saturated" if stopped_by == "saturated" else f"stopped by {stopped_by}"
