"""Sets of small numbers as the bits of one: united, intersected and compared at once."""

from __future__ import annotations

from collections.abc import Iterator

type Bits = int


def places(bits: Bits) -> Iterator[int]:
    """The places of the bits that are set, lowest first."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
