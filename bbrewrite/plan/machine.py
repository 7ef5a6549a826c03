"""What kernels are planned for: a target, how many of its processors, and how much there is to move."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

from bbrewrite.core.indices import IndexTable
from bbrewrite.core.programs import BlockProgram, Role, Tensor
from bbrewrite.plan.target import Target


@dataclass(frozen=True)
class Machine:
    """A target with the threads used and the extents at hand.

    `call_bytes` are those of a program's inputs and outputs: all that a call of it touches at least, and so what lies
    between two uses of an input by two calls.
    """

    target: Target
    threads: int
    extents: Mapping[str, int]
    call_bytes: int = 0

    @staticmethod
    def running(program: BlockProgram, target: Target, threads: int, extents: Mapping[str, int]) -> Machine:
        """The machine that runs a program again and again."""
        tensors = (*program.inputs, *program.outputs)
        return Machine(target, threads, extents, bytes_of(tensors, program.indices.with_extents(extents)))

    def seconds_per_byte(self, tensor: Tensor, indices: IndexTable) -> float:
        """The time in which one processor, while all are busy, moves a byte that its kernel has not touched before."""
        return self.target.seconds_per_byte(self.distance(tensor, indices), self.threads)

    def distance(self, tensor: Tensor, indices: IndexTable) -> int:
        """The bytes that are touched between two kernels' uses of a byte of a tensor: for a buffer, those of one kernel
        that makes or reads it.
        """
        own = bytes_of((tensor,), indices)
        return own if tensor.role is Role.BUFFER else max(own, self.call_bytes)


def bytes_of(tensors: Iterable[Tensor], indices: IndexTable) -> int:
    """The bytes of all tensors together; the indices have extents."""
    return sum(prod(indices.extent(i) or 0 for i in tensor.indices) * tensor.element.size_bytes for tensor in tensors)
