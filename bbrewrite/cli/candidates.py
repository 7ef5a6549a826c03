"""How the candidates of a large program are shown: a line for each class, however many candidates it has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from rich.console import Console

from bbrewrite.candidates.cover import Chosen
from bbrewrite.fusion import Fusion
from bbrewrite.lang.diagnostics import counted

# Programs of more definitions than this are not printed in full.
MOST_SHOWN = 16
_MOST_NAMES = 6


def is_shown_in_full(fusion: Fusion) -> bool:
    """Whether the fused program is short enough to print."""
    return not fusion.cover or len(fusion.fused.fused.definitions) <= MOST_SHOWN


def print_candidates(console: Console, fusion: Fusion, byte_count: Callable[[float], str]) -> None:
    """A table of the classes of candidates: how often, kernels and bytes of each, and definitions of the first."""
    if not fusion.cover:
        return
    count = sum(len(chosen.candidate.members) for chosen in fusion.cover)
    classes = counted(len(fusion.classes), "class", "classes")
    console.print(
        f"planned in parts: {counted(count, 'definition')} in {counted(len(fusion.cover), 'candidate')} of {classes}",
        markup=False,
    )
    rows = [("times", "kernels", "global memory", "definitions (of the first)")]
    for part in fusion.classes:
        alike = [chosen for chosen in fusion.cover if chosen.planned is part]
        names = definition_names(fusion, alike[0])
        shown = names if len(names) <= _MOST_NAMES else [*names[: _MOST_NAMES - 1], "...", names[-1]]
        movement = part.after
        rows.append((str(len(alike)), str(movement.kernels), byte_count(movement.global_bytes), " ".join(shown)))
    for times, kernels, size, names in rows:
        console.print(f"{times:>7}  {kernels:>7}  {size:>13}  {names}", markup=False, soft_wrap=True)
    if not is_shown_in_full(fusion):
        left_out = counted(len(fusion.fused.kernels.kernels), "kernel")
        console.print(f"too long to print: {left_out}, which `bbrewrite codegen` writes", markup=False)
    console.print()


def print_candidate_names(fusion: Fusion, number: int) -> None:
    """What the names in the explanation of a class stand for in its first candidate."""
    part = fusion.classes[number - 1]
    first = next(chosen for chosen in fusion.cover if chosen.planned is part)
    names = {name: whole for name, (whole, _) in first.candidate.tensors.items()} | dict(first.candidate.indices)
    meaning = ", ".join(f"{name} is {whole}" for name, whole in names.items())
    click.echo(f"\nclass {number} of {len(fusion.classes)}, where {meaning}")


def candidates_json(fusion: Fusion) -> list[dict[str, Any]]:
    """Every candidate in order: its definitions, class, kernels and bytes."""
    numbers = {id(part): number for number, part in enumerate(fusion.classes)}
    return [
        {
            "definitions": definition_names(fusion, chosen),
            "class": numbers[id(chosen.planned)],
            "kernels": chosen.planned.after.kernels,
            "global_bytes": chosen.planned.after.global_bytes,
        }
        for chosen in fusion.cover
    ]


def definition_names(fusion: Fusion, chosen: Chosen[Fusion]) -> list[str]:
    """The names of a candidate's definitions."""
    definitions = fusion.request.blocks.definitions
    return [definitions[member].tensor.name for member in chosen.candidate.members]
