"""Each kind of fault that the emulator finds, planted in the smallest kernel that has it, and the same one mended."""

from __future__ import annotations

import numpy as np
import pytest

from bbrewrite.emulate.machine import Output, Report, Schedule
from tests.emulate.ptx_kernels import run

# Every thread leaves its number in shared memory; %r4 is the address of its word, %r6 that of a neighbour's.
_SHARED = """
    mov.u32 %r3, tile;
    shl.b32 %r4, %r1, 2;
    add.s32 %r4, %r4, %r3;
    xor.b32 %r5, %r1, {distance};
    shl.b32 %r6, %r5, 2;
    add.s32 %r6, %r6, %r3;
"""
_EXCHANGE = (
    _SHARED
    + """
    st.shared.u32 [%r4], %r1;
    {between}
    ld.shared.u32 %r7, [%r6];
    st.global.u32 [%rd2], %r7;
"""
)
_COPY = (
    _SHARED
    + """
    mad.wide.u32 %rd6, %r1, 16, %rd3;
    shl.b32 %r8, %r1, 4;
    add.s32 %r8, %r8, %r3;
    cp.async.cg.shared.global [%r8], [%rd6], 16, 16;
    cp.async.commit_group;
    {wait}
    ld.shared.u32 %r7, [%r8];
    st.global.u32 [%rd2], %r7;
    {end}
"""
)


def _run(body: str, threads: int = 64, schedule: Schedule = "greedy", **shapes: int) -> Report:
    words = np.zeros(4 * threads, np.uint32)
    return run(body, [words, Output(np.zeros(threads, np.uint32))], threads, shared=16 * threads, schedule=schedule)


def _found(report: Report) -> set[str]:
    return {kind for kind, count in report.fault_counts.items() if count}


@pytest.mark.parametrize("schedule", ["greedy", "random"])
def test_a_missing_barrier_is_a_race(schedule: Schedule) -> None:
    assert _run(_EXCHANGE.format(distance=32, between="bar.sync 0;"), schedule=schedule).ok
    assert _found(_run(_EXCHANGE.format(distance=32, between=""), schedule=schedule)) & {"race", "uninitialised memory"}


def test_lanes_of_a_warp_race_without_a_synchronisation_of_the_warp() -> None:
    assert _run(_EXCHANGE.format(distance=1, between="bar.warp.sync -1;")).ok
    assert _found(_run(_EXCHANGE.format(distance=1, between=""))) == {"race"}


def test_overwriting_what_another_warp_still_reads_is_a_race() -> None:
    body = _EXCHANGE.format(distance=32, between="bar.sync 0;") + "{again}\nst.shared.u32 [%r4], %r7;"
    assert _run(body.format(again="bar.sync 0;")).ok
    assert _found(_run(body.format(again=""))) == {"race"}


def test_a_barrier_that_some_threads_never_reach() -> None:
    body = "setp.lt.u32 %p1, %r1, 32;\n@%p1 bra $end;\nbar.sync 0;\n$end:\nst.global.u32 [%rd2], %r1;"
    assert _found(_run(body)) == {"divergence"}


def test_a_collective_that_some_lanes_never_reach() -> None:
    body = """
    mov.u32 %r2, 0;
    setp.lt.u32 %p1, %r1, 3;
    @%p1 bra $end;
    shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;
    $end:
    st.global.u32 [%rd2], %r2;
    """
    assert _found(_run(body)) & {"divergence", "deadlock"}


@pytest.mark.parametrize(("offset", "kind"), [(4 * 256, "bounds"), (-4, "bounds"), (2, "misaligned")])
def test_reads_outside_of_an_array_or_across_words(offset: int, kind: str) -> None:
    assert _found(_run(f"ld.global.u32 %r2, [%rd3+{offset}];\nst.global.u32 [%rd2], %r2;")) == {kind}


def test_shared_memory_has_an_end() -> None:
    assert _found(_run("st.shared.u32 [tile+1024], %r1;")) == {"bounds"}


