"""What whole numbers choices may be, on the command line and from Python alike.

Light to import, for both begin with it. Whether a program has the index that a number is for is not known here.
"""

from __future__ import annotations

import operator
from typing import SupportsIndex

MOST_THREADS = 1024
LARGEST_EXTENT = 2**62  # index arithmetic is 64-bit


def checked_threads(threads: SupportsIndex) -> int:
    """A number of threads. Raises TypeError for what is no whole number, ValueError for too few or too many."""
    return whole_number("threads", threads, 1, MOST_THREADS)


def whole_number(name: str, value: SupportsIndex, least: int, most: int) -> int:
    """The value of an argument, which may be an integer of NumPy. Raises TypeError, or ValueError out of the range."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number from {least} to {most}, not {value!r}") from None
    if not least <= number <= most:
        # Python refuses to print integers of thousands of digits.
        told = number if number.bit_length() <= 128 else f"one of {number.bit_length()} bits"
        raise ValueError(f"{name} must be a whole number from {least} to {most}, not {told}")
    return int(number)
