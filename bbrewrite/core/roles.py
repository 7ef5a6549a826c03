"""Where tensors come from. It stands alone, so that a compiled program is called without the forms that made it."""

from __future__ import annotations

from enum import Enum


class Role(Enum):
    """Where a tensor comes from."""

    INPUT = "input"
    WEIGHT = "weight"  # constant from call to call
    BUFFER = "buffer"  # intermediate, in global memory
    OUTPUT = "output"
