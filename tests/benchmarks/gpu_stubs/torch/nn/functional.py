"""Functions of PyTorch by NumPy."""

from __future__ import annotations

import numpy as np

from torch import Tensor


def rms_norm(x: Tensor, shape: tuple[int, ...], weight: Tensor, eps: float) -> Tensor:
    assert shape == x.shape[-1:]
    values = x.array.astype(np.float32)
    return x.like(values / np.sqrt((values**2).mean(-1, keepdims=True) + eps) * weight.array.astype(np.float32))


def silu(x: Tensor) -> Tensor:
    values = x.array.astype(np.float32)
    return x.like(values / (1 + np.exp(-values)))


def scaled_dot_product_attention(q: Tensor, k: Tensor, v: Tensor, is_causal: bool) -> Tensor:
    queries, keys, values = (tensor.array.astype(np.float32) for tensor in (q, k, v))
    scores = queries @ keys.swapaxes(-1, -2) / np.sqrt(queries.shape[-1])
    if is_causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return q.like(weights / weights.sum(-1, keepdims=True) @ values)
