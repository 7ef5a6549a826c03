"""How long a search for a counterexample may take: CPU seconds, and longer until a few instances were tried.

A verdict on a handful of instances says nothing, and what a slow or busy machine spends before the first of them, on
imports for example, is not the rule's. So a search that has not tried `FEWEST` instances may take ten times as long.
"""

from __future__ import annotations

import time

FEWEST = 50  # instances tried before time ends a search, and before a condition is proposed
_PATIENCE = 10  # times as long as asked for may go by before them


class Allowance:
    """Seconds of CPU time of this process, which count from when the allowance is made."""

    def __init__(self, seconds: float, fewest: int = FEWEST) -> None:
        self._seconds = seconds
        self._fewest = fewest
        self._start = time.process_time()

    def is_spent(self, tried: int) -> bool:
        """Whether a search that has tried so many instances should end."""
        limit = self._seconds if tried >= self._fewest else self._seconds * _PATIENCE
        return time.process_time() - self._start > limit
