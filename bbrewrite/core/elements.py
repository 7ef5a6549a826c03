"""Element types of tensors and blocks, and how they combine.

Storage types are what a tensor holds in global memory; `compute_type` gives the type in which
values are worked on in local memory. This file knows nothing of shapes.
"""

from __future__ import annotations

import functools
from enum import Enum

import numpy as np


class Element(Enum):
    """An element type by its name in the languages."""

    BOOL = "bool"
    INDEX = "index"  # 64-bit element positions; never stored in a tensor
    NUMBER = "number"  # a fraction, infinity, or a function of numbers and positions; never stored in a tensor
    I32 = "i32"
    F16 = "f16"
    BF16 = "bf16"
    F32 = "f32"
    F64 = "f64"

    # Each is one object; by default its name would be hashed, in Python.
    __hash__ = object.__hash__

    @property
    def is_float(self) -> bool:
        return self in _FLOATS

    @property
    def size_bytes(self) -> int:
        return _SIZES[self]

    @property
    def compute_type(self) -> Element:
        """The type of a value in local memory: narrow floats widen to f32, integers to 64 bits.

        Numbers are worked on as f64, so that `sqrt(size(d))` is as good as whatever it meets.
        """
        if self in (Element.F16, Element.BF16):
            return Element.F32
        if self is Element.NUMBER:
            return Element.F64
        return Element.INDEX if self is Element.I32 else self

    @functools.cached_property
    def numpy_type(self) -> np.dtype[np.generic]:
        """The type of arrays of such elements; kept, for calls of compiled programs are short."""
        return _bfloat() if self is Element.BF16 else _NUMPY[self]

    def __str__(self) -> str:
        return self.value


_FLOATS = frozenset({Element.NUMBER, Element.F16, Element.BF16, Element.F32, Element.F64})
_SIZES = {
    Element.BOOL: 1,
    Element.INDEX: 8,
    Element.NUMBER: 8,
    Element.I32: 4,
    Element.F16: 2,
    Element.BF16: 2,
    Element.F32: 4,
    Element.F64: 8,
}
_NUMPY: dict[Element, np.dtype[np.generic]] = {
    Element.BOOL: np.dtype(np.bool_),
    Element.INDEX: np.dtype(np.int64),
    Element.NUMBER: np.dtype(np.float64),
    Element.I32: np.dtype(np.int32),
    Element.F16: np.dtype(np.float16),
    Element.F32: np.dtype(np.float32),
    Element.F64: np.dtype(np.float64),
}


def _bfloat() -> np.dtype[np.generic]:
    # Few programs have bf16, and those that were compiled before are called within milliseconds.
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)


_RANK = {
    Element.BOOL: 0,
    Element.I32: 1,
    Element.INDEX: 2,
    Element.NUMBER: 3,
    Element.F16: 4,
    Element.BF16: 4,
    Element.F32: 5,
    Element.F64: 6,
}


def wider(a: Element | None, b: Element | None) -> Element | None:
    """The type of mixed arithmetic. None is the type of a bare whole number, which takes the other's type.

    f16 with bf16 gives f32, the narrowest type that holds both; a tensor's integers with a fraction give f32;
    a truth value beside a whole number counts as 0 or 1.
    """
    if a is None or b is None:
        other = a or b
        return Element.I32 if other is Element.BOOL and a is not b else other
    if {a, b} == {Element.F16, Element.BF16}:
        return Element.F32
    if Element.NUMBER in (a, b) and not {a, b}.isdisjoint({Element.I32, Element.BOOL}):
        return Element.F32
    return a if _RANK[a] >= _RANK[b] else b


def as_float(element: Element | None) -> Element | None:
    """The type in which a function such as `exp` or a true division works.

    A tensor's integers become f32; whole numbers and positions stay as adaptable as a fraction is.
    """
    if element is None or element is Element.INDEX:
        return Element.NUMBER
    return element if element.is_float else Element.F32


def stored_element(element: Element | None) -> Element:
    """The type of a tensor that holds such values: positions are stored as i32, numbers as f32."""
    if element is None or element is Element.NUMBER:
        return Element.F32
    return Element.I32 if element is Element.INDEX else element
