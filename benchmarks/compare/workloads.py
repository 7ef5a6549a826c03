"""The programs that are compared: their text, random arrays, a float64 reference, and the least work that they need.

No library and nothing of ours is called here, so that every contender is judged by the same reference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

type Array = npt.NDArray[Any]

EPSILON = 1e-5
SOFTCAP = 50.0
WINDOW = 256

_ATTENTION = """\
program attention
index h = {0}, m = {1}, n = m, d = {2}, l = d
input  Q[h, m, d], K[h, n, d], V[h, n, l] : {element}
S[h, m, n] = sum[d](Q[h, m, d] * K[h, n, d]) / sqrt(size(d))
"""
_TEXTS = {
    "matmul": """\
program matmul
index m = {0}, k = {1}, n = {2}
input  X[m, k] : {element}
weight W[k, n] : {element}
output Y[m, n] = sum[k](X[m, k] * W[k, n])
""",
    "attention": _ATTENTION + "output Y[h, m, l] = sum[n](softmax[n](S[h, m, n]) * V[h, n, l])\n",
    "causal attention": _ATTENTION
    + """\
C[h, m, n] = where(n <= m, S[h, m, n], -inf)
output Y[h, m, l] = sum[n](softmax[n](C[h, m, n]) * V[h, n, l])
""",
    "softcap window attention": _ATTENTION
    + f"""\
C[h, m, n] = where(n <= m and m - n < {WINDOW}, {SOFTCAP:g} * tanh(S[h, m, n] / {SOFTCAP:g}), -inf)
output Y[h, m, l] = sum[n](softmax[n](C[h, m, n]) * V[h, n, l])
""",
    "layernorm matmul": """\
program layernorm_matmul
index m = {0}, k = {1}, n = {2}
input  X[m, k] : {element}
weight W[k, n] : {element}
output Y[m, n] = sum[k](layer_norm[k](X[m, k], eps = 1e-5) * W[k, n])
""",
    "rmsnorm swiglu": """\
program rmsnorm_swiglu
index m = {0}, d = {1}, f = {2}, e = d
input  X[m, d] : {element}
weight W1[d, f], W3[d, f], W2[f, e] : {element}
H[m, d] = rms_norm[d](X[m, d], eps = 1e-5)
G[m, f] = silu(sum[d](H[m, d] * W1[d, f])) * sum[d](H[m, d] * W3[d, f])
output Y[m, e] = sum[f](G[m, f] * W2[f, e])
""",
    "softmax": """\
program softmax_rows
index m = {0}, n = {1}
input  X[m, n] : {element}
output Y[m, n] = softmax[n](X[m, n])
""",
    "layernorm": """\
