"""What is told of an array that another library lends; NumPy's, since every machine has those."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bbrewrite.core.elements import Element
from bbrewrite.runtime.lent import HOST, borrow


@pytest.mark.parametrize(
    ("kind", "element"),
    [
        (np.float16, Element.F16),
        (np.float32, Element.F32),
        (np.float64, Element.F64),
        (np.int32, Element.I32),
        (np.bool_, Element.BOOL),
        (np.int64, None),
        (np.complex64, None),
    ],
)
def test_place_shape_and_type(kind: Any, element: Element | None) -> None:
    array = np.zeros((3, 4, 5), kind)
    lent = borrow(array)
    assert (lent.pointer, lent.shape, lent.device_type) == (array.ctypes.data, (3, 4, 5), HOST)
    assert lent.is_dense
    assert lent.element is element


def test_only_arrays_without_gaps_are_dense() -> None:
    array = np.zeros((4, 6), np.float32)
    assert borrow(array[1:3]).is_dense
    assert borrow(array[1:2, 1:3]).is_dense
    assert not borrow(array[:, 1:3]).is_dense
    assert not borrow(array.T).is_dense
    assert borrow(array[:, :0]).is_dense


def test_what_has_no_protocol_is_refused() -> None:
    with pytest.raises(TypeError, match="it has no __dlpack__"):
        borrow([1.0, 2.0])
