"""PTX written by hand, so that the emulator is tested where there is no nvcc, one instruction at a time."""

from __future__ import annotations

from collections.abc import Sequence

from bbrewrite.emulate.encode import EncodedKernel, encode
from bbrewrite.emulate.machine import Argument, Report, Schedule, launch
from bbrewrite.emulate.ptx import parse_ptx

# The addresses of the entry of this thread, %r1, in arrays of 4 bytes: in %rd1 an input, in %rd2 the output.
_ENTRY = """
	ld.param.u64 	%rd3, [k_param_0];
	ld.param.u64 	%rd4, [k_param_1];
	mov.u32 	%r1, %tid.x;
	mul.wide.u32 	%rd5, %r1, 4;
	add.s64 	%rd1, %rd3, %rd5;
	add.s64 	%rd2, %rd4, %rd5;
"""


def kernel(body: str, shared: int = 0) -> EncodedKernel:
    """A kernel of an input and an output array around a body."""
    declared = f".shared .align 16 .b8 tile[{shared}];" if shared else ""
    text = f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(
	.param .u64 k_param_0,
	.param .u64 k_param_1
)
{{
	{declared}
{_ENTRY}
{body}
	ret;
}}
"""
    return encode(parse_ptx(text)["k"])


def run(
    body: str,
    arguments: Sequence[Argument],
    threads: int = 32,
    shared: int = 0,
    grid: int = 1,
    schedule: Schedule = "greedy",
) -> Report:
    """Runs such a kernel."""
    return launch(kernel(body, shared), grid, threads, 0, arguments, schedule)
