"""Values in f64, as they are compared, and what of them a type can hold. Any bits may come in, none is warned of."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bbrewrite.core.elements import Element

type Array = npt.NDArray[Any]


def widened(values: Array) -> Array:
    """The values in f64."""
    with np.errstate(invalid="ignore"):  # NaNs that signal may be among them
        return np.asarray(values).astype(np.float64)


def rounded(values: Array, element: Element) -> Array:
    """The values in f64 after they were rounded to a type, in which they may become infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        return widened(values.astype(element.numpy_type))
