"""Where an address leaves its axis, from extents alone: an address reaches its extremes at corners of index ranges.

A corner counts unless a condition above the read does not select it there. What expressions are made of is for the
callers to know: a condition is a function of a point here, and says None where it depends on data.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from bbrewrite.core.addresses import Address
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.spans import Span
from bbrewrite.lang.diagnostics import Diagnostic

_MOST_CORNER_INDICES = 10  # 2^10 corners of one read are quick; a read with more indices is left to the reference

type Point = Mapping[str, int]


@dataclass(frozen=True)
class Guard:
    """A condition above a read, and whether it holds where the read is selected."""

    names: frozenset[str]  # the indices of which it speaks
    truth: Callable[[Point], bool | None]
    holds: bool


class Corners:
    """Looks at reads in a program whose extents are known."""

    def __init__(self, indices: IndexTable) -> None:
        self._indices = indices

    def extent(self, name: str) -> int:
        """The extent of an index."""
        extent = self._indices.extent(name)
        assert extent is not None, f"the extent of {name} is not known"
        return extent

    def fault(
        self, items: str, axes: Iterable[tuple[Address, str]], guards: tuple[Guard, ...], span: Span | None
    ) -> Diagnostic | None:
        """What is wrong with a read of `items` at these addresses of these indices; None where nothing is known to be.

        Addresses that are plain indices are left out: extents that are equal are another check.
        """
        for address, index in axes:
            if address.plain_index is not None:
                continue
            names = sorted(address.index_names.union(*(guard.names for guard in guards)))
            if len(names) > _MOST_CORNER_INDICES:
                continue
            for corner in itertools.product(*((0, self.extent(name) - 1) for name in names)):
                point = dict(zip(names, corner, strict=True))
                at = self._value(address, point)
                # Only what every condition is known to select is known to be read.
                if not 0 <= at < self.extent(index) and all(guard.truth(point) is guard.holds for guard in guards):
                    return self._diagnostic(items, address, index, at, point, span)
        return None

    def _value(self, address: Address, point: Point) -> int:
        total = address.offset
        total += sum(coefficient * point[name] for name, coefficient in address.indices)
        total += sum(coefficient * self.extent(name) for name, coefficient in address.sizes)
        return total // address.divisor

    def _diagnostic(
        self, items: str, address: Address, index: str, at: int, point: Point, span: Span | None
    ) -> Diagnostic:
        where = ", ".join(f"{name} = {point[name]}" for name in sorted(address.index_names))
        place = f" at {where}" if where else ""
        spot = f"{address} = {at}" if address.indices or address.sizes else f"{at}"
        message = f"{items} is read at {spot}{place}, but size({index}) is {self.extent(index)}"
        hint = "guard the read: `where(condition, read, value)` reads only what the condition selects"
        return Diagnostic("out-of-range", message, span, hint)
