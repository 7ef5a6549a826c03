"""Where an array contradicts a fact that a program assumes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

type Array = npt.NDArray[Any]

_FACTS: dict[str, Callable[[Array], npt.NDArray[np.bool_]]] = {
    "positive": lambda x: np.greater(x, 0),
    "nonnegative": lambda x: np.greater_equal(x, 0),
    "nonzero": lambda x: np.not_equal(x, 0),
    "finite": lambda x: np.isfinite(np.asarray(x, dtype=np.float64)),
}


def first_exception(fact: str, values: Array) -> tuple[int, ...] | None:
    """The first position at which a fact ("positive" and its like) does not hold; None where it holds everywhere."""
    holds = _FACTS[fact](values)
    return None if holds.all() else tuple(int(i) for i in np.argwhere(~holds)[0])
