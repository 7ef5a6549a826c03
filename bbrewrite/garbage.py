"""How often Python looks for garbage while a program is read and planned: more rarely than it does by itself.

Reading and planning make very many objects that stay, and next to no cycles of references, which is all that the
collector is for; looking through what stays, over and over, takes a quarter of the time of planning a large program,
and looking once through all modules a tenth of that of reading the rules.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock

# New objects between two looks through them: some ten megabytes.
OBJECTS = 200_000


class _Rarely:
    """How many such works run in this process, and what the user's own threshold is while some do."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running = 0
        self._before = gc.get_threshold()

    def begin(self) -> None:
        with self._lock:
            if self._running == 0:
                self._before = gc.get_threshold()
                # No threshold at all means never.
                if 0 < self._before[0] < OBJECTS:
                    gc.set_threshold(OBJECTS, *self._before[1:])
            self._running += 1

    def end(self) -> None:
        with self._lock:
            self._running -= 1
            if self._running == 0:
                gc.set_threshold(*self._before)


_RARELY = _Rarely()


@contextmanager
def rare_collections() -> Generator[None]:
    """Within it garbage is looked for rarely; afterwards as before."""
    _RARELY.begin()
    try:
        yield
    finally:
        _RARELY.end()
