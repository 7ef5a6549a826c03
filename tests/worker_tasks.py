"""What the processes of `test_workers.py` do."""

from __future__ import annotations

import os
from collections.abc import Callable
from time import sleep


def adding(number: int) -> Callable[[int], tuple[int, int]]:
    """Adds a number, and says in which process."""
    return lambda other: (number + other, os.getpid())


def adding_slowly(number: int) -> Callable[[int], tuple[int, int]]:
    """Adds a number so slowly that other processes have the time to do something."""

    def add(other: int) -> tuple[int, int]:
        sleep(0.02)
        return number + other, os.getpid()

    return add


def printing(number: int) -> Callable[[int], tuple[int, int]]:
    """Adds a number too; what is printed must not get in the way."""

    def add(other: int) -> tuple[int, int]:
        print("adding", flush=True)
        return number + other, os.getpid()

    return add


def failing(_: None) -> Callable[[int], int]:
    """Fails, where the task is odd."""

    def fail(number: int) -> int:
        if number % 2:
            raise ValueError(number)
        return number

    return fail


def ending(_: None) -> Callable[[int], int]:
    """Ends the process that it is done in."""
    return os._exit


def not_starting(_: None) -> Callable[[int], int]:
    """Cannot even begin."""
    raise ValueError("not here")
