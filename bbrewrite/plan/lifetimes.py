"""Which buffers take the memory of which: of buffers that are never needed at one time, one is memory for both.

A buffer is needed from the kernel that writes it to the last that reads it, both included, since a kernel's blocks run
in any order. Only buffers of one element type and of the same extents share, so that which do does not depend on what
the extents are. Thus a deep network takes as much memory as a few of its layers. Plans and their reports know nothing
of this: every list that is stored is a buffer of its own there.
"""

from __future__ import annotations

from collections.abc import Mapping

from bbrewrite.core.elements import Element
from bbrewrite.core.programs import Tensor
from bbrewrite.plan.kernel import KernelProgram

type Form = tuple[Element, tuple[str, ...]]


def shared_memory(program: KernelProgram) -> Mapping[str, Tensor]:
    """For every buffer by name the buffer in whose memory it lies: itself, or one that is no longer needed."""
    last_use = {
        tensor.name: place for place, kernel in enumerate(program.kernels) for tensor in (*kernel.reads, *kernel.writes)
    }
    buffers = {tensor.name: tensor for tensor in program.buffers}
    found = dict(buffers)
    free: dict[Form, list[Tensor]] = {}
    for place, kernel in enumerate(program.kernels):
        for tensor in kernel.writes:
            if tensor.name in buffers:
                buffer = buffers[tensor.name]
                waiting = free.get(_form(program, buffer), [])
                found[buffer.name] = waiting.pop() if waiting else buffer
        for name in dict.fromkeys(tensor.name for tensor in (*kernel.reads, *kernel.writes)):
            if name in buffers and last_use[name] == place:
                free.setdefault(_form(program, buffers[name]), []).append(found[name])
    return found


def owned_buffers(program: KernelProgram) -> tuple[Tensor, ...]:
    """The buffers that need memory of their own, in the program's order."""
    shared = shared_memory(program)
    return tuple(buffer for buffer in program.buffers if shared[buffer.name] == buffer)


def _form(program: KernelProgram, tensor: Tensor) -> Form:
    return tensor.element, tuple(program.indices.root(index) for index in tensor.indices)
