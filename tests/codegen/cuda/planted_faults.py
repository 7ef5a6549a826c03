"""Faults planted in a kernel, one at a time, of the kinds that the emulator's checks are there to find.

Barriers and waits are taken from what nvcc made. Masks are changed in the source, all that nvcc makes of one at once:
the block operators' headers are put into it, so that theirs are among them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from bbrewrite.emulate.encode import Encoded, EncodedKernel
from bbrewrite.resources import resource_directory

# What a mask is replaced by, each where it stands for itself. Those of `publish` are not among them: what they hide
# meets zeros in a product, so that only values that are not finite would tell.
_MASKS = (
    (r"if \(column < \w+_count\) folded = ", "folded = "),
    (r"if \(row < \w+_count\) folded = ", "folded = "),
    (r"if \(row < \w+_count && ", "if ("),
    (r" && column < \w+_count\)", ")"),
    (r"if \(row < \w+_count\) (?=\w+\[)", ""),
    (r"row < rows \? (bytes|bytes_at\(column\)) : 0", r"\1"),
    (r"left <= 0 \? 0 : left < chunk \? left : chunk", "chunk"),
    (r"row < rows && column < columns \? from\[", "column < columns ? from["),
    (r"row < rows && column < columns \? from\[", "row < rows ? from["),
    (r"x = column < count \? (.*) : 0.0f;", r"x = \1;"),
    (r"y = column \+ 1 < count \? (.*) : 0.0f;", r"y = \1;"),
    (r"return rest < block \? int\(rest\) : block;", "return block;"),
)


@dataclass(frozen=True)
class PlantedFault:
    """A kernel with one instruction changed; `kind` says which kind of fault that is."""

    kind: str
    place: int
    kernel: EncodedKernel


def missing_waits(kernel: EncodedKernel) -> Iterator[PlantedFault]:
    """Every barrier, wait and commit left out, and every wait a group short."""
    for place, instruction in enumerate(kernel.code):
        for kind, changed in _changes(instruction):
            code = (*kernel.code[:place], changed, *kernel.code[place + 1 :])
            yield PlantedFault(kind, place, replace(kernel, code=code))


def _changes(instruction: Encoded) -> Iterator[tuple[str, Encoded]]:
    nothing = replace(instruction, operation="fence", operands=[])
    match instruction.operation:
        case "barrier":
            yield "barrier", nothing
        case "wait":
            yield "wait", nothing
            if instruction.offset >= 0:  # not a wait for all
                yield "wait", replace(instruction, offset=instruction.offset + 1)
        case "commit":
            yield "wait", nothing
        case _:
            pass


@dataclass(frozen=True)
class MaskChange:
    """What was changed in a source; `is_of_operator` where it belongs to a block operator's header."""

    line: int
    text: str
    is_of_operator: bool

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}"


def wrong_masks(source: str) -> Iterator[tuple[MaskChange, str]]:
    """The source with one mask changed, and what was changed."""
    whole = with_headers(source)
    kernels_begin = whole.index("__global__")
    for pattern, replacement in _MASKS:
        for match in re.finditer(pattern, whole):
            changed = match.expand(replacement)
            line = whole.count("\n", 0, match.start()) + 1
            change = MaskChange(line, f"{match.group()} -> {changed}", match.start() < kernels_begin)
            yield change, whole[: match.start()] + changed + whole[match.end() :]


def with_headers(source: str) -> str:
    """The source with the text of the headers that it includes, in an order in which each has what it needs."""
    order = ("types", "math", "blocks", "copy", "reduce", "dot", "tf32")
    directory = resource_directory("targets") / "cuda"
    text = "\n".join((directory / f"bb_{name}.cuh").read_text(encoding="utf-8") for name in order)
    text = re.sub(r"^#(include|pragma once).*$", "", text, flags=re.M)
    return source.replace('#include "bb.cuh"', f"#include <stdint.h>\n{text}")
