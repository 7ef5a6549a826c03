"""The machine's own limits, measured beside the contenders, since they swing on a shared machine: see limits.cpp."""

from __future__ import annotations

import ctypes
import tempfile
from pathlib import Path

import numpy as np

from bbrewrite.runtime.compiler import find_compiler
from benchmarks.compare.workloads import Array, Workload

_ROUNDS = 1_500_000
_FLOATS = 32 * 1024 * 1024  # 128 MiB, more than a cache holds


class Limits:
    """The loops of limits.cpp, built and loaded."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        with tempfile.TemporaryDirectory() as directory:
            product = Path(directory) / "limits.so"
            source = Path(__file__).with_name("limits.cpp")
            find_compiler().build_library(source, product, source.parent)
            library = ctypes.CDLL(str(product))
        self._functions = {name: library[name] for name in ("multiply_adds", "bf16_dots", "reads", "copies")}
        for function in self._functions.values():
            function.restype = ctypes.c_double
        self._arrays: tuple[Array, Array] | None = None

    def measure(self, workload: Workload) -> tuple[str, float]:
        """What limits a workload, and how much of it there is now: operations or bytes a second."""
        if workload.is_product:
            name = "bf16_dots" if workload.element == "bf16" else "multiply_adds"
            rate = self._functions[name](self._threads, ctypes.c_long(_ROUNDS))
            return ("bf16 dot products" if workload.element == "bf16" else "multiply-adds"), rate
        source, target = self._memory()
        if workload.kind == "rmsnorm swiglu":
            return "reads", self._functions["reads"](self._threads, source, ctypes.c_long(_FLOATS))
        return "copies", self._functions["copies"](self._threads, target, source, ctypes.c_long(_FLOATS))

    def _memory(self) -> tuple[ctypes.c_void_p, ctypes.c_void_p]:
        if self._arrays is None:
            self._arrays = np.ones(_FLOATS + 16, np.float32), np.ones(_FLOATS + 16, np.float32)
        source, target = (array.ctypes.data + -array.ctypes.data % 64 for array in self._arrays)
        return ctypes.c_void_p(source), ctypes.c_void_p(target)