def test_memory_without_a_value() -> None:
    assert _found(_run("ld.shared.u32 %r2, [tile+4];\nst.global.u32 [%rd2], %r2;")) == {"uninitialised memory"}
    assert _found(_run("ld.global.u32 %r2, [%rd2];\nst.global.u32 [%rd2], %r2;")) == {"uninitialised memory"}


def test_a_register_without_a_value() -> None:
    body = "setp.lt.u32 %p1, %r1, 3;\n@%p1 mov.u32 %r2, 1;\nst.global.u32 [%rd2], %r2;"
    assert _found(_run(body)) == {"uninitialised register"}


def test_a_copy_must_be_waited_for() -> None:
    in_time, again = "cp.async.wait_group 0;", "cp.async.cg.shared.global [%r8], [%rd6], 16, 16;"
    assert _run(_COPY.format(distance=0, wait=in_time, end="")).ok
    late = _COPY.format(distance=0, wait="cp.async.wait_group 1;", end="cp.async.wait_all;")
    assert _found(_run(late)) == {"asynchronous copy"}
    assert _found(_run(_COPY.format(distance=0, wait=in_time, end=again))) == {"asynchronous copy"}


def test_a_copied_tile_is_not_there_for_others_before_a_barrier() -> None:
    body = _COPY.replace("ld.shared.u32 %r7, [%r8];", "xor.b32 %r9, %r8, 512;\nld.shared.u32 %r7, [%r9];")
    assert _run(body.format(distance=0, wait="cp.async.wait_group 0;\nbar.sync 0;", end="")).ok
    found = _found(_run(body.format(distance=0, wait="cp.async.wait_group 0;", end="")))
    assert found & {"race", "asynchronous copy", "uninitialised memory"}


def test_the_part_of_a_copy_that_is_not_wanted_is_zero() -> None:
    body = (
        _COPY.format(distance=0, wait="cp.async.wait_group 0;", end="")
        .replace("16, 16", "16, 4")
        .replace("%r7, [%r8]", "%r7, [%r8+4]")
    )
    out = np.ones(32, np.uint32)
    report = run(body, [np.full(128, 9, np.uint32), Output(out)], 32, shared=512)
    assert report.ok, report.faults
    assert not out.any()
    assert report.loaded_bytes.tolist() == [4 * 32]


def test_blocks_of_a_grid_race_on_global_memory() -> None:
    out = np.zeros(32, np.uint32)
    report = run("st.global.u32 [%rd2], %r1;", [np.zeros(32, np.uint32), Output(out)], grid=2)
    assert _found(report) == {"race"}
    assert "thread 0 writes" in report.faults[0]


def test_counted_bytes_and_executed_instructions() -> None:
    out = np.zeros(64, np.uint32)
    body = (
        "setp.lt.u32 %p1, %r1, 40;\n@%p1 ld.global.u32 %r2, [%rd1];\n@!%p1 mov.u32 %r2, 0;\nst.global.u32 [%rd2], %r2;"
    )
    report = run(body, [np.zeros(64, np.uint32), Output(out)], 64)
    assert report.loaded_bytes.tolist() == [160]
    assert report.stored_bytes.tolist() == [256]
    assert set(report.executed[:-1].tolist()) == {2}


@pytest.mark.parametrize(("stride", "passes"), [(4, 1), (8, 2), (128, 32)])
def test_bank_conflicts(stride: int, passes: int) -> None:
    body = f"mul.lo.u32 %r2, %r1, {stride};\nmov.u32 %r3, tile;\nadd.s32 %r3, %r3, %r2;\nst.shared.u32 [%r3], %r1;"
    report = run(body, [np.zeros(32, np.uint32), Output(np.zeros(32, np.uint32))], 32, shared=4096)
    assert report.ok
    assert (report.shared_requests, report.shared_passes) == (1, passes)


def test_a_loop_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bbrewrite.emulate.machine._STEP_LIMIT", 1000)
    assert _found(_run("$again:\nadd.s32 %r2, %r1, 1;\nbra.uni $again;")) == {"runaway"}
