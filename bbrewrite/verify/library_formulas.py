"""The library functions' formulas on NumPy arrays: `x` is reduced along its last `axes`, kept in shape.

Reductions come back with length 1 along the axes. `eps` is 0 where a function has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from bbrewrite.verify.labelled import Array

type Axes = tuple[int, ...]


def _maximum(x: Array, axes: Axes) -> Array:
    return np.max(x, axis=axes, keepdims=True, initial=-np.inf)


def _shifted(x: Array, axes: Axes) -> Array:
    """x less its maximum; unchanged where every entry is -inf, so that nothing becomes NaN."""
    maximum = _maximum(x, axes)
    return x - np.where(np.isneginf(maximum), 0, maximum)


def _softmax(x: Array, axes: Axes, _: float) -> Array:
    weights = np.exp(_shifted(x, axes))
    total = weights.sum(axis=axes, keepdims=True)
    return weights / np.where(total == 0, 1, total)


def _log_softmax(x: Array, axes: Axes, _: float) -> Array:
    shifted = _shifted(x, axes)
    total = np.exp(shifted).sum(axis=axes, keepdims=True)
    return shifted - np.log(np.where(total == 0, 1, total))


def _logsumexp(x: Array, axes: Axes, _: float) -> Array:
    return _maximum(x, axes) + np.log(np.exp(_shifted(x, axes)).sum(axis=axes, keepdims=True))


def _mean(x: Array, axes: Axes) -> Array:
    count = np.prod([x.shape[axis] for axis in axes])
    return np.asarray(x.sum(axis=axes, keepdims=True) / count, x.dtype)


def _variance(x: Array, axes: Axes, _: float) -> Array:
    return _mean(np.square(x - _mean(x, axes)), axes)


def _layer_norm(x: Array, axes: Axes, eps: float) -> Array:
    return (x - _mean(x, axes)) / np.sqrt(_variance(x, axes, 0) + x.dtype.type(eps))


def _rms_norm(x: Array, axes: Axes, eps: float) -> Array:
    return x / np.sqrt(_mean(np.square(x), axes) + x.dtype.type(eps))


def _l2_norm(x: Array, axes: Axes, _: float) -> Array:
    return x / np.sqrt(np.square(x).sum(axis=axes, keepdims=True))


FORMULAS: Mapping[str, Callable[[Array, Axes, float], Array]] = {
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "logsumexp": _logsumexp,
    "variance": _variance,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "l2_norm": _l2_norm,
}
