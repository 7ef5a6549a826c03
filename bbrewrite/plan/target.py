"""Target descriptions: the machine as the cost model sees it, read from `targets/*.toml` or the user's own file. Which
of them describes the machine that this runs on is `host.py`.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any

from bbrewrite.lang.diagnostics import Diagnostic, InputError
from bbrewrite.resources import resource_directory

# Where a description says nothing else, plans are told apart from here on.
TOLERANCE = 0.025


@dataclass(frozen=True)
class MemoryTier:
    """One level of memory. What is not shared every processor has for itself, with this capacity and rate."""

    name: str
    shared: bool
    capacity_bytes: float  # infinite for the last
    bytes_per_second: float


# Every block of threads takes so much shared memory of its own.
RESERVED_SHARED_BYTES = 1024


@dataclass(frozen=True)
class Gpu:
    """What bounds blocks of threads: nvcc's name of the architecture, the memory that a block may use, and what a
    processor, which is a multiprocessor, has for all blocks that are on it at one time.

    `ring_copies` says how many tiles a loop fills in turn at most, so that copies begin ahead of their use. With
    `tf32`, products of f32 are done on tensor cores, which round their operands to it: that is the user's choice.
    """

    architecture: str
    shared_bytes_per_block: int
    registers_per_thread: int
    ring_copies: int
    registers_per_processor: int
    shared_bytes_per_processor: int
    threads_per_processor: int
    blocks_per_processor: int
    warps_for_half_rate: float
    bytes_per_second_of_processor: float
    tf32: bool = False


@dataclass(frozen=True)
class Target:
    """A machine with two or more memory tiers, nearest first. Rates are per second and, where not said otherwise, of
    one processor. `narrow_product_rate` says how many times as fast products are of which both operands are bf16; the
    rate of a GPU's tensor cores is that of 16 bits. `fetching_operations` are the vector instructions in whose time a
    product waits for each vector of a right operand that it fetches from afar in passing. Plans whose predicted times
    are nearer than `tolerance`, as a share, the model does not tell apart.
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
    narrow_product_rate: float = 1.0
    fetching_operations: float = 0.0
    tolerance: float = TOLERANCE
    gpu: Gpu | None = None

    @cached_property
    def local_capacity_bytes(self) -> float:
        """What a processor's local blocks may take."""
        return max(tier.capacity_bytes for tier in self.memory if not tier.shared)

    @cached_property
    def shared_tiers(self) -> tuple[MemoryTier, ...]:
        """The tiers of global memory."""
        return tuple(tier for tier in self.memory if tier.shared)

    def tier_of(self, distance: float) -> MemoryTier:
        """Where something lies between two uses, so many bytes being touched from one to the next."""
        return next(tier for tier in self.shared_tiers if distance <= tier.capacity_bytes)

    def seconds_per_byte(self, distance: float, threads: int) -> float:
        """The time in which one of some processors, all busy, moves a byte that was last used when so many bytes were
        still to be touched.
        """
        return self.tier_seconds_per_byte(self.tier_of(distance), threads)

    def tier_seconds_per_byte(self, tier: MemoryTier, threads: int) -> float:
        """The same of a byte from or to a tier. One processor alone does not use the whole rate of shared memory."""
        return max(self.processors, threads) / tier.bytes_per_second


def load_target(path: Path) -> Target:
    """Reads a target description. Raises InputError for a file that is none."""
    try:
        return read_target(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError) as error:
        what = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        hint = "`bbrewrite target --measure` writes the host's anew; without the file, what is shipped is used"
        message = f"{path} describes no machine: {what}"
        raise InputError([Diagnostic("target", message, hint=hint)]) from None


def read_target(text: str) -> Target:
    """A target description from its text. Raises ValueError, KeyError or TypeError."""
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
        narrow_product_rate=data["matrix_unit"].get("narrow_product_rate", 1.0),
        fetching_operations=data["matrix_unit"].get("fetching_operations", 0.0),
        tolerance=data.get("tolerance", TOLERANCE),
        gpu=Gpu(**data["gpu"]) if "gpu" in data else None,
    )


def _tier(entry: dict[str, Any]) -> MemoryTier:
    capacity = entry["capacity_bytes"] or inf
    return MemoryTier(entry["name"], entry["shared"], capacity, entry["bytes_per_second"])


def print_target(target: Target) -> str:
    """The description of a machine without a GPU, as `read_target` reads it."""
    assert target.gpu is None
    lines = [
        f'name = "{target.name}"',
        f'kind = "{target.kind}"',
        f"tolerance = {target.tolerance:.3g}",
        "",
        "[parallel]",
    ]
    lines += [f"processors = {target.processors}", f"launch_seconds = {target.launch_seconds:.3g}"]
    for tier in target.memory:
        capacity = 0 if tier.capacity_bytes == inf else round(tier.capacity_bytes)
        lines += ["", "[[memory]]", f'name = "{tier.name}"', f"shared = {str(tier.shared).lower()}"]
        lines += [f"capacity_bytes = {capacity}", f"bytes_per_second = {tier.bytes_per_second:.3g}"]
    lines += ["", "[vector_unit]", f"lanes = {target.vector_lanes}"]
    lines += [f"operations_per_second = {target.vector_operations_per_second:.3g}", "", "[matrix_unit]"]
    lines += [f"flops_per_second = {target.matrix_flops_per_second:.3g}", f"rows = {target.matrix_rows}"]
    lines += [f"columns = {target.matrix_columns}"]
    lines += [f"accumulators_to_hide_latency = {target.accumulators_to_hide_latency:.3g}"]
    lines += [f"packing_operations = {target.packing_operations:.3g}"]
    lines += [f"narrow_product_rate = {target.narrow_product_rate:.3g}"]
    lines += [f"fetching_operations = {target.fetching_operations:.3g}"]
    return "\n".join(lines) + "\n"


def gpu_target(architecture: str, tf32: bool = False) -> Target:
    """The description of GPUs of an architecture, such as `sm_80`."""
    target = load_target(resource_directory("targets") / f"{architecture}.toml")
    assert target.gpu is not None
    return replace(target, gpu=replace(target.gpu, tf32=tf32))
