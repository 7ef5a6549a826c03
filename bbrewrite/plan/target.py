"""Target descriptions: the machine as the cost model sees it, read from `targets/*.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from bbrewrite.resources import resource_directory


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
    """A machine with two memory tiers. Rates are per second and, where not said otherwise, of one processor."""

    name: str
    kind: str
    processors: int
    launch_seconds: float
    global_bytes_per_second: float  # shared by all processors
    local_capacity_bytes: int
    vector_lanes: int
    vector_operations_per_second: float
    matrix_flops_per_second: float
    matrix_rows: int
    matrix_columns: int
    accumulators_to_hide_latency: float
    packing_operations: float
    gpu: Gpu | None = None


def load_target(path: Path) -> Target:
    """Reads a target description."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    return Target(
        name=data["name"],
        kind=data["kind"],
        processors=data["parallel"]["processors"],
        launch_seconds=data["parallel"]["launch_seconds"],
        global_bytes_per_second=data["global_memory"]["bytes_per_second"],
        local_capacity_bytes=data["local_memory"]["capacity_bytes"],
        vector_lanes=data["vector_unit"]["lanes"],
        vector_operations_per_second=data["vector_unit"]["operations_per_second"],
        matrix_flops_per_second=data["matrix_unit"]["flops_per_second"],
        matrix_rows=data["matrix_unit"]["rows"],
        matrix_columns=data["matrix_unit"]["columns"],
        accumulators_to_hide_latency=data["matrix_unit"]["accumulators_to_hide_latency"],
        packing_operations=data["matrix_unit"]["packing_operations"],
        gpu=Gpu(**data["gpu"]) if "gpu" in data else None,
    )


def host_target() -> Target:
    """The description of the machine that runs generated C++."""
    return load_target(resource_directory("targets") / "host.toml")


def gpu_target(architecture: str) -> Target:
    """The description of GPUs of an architecture, such as `sm_80`."""
    return load_target(resource_directory("targets") / f"{architecture}.toml")
