"""The machine's own limits, measured beside the contenders, since they swing on a shared machine: see limits.cpp."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bbrewrite.runtime.compiler import find_compiler
from benchmarks.compare.workloads import Array, Workload, aligned

_ROUNDS = 1_500_000


@dataclass(frozen=True)
class Limit:
    """What limits a workload; `rate` says how much of it there is now, in operations or bytes a second."""

    name: str
    rate: Callable[[], float]


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

    def of(self, workload: Workload) -> Limit:
        """What limits a workload. Memory is that of its own arrays, as many bytes of it as the workload moves."""
        if workload.is_product:
            # Where no instruction multiplies bf16, it is widened and multiplied like everything else.
            is_narrow = workload.element == "bf16" and self._functions["bf16_dots"](1, ctypes.c_long(1)) > 0
            function = self._functions["bf16_dots" if is_narrow else "multiply_adds"]
            name = "bf16 dot products" if is_narrow else "multiply-adds"
            return Limit(name, partial(function, self._threads, ctypes.c_long(_ROUNDS)))
        if workload.kind == "rmsnorm swiglu":
            source = workload.weights["W1"]
            return Limit("reads", partial(self._on_memory, "reads", [source], source.size))
        source = workload.inputs["X"]
        target = aligned(*source.shape)
        return Limit("copies", partial(self._on_memory, "copies", [target, source], workload.least_bytes // 8))

    def _on_memory(self, name: str, arrays: Sequence[Array], count: int) -> float:
        places = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
        return self._functions[name](self._threads, *places, ctypes.c_long(count))
