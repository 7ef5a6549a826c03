"""Sets of small numbers as the bits of one: united, intersected and compared at once."""

from __future__ import annotations

type Bits = int


def places(bits: Bits) -> list[int]:
    """The places of the bits that are set, lowest first."""
    found: list[int] = []
    while bits:
        # From the highest on, so that numbers get shorter.
        place = bits.bit_length() - 1
        found.append(place)
        bits ^= 1 << place
    found.reverse()
    return found
