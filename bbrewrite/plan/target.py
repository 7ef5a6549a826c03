"""Target descriptions: the machine as the cost model sees it, read from `targets/*.toml` or the user's own file."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from bbrewrite.resources import configuration_directory, resource_directory

HOST_FILE = "host.toml"


@dataclass(frozen=True)
class MemoryTier:
    """One level of memory. What is not shared every processor has for itself, with this capacity and rate."""

    name: str
    shared: bool
    capacity_bytes: float  # infinite for the last
    bytes_per_second: float


@dataclass(frozen=True)
class Gpu:
    """What bounds a block of threads: nvcc's name of the architecture, and the memory that the block may use.

    `ring_copies` says how many tiles a loop fills in turn at most, so that copies begin ahead of their use.
    """

    architecture: str
    shared_bytes_per_block: int
    registers_per_thread: int
    ring_copies: int


@dataclass(frozen=True)
class Target:
    """A machine with two or more memory tiers, nearest first. Rates are per second and, where not said otherwise, of
    one processor.
    """

    name: str
    kind: str
    processors: int
    launch_seconds: float
    memory: tuple[MemoryTier, ...]
    vector_lanes: int
    vector_operations_per_second: float
    matrix_flops_per_second: float
    matrix_rows: int
    matrix_columns: int
    accumulators_to_hide_latency: float
    packing_operations: float
    gpu: Gpu | None = None

    @property
    def local_capacity_bytes(self) -> float:
        """What a processor's local blocks may take."""
        return max(tier.capacity_bytes for tier in self.memory if not tier.shared)

    @property
    def shared_tiers(self) -> tuple[MemoryTier, ...]:
        """The tiers of global memory."""
        return tuple(tier for tier in self.memory if tier.shared)

    def tier_of(self, size_bytes: float) -> MemoryTier:
        """Where a list of this size lies between kernels."""
        return next(tier for tier in self.shared_tiers if size_bytes <= tier.capacity_bytes)

    def seconds_per_byte(self, size_bytes: float, threads: int) -> float:
        """The time in which one of some processors, all busy, moves a byte of a list of this size.

        One processor alone does not use the whole rate of shared memory.
        """
        return max(self.processors, threads) / self.tier_of(size_bytes).bytes_per_second


def load_target(path: Path) -> Target:
    """Reads a target description."""
    return read_target(path.read_text(encoding="utf-8"))


def read_target(text: str) -> Target:
    """A target description from its text."""
    data = tomllib.loads(text)
    return Target(
        name=data["name"],
        kind=data["kind"],
        processors=data["parallel"]["processors"],
        launch_seconds=data["parallel"]["launch_seconds"],
        memory=tuple(_tier(entry) for entry in data["memory"]),
        vector_lanes=data["vector_unit"]["lanes"],
        vector_operations_per_second=data["vector_unit"]["operations_per_second"],
        matrix_flops_per_second=data["matrix_unit"]["flops_per_second"],
        matrix_rows=data["matrix_unit"]["rows"],
        matrix_columns=data["matrix_unit"]["columns"],
        accumulators_to_hide_latency=data["matrix_unit"]["accumulators_to_hide_latency"],
        packing_operations=data["matrix_unit"]["packing_operations"],
        gpu=Gpu(**data["gpu"]) if "gpu" in data else None,
    )


def _tier(entry: dict[str, Any]) -> MemoryTier:
    capacity = entry["capacity_bytes"] or inf
    return MemoryTier(entry["name"], entry["shared"], capacity, entry["bytes_per_second"])


def measured_host_file() -> Path:
    """Where `bbrewrite target --measure` writes what it finds."""
    return configuration_directory() / "targets" / HOST_FILE


def shipped_host_file() -> Path:
    """The description that comes with the package."""
    return resource_directory("targets") / HOST_FILE


def host_target() -> Target:
    """The machine that runs generated C++: as measured, or else as shipped."""
    measured = measured_host_file()
    return load_target(measured if measured.is_file() else shipped_host_file())


def gpu_target(architecture: str) -> Target:
    """The description of GPUs of an architecture, such as `sm_80`."""
    return load_target(resource_directory("targets") / f"{architecture}.toml")
