"""What tuning found, kept in the cache: the fastest plan of a program at extents of one size class, on this machine.

A plan is kept as the choices that make it, in JSON. What cannot be read, or tells a plan that the program does not
have, is no fault: the plan is then the model's own. Entries appear whole, and the last one written counts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from bbrewrite import __version__
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.printing import print_block_program
from bbrewrite.lang.diagnostics import counted
from bbrewrite.plan.choices import PlanChoice
from bbrewrite.request import Request
from bbrewrite.runtime.cache import TUNED, content_key, note, noted
from bbrewrite.runtime.processor import processor_name


@dataclass(frozen=True)
class Winner:
    """The plan that was measured fastest, with its time and that of the model's own choice, and of how many."""

    choice: PlanChoice
    milliseconds: float
    own_milliseconds: float
    measured: int


def keep_winner(request: Request, winner: Winner) -> None:
    """Keeps what tuning found for the program of a request; what cannot be written is not kept."""
    told = {
        "choice": winner.choice.to_json(),
        "milliseconds": winner.milliseconds,
        "own_milliseconds": winner.own_milliseconds,
        "measured": winner.measured,
    }
    note(TUNED, tuning_key(request), json.dumps(told).encode())


def kept_winner(request: Request) -> Winner | None:
    """What tuning found for the program of a request, at extents like these."""
    text = noted(TUNED, tuning_key(request))
    if text is None:
        return None
    try:
        told = cast("Mapping[str, Any]", json.loads(text))
        times = float(told["milliseconds"]), float(told["own_milliseconds"])
        winner = Winner(PlanChoice.from_json(told["choice"]), *times, int(told["measured"]))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return winner if all(0 < time < math.inf for time in times) else None


def tuning_notes(winners: Sequence[Winner]) -> tuple[str, ...]:
    """What tuning had to do with a plan that is made of these, and how to do without; nothing where it had no part."""
    if not winners:
        return ()
    measured = counted(sum(winner.measured for winner in winners), "plan")
    best, own = sum(w.milliseconds for w in winners), sum(w.own_milliseconds for w in winners)
    took = (
        f"{best:.3g} ms, the model's own choice took {own:.3g} ms" if best < own else f"the model's own, {own:.3g} ms"
    )
    unrolled = ", loops unrolled" if any(winner.choice.unrolled for winner in winners) else ""
    return (f"tuned on this machine: of {measured} measured the fastest{unrolled} ({took}); --no-tuned plans without",)


def tuning_key(request: Request) -> str:
    """The name of the entry of programs that are alike but for their extents, which are of one size class."""
    indices = request.blocks.indices
    # Of block sizes only those count that the program fixes: planning chooses the others.
    free = [
        replace(index, extent=None, block=index.block if index.block is None or index.block_is_fixed else 1)
        for index in indices
    ]
    text = print_block_program(replace(request.blocks, indices=IndexTable.of(free)), request.rules.table)
    classes = [(index.name, _size_class(request.extents[indices.root(index.name)])) for index in indices]
    rules = [rule.name for rule in request.rules.rules]
    choices = json.dumps([classes, rules, request.threads, request.fast_math])
    return content_key(__version__, processor_name(), choices, text)


def _size_class(extent: int) -> int:
    """Extents of one class are less than twice as large as each other."""
    return extent.bit_length()
