"""The machine that runs generated C++: as `bbrewrite target --measure` found it, or else as it ships, with what the
system tells of this one without measuring: how large its caches are and which vectors its processor has.

Which blocks are best depends on those most; rates, which order plans much alike on all machines, are as shipped.
Measuring is `runtime/probe.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from bbrewrite.plan.target import MemoryTier, Target, load_target
from bbrewrite.resources import configuration_directory, resource_directory
from bbrewrite.runtime.processor import cache_sizes, processor_features

_FILE = "host.toml"
# So much of a cache is worked in: others use the rest, more of one that they share.
_SHARE_OF_OWN, _SHARE_OF_SHARED = 0.9537, 0.596
_VECTORS_OF_32_REGISTERS, _VECTORS_OF_16_REGISTERS = 4, 2  # across a register tile, as in `targets/cpp/bb_tile.hpp`
# What `fetching_operations` are where a row of a panel is a cache line or less, as measured on one of Zen 3.
_FETCHING_OF_NARROW_PANELS = 8.0
# How far predicted times are off there: most rates are those of the shipped file, measured on another machine.
_TOLERANCE_OF_NARROW_PANELS = 0.05


def host_target() -> Target:
    """The machine as plans are priced for it. Raises InputError for a file that describes none."""
    measured = measured_host_file()
    return load_target(measured) if measured.is_file() else unmeasured_host()


def unmeasured_host() -> Target:
    """The description that ships, with what the system tells."""
    shipped = load_target(shipped_host_file())
    return with_vectors(with_caches(shipped, cache_sizes()), processor_features())


def measured_host_file() -> Path:
    """Where `bbrewrite target --measure` writes what it finds."""
    return configuration_directory() / "targets" / _FILE


def shipped_host_file() -> Path:
    """The description of the machine on which the shipped rates were measured."""
    return resource_directory("targets") / _FILE


def with_caches(target: Target, sizes: Mapping[str, int]) -> Target:
    """The target with caches of these sizes in bytes, by their names, such as L2; others stay as they are."""

    def fitted(tier: MemoryTier) -> MemoryTier:
        share = _SHARE_OF_SHARED if tier.shared else _SHARE_OF_OWN
        return replace(tier, capacity_bytes=round(sizes[tier.name] * share)) if tier.name in sizes else tier

    return replace(target, memory=tuple(map(fitted, target.memory)))


def with_vectors(target: Target, features: Collection[str]) -> Target:
    """The target with the vectors of a processor of these features, as Linux names them, and the register tile that
    `targets/cpp/bb_tile.hpp` makes of them. Of processors of which nothing is told nothing changes.
    """
    if "avx512f" in features:
        lanes, vectors = 16, _VECTORS_OF_32_REGISTERS
    elif "asimd" in features:
        lanes, vectors = 4, _VECTORS_OF_32_REGISTERS
    elif "sse2" in features:
        lanes, vectors = 8 if "avx" in features else 4, _VECTORS_OF_16_REGISTERS
    else:
        return target
    narrow = target.narrow_product_rate if "avx512_bf16" in features else 1.0
    fitted = replace(
        target,
        vector_lanes=lanes,
        # As many instructions multiply and add in a second, each as many numbers as a vector has.
        matrix_flops_per_second=target.matrix_flops_per_second * lanes / target.vector_lanes,
        matrix_columns=lanes * vectors,
        narrow_product_rate=narrow,
    )
    if vectors == _VECTORS_OF_32_REGISTERS:
        return fitted
    return replace(fitted, fetching_operations=_FETCHING_OF_NARROW_PANELS, tolerance=_TOLERANCE_OF_NARROW_PANELS)
