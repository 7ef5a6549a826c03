"""Measures the machine that runs generated C++: rates as the cost model counts them. `targets/cpp/probe.cpp` does the
timing; what is known without is in `host.py`.
"""

from __future__ import annotations

import ctypes
from dataclasses import replace

import numpy as np

from bbrewrite.plan.target import MemoryTier, Target
from bbrewrite.resources import resource_directory
from bbrewrite.runtime.cache import cached_product, content_key
from bbrewrite.runtime.compiler import find_compiler

_LIBRARY = "probe.so"
_BEYOND_CACHES = 4.0  # times the largest cache: what certainly lies in memory
_LEAST_BEYOND = 256e6
_FIRST_TIER = 6  # where the rates of tiers begin among what is found


def measured_target(known: Target, threads: int) -> Target:
    """The target, of which the sizes of memory are this machine's, with its rates too. Raises CompilerMissing."""
    tiers = known.memory
    found = _probe(threads, [_working_set(tier, tiers, threads) for tier in tiers])
    launch, product, vector, lanes, rows, columns = (float(value) for value in found[:_FIRST_TIER])
    rates = [float(rate) for rate in found[_FIRST_TIER:]]
    return replace(
        known,
        processors=threads,
        launch_seconds=launch,
        memory=tuple(
            # What every processor has for itself was measured on all of them together.
            replace(tier, bytes_per_second=rate if tier.shared else rate / threads)
            for tier, rate in zip(tiers, rates, strict=True)
        ),
        vector_lanes=round(lanes),
        vector_operations_per_second=vector,
        matrix_flops_per_second=product,
        matrix_rows=round(rows),
        matrix_columns=round(columns),
    )


def _probe(threads: int, sizes: list[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    headers = resource_directory("targets") / "cpp"
    source = headers / "probe.cpp"
    compiler = find_compiler()
    texts = [path.read_text(encoding="utf-8") for path in (*sorted(headers.glob("*.hpp")), source)]
    key = content_key(compiler.fingerprint, *texts)
    library = cached_product(
        key, _LIBRARY, lambda directory: compiler.build_library(source, directory / _LIBRARY, headers)
    )
    given, found = np.array(sizes), np.zeros(_FIRST_TIER + len(sizes))
    pointer = ctypes.POINTER(ctypes.c_double)
    ctypes.CDLL(str(library)).bb_probe(
        ctypes.c_int(threads),
        given.ctypes.data_as(pointer),
        ctypes.c_int(len(sizes)),
        found.ctypes.data_as(pointer),
    )
    return found


def _working_set(tier: MemoryTier, tiers: tuple[MemoryTier, ...], threads: int) -> float:
    """Bytes of one thread that lie in a tier and in none before it."""
    smaller = [other.capacity_bytes for other in tiers if other.capacity_bytes < tier.capacity_bytes]
    if tier.capacity_bytes == float("inf"):
        return max(_BEYOND_CACHES * max(smaller, default=0.0), _LEAST_BEYOND) / threads
    return tier.capacity_bytes / 2 / (threads if tier.shared else 1)
