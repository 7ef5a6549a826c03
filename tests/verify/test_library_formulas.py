"""Library functions against formulas written independently, over rows, columns and several indices at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.array_programs import reference, unfused

type Array = np.ndarray[Any, Any]


def softmax(x: Array) -> Array:
    return np.exp(x) / np.exp(x).sum()


FUNCTIONS: dict[str, tuple[Callable[[Array], Any], bool]] = {
    "softmax[{}](X[m, n, k])": (softmax, True),
    "log_softmax[{}](X[m, n, k])": (lambda x: np.log(softmax(x)), True),
    "layer_norm[{}](X[m, n, k], eps = 0.01)": (lambda x: (x - x.mean()) / np.sqrt(x.var() + 0.01), True),
    "rms_norm[{}](X[m, n, k], eps = 0.01)": (lambda x: x / np.sqrt((x * x).mean() + 0.01), True),
    "l2_norm[{}](X[m, n, k])": (lambda x: x / np.linalg.norm(x), True),
    "logsumexp[{}](X[m, n, k])": (lambda x: np.log(np.exp(x).sum()), False),
    "variance[{}](X[m, n, k])": (np.var, False),
    "mean[{}](X[m, n, k])": (np.mean, False),
    "max[{}](X[m, n, k])": (np.max, False),
    "prod[{}](X[m, n, k])": (np.prod, False),
}


@pytest.mark.parametrize("bound", ["m", "n", "k", "m, k", "n, m", "m, n, k"])
@pytest.mark.parametrize("call", FUNCTIONS)
def test_function_over_any_indices(call: str, bound: str) -> None:
    function, keeps_shape = FUNCTIONS[call]
    names = bound.split(", ")
    kept = "mnk" if keeps_shape else "".join(name for name in "mnk" if name not in names)
    left = f"Y[{', '.join(kept)}]" if kept else "Y"
    text = f"index m = 3, n = 70, k = 2\ninput X[m, n, k] : f64\noutput {left} = {call.format(bound)}"
    x = np.random.default_rng(0).normal(size=(3, 70, 2))
    axes = ["mnk".index(name) for name in names]
    rows = np.moveaxis(x, axes, range(3 - len(axes), 3))
    outer = rows.shape[: 3 - len(axes)]
    applied = [function(row) for row in rows.reshape(-1, *rows.shape[3 - len(axes) :])]
    if keeps_shape:
        expected = np.moveaxis(np.stack(applied).reshape(rows.shape), range(3 - len(axes), 3), axes)
    else:
        expected = np.array(applied).reshape(outer)
    for found in (reference(text, {"X": x}), unfused(text, {"X": x})):
        np.testing.assert_allclose(found["Y"], expected, rtol=1e-10, atol=1e-12)
