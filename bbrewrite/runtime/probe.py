"""Measures the machine that runs generated C++: rates and sizes as the cost model counts them.

`targets/cpp/probe.cpp` does the timing; sizes of caches are what the system tells, or else those that are known.
"""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path

import numpy as np

from bbrewrite.plan.target import MemoryTier, Target
from bbrewrite.resources import resource_directory
from bbrewrite.runtime.cache import cached_product, content_key
from bbrewrite.runtime.compiler import find_compiler

_LIBRARY = "probe.so"
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"K": 1024, "M": 1024**2, "G": 1024**3}
# So much of a cache is worked in: others use the rest, more of one that they share.
_SHARE_OF_OWN, _SHARE_OF_SHARED = 0.95, 0.6
_BEYOND_CACHES = 4.0  # times the largest cache: what certainly lies in memory
_LEAST_BEYOND = 256e6
_FIRST_TIER = 4  # where the rates of tiers begin among what is found


def measured_target(known: Target, threads: int) -> Target:
    """The target with this machine's rates and sizes. Raises CompilerMissing."""
    tiers = _with_sizes(known.memory)
    found = _probe(threads, [_working_set(tier, tiers, threads) for tier in tiers])
    launch, product, vector, lanes = (float(value) for value in found[:_FIRST_TIER])
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
        matrix_columns=round(known.matrix_columns * lanes / known.vector_lanes),
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


def _with_sizes(tiers: tuple[MemoryTier, ...]) -> tuple[MemoryTier, ...]:
    """The tiers with the sizes of this machine's caches of their names, L2 and L3."""
    caches = cache_sizes(_CACHES)
    return tuple(
        replace(tier, capacity_bytes=caches[tier.name] * (_SHARE_OF_SHARED if tier.shared else _SHARE_OF_OWN))
        if tier.name in caches
        else tier
        for tier in tiers
    )


def _working_set(tier: MemoryTier, tiers: tuple[MemoryTier, ...], threads: int) -> float:
    """Bytes of one thread that lie in a tier and in none before it."""
    smaller = [other.capacity_bytes for other in tiers if other.capacity_bytes < tier.capacity_bytes]
    if tier.capacity_bytes == float("inf"):
        return max(_BEYOND_CACHES * max(smaller, default=0.0), _LEAST_BEYOND) / threads
    return tier.capacity_bytes / 2 / (threads if tier.shared else 1)


def cache_sizes(directory: Path) -> dict[str, int]:
    """The size of every level of data cache by name, such as L2, as Linux tells it; nothing where it does not."""
    found: dict[str, int] = {}
    for entry in sorted(directory.glob("index*")):
        try:
            level, kind, size = ((entry / name).read_text().strip() for name in ("level", "type", "size"))
            if kind != "Instruction":
                found[f"L{int(level)}"] = int(size.rstrip("KMG")) * _UNITS.get(size[-1:], 1)
        except (OSError, ValueError):
            continue
    return found
