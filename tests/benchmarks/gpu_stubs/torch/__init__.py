"""As much of PyTorch as `benchmarks/gpu` uses, on memory of an emulated GPU: computed by NumPy in f32."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
from cuda.bindings.driver import emulated

from tests.api.emulated_driver import DeviceArray

bfloat16, float16, float32 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16), np.dtype(np.float32)


class Tensor(DeviceArray):
    """An array of the emulated GPU with the operators that are used."""

    def __init__(self, array: np.ndarray) -> None:
        super().__init__(emulated, array, code=4 if array.dtype == bfloat16 else None)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def normal_(self, std: float) -> Tensor:
        self.array[...] = np.random.default_rng(0).normal(0.0, std, self.shape)
        return self

    def float(self) -> Tensor:
        return Tensor(self.array.astype(np.float32))

    def like(self, values: Any) -> Tensor:
        return Tensor(np.asarray(values).astype(self.array.dtype))

    def reshape(self, shape: tuple[int, ...]) -> Tensor:
        return Tensor(self.array.reshape(shape))

    def square(self) -> Tensor:
        return self.like(self.array**2)

    def mean(self) -> Tensor:
        return self.like(self.array.mean())

    def sqrt(self) -> Tensor:
        return self.like(np.sqrt(self.array))

    def __getitem__(self, key: Any) -> Tensor:
        return Tensor(self.array[key])

    def __sub__(self, other: Tensor) -> Tensor:
        return self.like(self.array - other.array)

    def __mul__(self, other: Tensor) -> Tensor:
        return self.like(self.array.astype(np.float32) * other.array.astype(np.float32))

    def __matmul__(self, other: Tensor) -> Tensor:
        return self.like(self.array.astype(np.float32) @ other.array.astype(np.float32))

    def __truediv__(self, other: Tensor) -> Tensor:
        return self.like(self.array / other.array)

    def __float__(self) -> float:
        return float(self.array)


class _Event:
    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing

    def record(self) -> None:
        self.time = perf_counter()

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, end: _Event) -> float:
        return 1000 * (end.time - self.time)


def empty(shape: tuple[int, ...], dtype: Any, device: str) -> Tensor:
    assert device == "cuda"
    return Tensor(np.full(shape, np.nan, dtype))


def compile(function: Callable[..., Any], dynamic: bool) -> Callable[..., Any]:
    return function


cuda = SimpleNamespace(current_stream=lambda: SimpleNamespace(cuda_stream=7), synchronize=lambda: None, Event=_Event)

from torch import nn as nn  # noqa: E402
