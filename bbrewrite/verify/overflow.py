"""Which list of a program its own type cannot hold: what an infinity or NaN of an output comes from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bbrewrite.core.elements import Element
from bbrewrite.core.programs import Tensor
from bbrewrite.verify.rounding import rounded

type Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Overflow:
    """A list, and the type that has no room for some of its values."""

    name: str
    element: Element

    @property
    def wider(self) -> Element:
        """A type of more range."""
        return Element.F64 if self.element.compute_type is self.element else self.element.compute_type


def first_overflow(definitions: Iterable[Tensor], reference: Mapping[str, Array]) -> Overflow | None:
    """The first of the lists, in their order, that has a finite value in float64 and an infinite one in its type.

    Lists that the reference does not have, such as the steps of library functions, are left out.
    """
    for tensor in definitions:
        exact = reference.get(tensor.name)
        if exact is None or not tensor.element.is_float:
            continue
        if bool((np.isinf(rounded(exact, tensor.element)) & np.isfinite(exact)).any()):
            return Overflow(tensor.name, tensor.element)
    return None
