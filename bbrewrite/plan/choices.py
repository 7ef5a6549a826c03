"""What a plan is, told by the choices made: enough to make it again without searching, on paper.

Terms are named by their digests, which are the same in every process. A choice may not fit the program at hand (it
comes from a file); who follows it says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, cast


@dataclass(frozen=True)
class ScheduleChoice:
    """How one kernel runs: its grid, the order of the other loops, the index whose loop processors share out if any,
    what is kept local, and the block size of every index, 1 for a point loop.
    """

    grid: tuple[str, ...]
    order: tuple[str, ...]
    split: str | None
    kept: tuple[str, ...]  # digests, sorted
    blocks: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class PlanChoice:
    """Which lists a plan stores, told by the digests of its outputs' terms, how its kernels run, in order, and whether
    the compiler unrolls their loops.
    """

    terms: tuple[tuple[str, str], ...]  # outputs with digests, by name
    kernels: tuple[ScheduleChoice, ...]
    unrolled: bool = False

    def to_json(self) -> dict[str, Any]:
        """The choice as JSON has it."""
        return asdict(self)

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> PlanChoice:
        """The choice that JSON tells. Raises KeyError, TypeError or ValueError for what tells none."""
        kernels = tuple(
            ScheduleChoice(
                _names(kernel["grid"]),
                _names(kernel["order"]),
                None if kernel["split"] is None else str(kernel["split"]),
                _names(kernel["kept"]),
                tuple((str(name), int(size)) for name, size in kernel["blocks"]),
            )
            for kernel in told["kernels"]
        )
        terms = tuple((str(name), str(digest)) for name, digest in told["terms"])
        return cls(terms, kernels, bool(told["unrolled"]))

    def __str__(self) -> str:
        return json.dumps(self.to_json())


def _names(told: object) -> tuple[str, ...]:
    if not isinstance(told, list):
        raise TypeError("a list of names is needed")
    return tuple(map(str, cast("list[object]", told)))
