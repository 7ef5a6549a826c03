"""What a GPU is told of a program: its launches in order, and the memory that tensors lie in.

A value that is written beside what nvcc made, so that a program which was compiled before runs without the stages that
made it. Imports nothing heavy. The kernels' texts are not here, nor are calls of the driver (`runtime/gpu.py`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import prod
from typing import Any

from bbrewrite.core.elements import Element


@dataclass(frozen=True)
class KernelLaunch:
    """How a kernel is launched.

    A launch passes tensors, then root indices' extents, in order. It has a block of `threads` for every combination of
    blocks of the `grid` indices, none where one of these has no extent: then there is nothing to launch. Those that are
    `looped` over must have one. Lists have room for extents up to `limits`, by root index.
    """

    name: str
    tensors: tuple[str, ...]
    extents: tuple[str, ...]
    grid: tuple[tuple[str, int], ...]  # root index and block size, 1 for a point index
    looped: tuple[str, ...]  # root indices
    threads: int
    shared_bytes: int
    limits: tuple[tuple[str, int], ...]

    def blocks(self, extents: Mapping[str, int]) -> int:
        """How many blocks of threads a launch has."""
        return prod(-(-extents[root] // block) for root, block in self.grid)

    def check(self, extents: Mapping[str, int]) -> None:
        """Raises ValueError for extents that the kernel is not made for, as its launcher refuses them."""
        for root in self.looped:
            if extents[root] < 1:
                raise ValueError(f"{self.name} needs extents of at least 1, {root} is {extents[root]}")
        for root, limit in self.limits:
            if extents[root] > limit:
                raise ValueError(f"{self.name} holds for {root} up to {limit}, not {extents[root]}")


@dataclass(frozen=True)
class Memory:
    """A tensor that has memory of its own, dense and row-major; `axes` are root indices."""

    name: str
    element: Element
    axes: tuple[str, ...]

    def shape(self, extents: Mapping[str, int]) -> tuple[int, ...]:
        """Its extents."""
        return tuple(extents[axis] for axis in self.axes)

    def size_bytes(self, extents: Mapping[str, int]) -> int:
        """What is taken for it: something, even for no entries."""
        return max(1, prod(self.shape(extents)) * self.element.size_bytes)


@dataclass(frozen=True)
class Part:
    """A tensor that lies in the memory of another, at these positions of its first axes."""

    name: str
    whole: Memory
    positions: tuple[int, ...] = ()

    def offset(self, extents: Mapping[str, int]) -> int:
        """The bytes before it."""
        shape = self.whole.shape(extents)
        entries = sum(position * prod(shape[axis + 1 :]) for axis, position in enumerate(self.positions))
        return entries * self.whole.element.size_bytes


@dataclass(frozen=True)
class Launches:
    """See the module text. `buffers` are those that need memory of their own; `shares` extents that planning chose."""

    kernels: tuple[KernelLaunch, ...]
    inputs: tuple[Memory, ...]
    buffers: tuple[Memory, ...]
    outputs: tuple[Memory, ...]
    parts: tuple[Part, ...]
    shares: tuple[tuple[str, int], ...]

    def holds_for(self, extents: Mapping[str, int]) -> bool:
        """Whether lists and single blocks have room for these extents."""
        return all(extents[root] <= limit for kernel in self.kernels for root, limit in kernel.limits)

    def loops_over_nothing(self, extents: Mapping[str, int]) -> bool:
        """Whether a kernel would reduce over an extent of 0, which none is made for."""
        return any(extents[root] == 0 for kernel in self.kernels for root in kernel.looped)

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1, default=lambda element: element.value)

    @classmethod
    def from_json(cls, text: str) -> Launches:
        """The launches that `to_json` wrote. Raises ValueError, KeyError or TypeError for other text."""
        told: Mapping[str, Any] = json.loads(text)
        return cls(
            tuple(map(_kernel, told["kernels"])),
            tuple(map(_memory, told["inputs"])),
            tuple(map(_memory, told["buffers"])),
            tuple(map(_memory, told["outputs"])),
            tuple(Part(part["name"], _memory(part["whole"]), tuple(part["positions"])) for part in told["parts"]),
            _pairs(told["shares"]),
        )


def _kernel(told: Mapping[str, Any]) -> KernelLaunch:
    return KernelLaunch(
        told["name"],
        tuple(told["tensors"]),
        tuple(told["extents"]),
        _pairs(told["grid"]),
        tuple(told["looped"]),
        told["threads"],
        told["shared_bytes"],
        _pairs(told["limits"]),
    )


def _memory(told: Mapping[str, Any]) -> Memory:
    return Memory(told["name"], Element(told["element"]), tuple(told["axes"]))


def _pairs(told: Sequence[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    return tuple((name, number) for name, number in told)
