"""What a kernel loads again because local memory has no room to keep it. It is told by `repeated_loads.py`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Unkept:
    """A tensor of which a kernel would load each block once if it kept them: what local memory it needed then, and what
    is near.
    """

    kernel: str
    tensor: str
    needed_bytes: int
    near_bytes: float
