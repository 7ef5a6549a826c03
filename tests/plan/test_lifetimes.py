"""Buffers that share memory: never two at one time, and no more of them for a deep network than for a shallow one."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from bbrewrite.core.elements import Element
from bbrewrite.core.indices import Index, IndexTable
from bbrewrite.core.programs import Role, Tensor
from bbrewrite.plan.kernel import Kernel, KernelProgram
from bbrewrite.plan.lifetimes import owned_buffers, shared_memory

INDICES = IndexTable.of([Index("m", 4), Index("n", 4), Index("e", same_as="m")])


@st.composite
def programs(draw: st.DrawFn) -> KernelProgram:
    """Kernels that each write up to two buffers and read any earlier ones."""
    buffers: list[Tensor] = []
    kernels: list[Kernel] = []
    for number in range(draw(st.integers(1, 12))):
        reads = tuple(draw(st.lists(st.sampled_from(buffers), max_size=3))) if buffers else ()
        written = tuple(
            Tensor(
                f"t{number}_{place}",
                draw(st.sampled_from([("m",), ("n",), ("e",), ("m", "n"), ("e", "n"), ("n", "m")])),
                draw(st.sampled_from([Element.F32, Element.BF16])),
                Role.BUFFER,
            )
            for place in range(draw(st.integers(1, 2)))
        )
        kernels.append(Kernel(f"k{number}", INDICES, (), (), reads, written))
        buffers += written
    return KernelProgram("p", INDICES, (), tuple(buffers), (), tuple(kernels))


def needed(program: KernelProgram, name: str) -> tuple[int, int]:
    """The first and the last kernel that names a buffer."""
    places = [
        place
        for place, kernel in enumerate(program.kernels)
        if name in {tensor.name for tensor in (*kernel.reads, *kernel.writes)}
    ]
    return places[0], places[-1]


@settings(max_examples=200, deadline=None, derandomize=True)
@given(programs())
def test_buffers_that_are_needed_at_one_time_share_no_memory(program: KernelProgram) -> None:
    shared = shared_memory(program)
    assert shared.keys() == {buffer.name for buffer in program.buffers}
    for one, other in combinations(program.buffers, 2):
        if shared[one.name] == shared[other.name]:
            (first, last), (begin, end) = needed(program, one.name), needed(program, other.name)
            assert last < begin or end < first
            assert one.element is other.element
            roots = [[INDICES.root(index) for index in tensor.indices] for tensor in (one, other)]
            assert roots[0] == roots[1]
    assert {shared[name] for name in shared} == set(owned_buffers(program))


def chain(length: int) -> KernelProgram:
    """Kernels that each read what the one before wrote."""
    tensors = [Tensor(f"t{number}", ("m",), Element.F32, Role.BUFFER) for number in range(length)]
    kernels = [
        Kernel(tensor.name, INDICES, (), (), tuple(tensors[max(0, number - 1) : number]), (tensor,))
        for number, tensor in enumerate(tensors)
    ]
    return KernelProgram("p", INDICES, (), tuple(tensors), (), tuple(kernels))


def test_a_chain_of_any_length_takes_two_buffers() -> None:
    assert [len(owned_buffers(chain(length))) for length in (1, 2, 3, 30)] == [1, 2, 2, 2]