program layernorm_rows
index m = {0}, n = {1}
input  X[m, n] : {element}
output Y[m, n] = layer_norm[n](X[m, n], eps = 1e-5)
""",
}

_ATTENTION_SHAPES = ((8, 512, 64), (8, 2048, 64), (1, 4096, 64), (8, 1024, 128), (16, 128, 64))
_SHAPES: Mapping[str, tuple[tuple[int, ...], ...]] = {
    "matmul": ((512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048), (128, 4096, 4096)),
    "attention": _ATTENTION_SHAPES,
    "causal attention": _ATTENTION_SHAPES,
    "softcap window attention": ((8, 2048, 64),),
    "layernorm matmul": ((512, 1024, 1024), (2048, 1024, 1024), (128, 4096, 4096), (2048, 768, 3072)),
    "rmsnorm swiglu": ((16, 1024, 2816), (128, 1024, 2816), (512, 1024, 2816), (128, 4096, 11008), (1, 4096, 11008)),
    "softmax": ((4096, 4096),),
    "layernorm": ((4096, 4096),),
}


@dataclass(frozen=True)
class Workload:
    """One program at one size. Arrays hold what the element type can hold; weights are constants between calls."""

    kind: str
    shape: tuple[int, ...]
    element: str  # f32 or bf16

    @property
    def label(self) -> str:
        return f"{self.kind} {'x'.join(map(str, self.shape))} {self.element}"

    @property
    def text(self) -> str:
        """The program."""
        return _TEXTS[self.kind].format(*self.shape, element=self.element)

    @property
    def is_attention(self) -> bool:
        return "attention" in self.kind

    @property
    def is_product(self) -> bool:
        """Whether arithmetic, and not memory, limits it; by far the most of it is in matrix products."""
        return self.kind not in ("softmax", "layernorm") and self.shape[0 if not self.is_attention else 1] > 1

    @cached_property
    def mask(self) -> Array:
        """Which keys (columns) each query (row) sees."""
        query, key = np.arange(self.shape[1])[:, None], np.arange(self.shape[1])[None, :]
        if self.kind == "attention":
            return np.ones((self.shape[1], self.shape[1]), np.bool_)
        seen = key <= query
        return seen & (query - key < WINDOW) if self.kind == "softcap window attention" else seen

    @property
    def flops(self) -> int:
        """Operations of the matrix products that the result needs; pairs that the mask excludes do not count."""
        if self.is_attention:
            return 4 * self.shape[0] * self.shape[2] * int(self.mask.sum())
        return (6 if self.kind == "rmsnorm swiglu" else 2) * math.prod(self.shape)

    @cached_property
    def inputs(self) -> dict[str, Array]:
        """Arrays that differ from call to call, as float32 values."""
        draw = _Draw(self.element, 0)
        if self.is_attention:
            return {name: draw(*self.shape) for name in "QKV"}
        return {"X": draw(*self.shape[:2])}

    @cached_property
    def weights(self) -> dict[str, Array]:
        """Constant arrays, as float32 values."""
        draw = _Draw(self.element, 1)
        if self.kind == "rmsnorm swiglu":
            _, d, f = self.shape
            return {"W1": draw(d, f) / 32, "W3": draw(d, f) / 32, "W2": draw(f, d) / 64}
        return {"W": draw(*self.shape[1:]) / 32} if "matmul" in self.kind else {}

    @property
    def least_bytes(self) -> int:
        """Every array once, in its element type."""
        arrays = [*self.inputs.values(), *self.weights.values(), self.reference]
        return sum(array.size for array in arrays) * (4 if self.element == "f32" else 2)

    @cached_property
    def reference(self) -> Array:
        """The result in float64."""
        arrays = {name: array.astype(np.float64) for name, array in (self.inputs | self.weights).items()}
        return _FORMULAS[self.kind](self, **arrays)

    def error(self, result: Array) -> float:
        """The largest error of a result, relative to the largest entry."""
        result = result.astype(np.float64).reshape(self.reference.shape)
        return float(np.abs(result - self.reference).max() / np.abs(self.reference).max())

    @property
    def tolerance(self) -> float:
        """The largest error that still counts as the same result."""
        return 1e-4 if self.element == "f32" else 2e-2

    def stored(self, array: Array) -> Array:
        """The array in the element type."""
        return array.astype(ml_dtypes.bfloat16) if self.element == "bf16" else array


def all_workloads(element: str) -> list[Workload]:
    """Every row of the comparison."""
    return [Workload(kind, shape, element) for kind, shapes in _SHAPES.items() for shape in shapes]


def aligned(*shape: int) -> Array:
    """An array of float32 in memory aligned to a cache line, as some libraries need it; it may hold anything."""
    size = math.prod(shape)
    raw = np.empty(4 * size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + 4 * size].view(np.float32).reshape(shape)


class _Draw:
    """Normal numbers, rounded to the element type."""

    def __init__(self, element: str, seed: int) -> None:
        self._element = element
        self._generator = np.random.default_rng(seed)

    def __call__(self, *shape: int) -> Array:
        array = aligned(*shape)
        array[...] = self._generator.standard_normal(shape, np.float32)
        if self._element == "bf16":
            array[...] = array.astype(ml_dtypes.bfloat16).astype(np.float32)
        return array


def _matmul(_: Workload, X: Array, W: Array) -> Array:
    return X @ W


def _softmax(_: Workload, X: Array) -> Array:
    exponentials = np.exp(X - X.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


def _layernorm(_: Workload, X: Array) -> Array:
    centred = X - X.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + EPSILON)


def _layernorm_matmul(workload: Workload, X: Array, W: Array) -> Array:
    return _layernorm(workload, X) @ W


def _rmsnorm_swiglu(_: Workload, X: Array, W1: Array, W3: Array, W2: Array) -> Array:
    H = X / np.sqrt((X * X).mean(-1, keepdims=True) + EPSILON)
    gate = H @ W1
    return (gate / (1 + np.exp(-gate)) * (H @ W3)) @ W2


def _attention(workload: Workload, Q: Array, K: Array, V: Array) -> Array:
    heads = []
    for q, k, v in zip(Q, K, V, strict=True):  # one head at a time, for the memory of the scores
        scores = q @ k.T / math.sqrt(q.shape[-1])
        if workload.kind == "softcap window attention":
            scores = SOFTCAP * np.tanh(scores / SOFTCAP)
        heads.append(_softmax(workload, np.where(workload.mask, scores, -np.inf)) @ v)
    return np.stack(heads)


_FORMULAS: Mapping[str, Callable[..., Array]] = {
    "matmul": _matmul,
    "attention": _attention,
    "causal attention": _attention,
    "softcap window attention": _attention,
    "layernorm matmul": _layernorm_matmul,
    "rmsnorm swiglu": _rmsnorm_swiglu,
    "softmax": _softmax,
    "layernorm": _layernorm,
}
