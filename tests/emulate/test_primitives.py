"""Every instruction of the emulator that has a meaning of its own, against a plain model of it in NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from bbrewrite.emulate.machine import Output, Schedule
from bbrewrite.emulate.ptx import PtxSyntaxError
from tests.emulate.ptx_kernels import kernel, run

_DRAW = np.random.default_rng(1)
_INTEGERS = _DRAW.integers(-(2**31), 2**31, 32, np.int64).astype(np.int32)
_FLOATS = (_DRAW.standard_normal(32) * 10).astype(np.float32)


def _computed(instruction: str, values: np.ndarray, kind: str = "u32", result: type = np.uint32) -> np.ndarray:
    """What an instruction from %r2 (or %f2) to %r3 (or %f3) gives for every value."""
    register = "f" if kind == "f32" else "r"
    out = np.zeros(32, result)
    stored = "f32" if result is np.float32 else "u32"
    target = "f3" if result is np.float32 else "r3"
    body = f"ld.global.{kind} %{register}2, [%rd1];\n{instruction}\nst.global.{stored} [%rd2], %{target};"
    report = run(body, [values, Output(out)])
    assert report.ok, report.faults
    return out


_WIDE = _INTEGERS.astype(np.int64)
_UNSIGNED = _INTEGERS.view(np.uint32).astype(np.uint64)


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ("add.s32 %r3, %r2, 7;", _WIDE + 7),
        ("sub.s32 %r3, %r2, 7;", _WIDE - 7),
        ("mul.lo.s32 %r3, %r2, -12345;", _WIDE * -12345),
        ("mul.hi.s32 %r3, %r2, -12345;", _WIDE * -12345 >> 32),
        ("mul.hi.u32 %r3, %r2, 4000000000;", _UNSIGNED * np.uint64(4000000000) >> np.uint64(32)),
        ("mad.lo.s32 %r3, %r2, 3, 5;", _WIDE * 3 + 5),
        ("div.s32 %r3, %r2, 7;", np.trunc(_WIDE / 7).astype(np.int64)),
        ("rem.s32 %r3, %r2, 7;", np.fmod(_WIDE, 7)),
        ("shl.b32 %r3, %r2, 5;", _WIDE << 5),
        ("shr.s32 %r3, %r2, 5;", _WIDE >> 5),
        ("shr.u32 %r3, %r2, 5;", _UNSIGNED >> np.uint64(5)),
        ("shr.s32 %r3, %r2, 40;", _WIDE >> 31),
        ("and.b32 %r3, %r2, 65535;", _WIDE & 65535),
        ("not.b32 %r3, %r2;", ~_WIDE),
        ("min.s32 %r3, %r2, 9;", np.minimum(_WIDE, 9)),
        ("max.u32 %r3, %r2, 9;", np.maximum(_UNSIGNED, 9)),
        ("abs.s32 %r3, %r2;", np.abs(_WIDE)),
        ("bfe.s32 %r3, %r2, 4, 9;", ((_WIDE >> 4 & 511) ^ 256) - 256),
        ("bfe.u32 %r3, %r2, 4, 9;", _WIDE >> 4 & 511),
        ("mov.b32 %r4, 0;\nbfi.b32 %r3, %r2, %r4, 8, 4;", (_WIDE & 15) << 8),
        ("popc.b32 %r3, %r2;", np.bitwise_count(_INTEGERS.view(np.uint32))),
        ("prmt.b32 %r3, %r2, 0, 0x0123;", _INTEGERS.byteswap().astype(np.int64)),
        ("lop3.b32 %r3, %r2, 255, 65280, 0x96;", _WIDE ^ 255 ^ 65280),
        ("shf.l.wrap.b32 %r3, %r2, %r2, 8;", _UNSIGNED << np.uint64(8) | _UNSIGNED >> np.uint64(24)),
        ("setp.lt.s32 %p1, %r2, 0;\nselp.b32 %r3, 1, 2, %p1;", np.where(_WIDE < 0, 1, 2)),
        ("setp.lt.u32 %p1, %r2, 5;\nselp.b32 %r3, 1, 2, %p1;", np.where(_UNSIGNED < 5, 1, 2)),
        ("mov.b32 {%rs1, %rs2}, %r2;\nmov.b32 %r3, {%rs2, %rs1};", _WIDE >> 16 & 65535 | _WIDE << 16),
        ("cvt.s64.s32 %rd6, %r2;\nshr.s64 %rd7, %rd6, 32;\ncvt.u32.u64 %r3, %rd7;", _WIDE >> 32),
    ],
)  # fmt: skip
def test_integer_arithmetic(instruction: str, expected: np.ndarray) -> None:
    found = _computed(instruction, _INTEGERS)
    np.testing.assert_array_equal(found, (expected.astype(np.int64) & 0xFFFFFFFF).astype(np.uint32))


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ("add.f32 %f3, %f2, 0f3F800000;", _FLOATS + np.float32(1)),
        ("mul.rn.f32 %f3, %f2, %f2;", _FLOATS * _FLOATS),
        ("fma.rn.f32 %f3, %f2, %f2, 0f3F800000;", (_FLOATS.astype(np.float64) ** 2 + 1).astype(np.float32)),
        ("div.rn.f32 %f3, 0f3F800000, %f2;", np.float32(1) / _FLOATS),
        ("neg.f32 %f3, %f2;", -_FLOATS),
        ("abs.f32 %f3, %f2;", np.abs(_FLOATS)),
        ("max.f32 %f3, %f2, 0f00000000;", np.maximum(_FLOATS, 0)),
        ("abs.f32 %f4, %f2;\nsqrt.rn.f32 %f3, %f4;", np.sqrt(np.abs(_FLOATS))),
        ("cvt.rni.f32.f32 %f3, %f2;", np.rint(_FLOATS)),
        ("cvt.rmi.f32.f32 %f3, %f2;", np.floor(_FLOATS)),
        ("cvt.sat.f32.f32 %f3, %f2;", np.clip(_FLOATS, 0, 1)),
        ("cvt.rn.f16.f32 %rs1, %f2;\ncvt.f32.f16 %f3, %rs1;", _FLOATS.astype(np.float16).astype(np.float32)),
        (
            "cvt.rn.bf16.f32 %rs1, %f2;\nmov.b32 %f3, {0, %rs1};",
            _FLOATS.astype(ml_dtypes.bfloat16).astype(np.float32),
        ),
        ("cvt.f64.f32 %fd1, %f2;\nmul.f64 %fd2, %fd1, %fd1;\ncvt.rn.f32.f64 %f3, %fd2;", _FLOATS * _FLOATS),
        ("ex2.approx.f32 %f3, %f2;", np.exp2(_FLOATS)),
        ("cvt.rzi.s32.f32 %r4, %f2;\ncvt.rn.f32.s32 %f3, %r4;", np.trunc(_FLOATS)),
    ],
)
def test_floating_point_arithmetic(instruction: str, expected: np.ndarray) -> None:
    found = _computed(instruction, _FLOATS, "f32", np.float32)
    np.testing.assert_allclose(found, expected, rtol=3e-7)


@pytest.mark.parametrize("kind", ["s8", "s16", "s32", "u8", "u16", "u32"])
def test_a_load_extends_values_to_the_whole_register(kind: str) -> None:
    out = np.zeros(32, np.uint32)
    report = run(
        f"ld.global.{kind} %rd6, [%rd1];\nshr.u64 %rd7, %rd6, 32;\nst.global.u32 [%rd2], %rd7;",
        [_INTEGERS, Output(out)],
    )
    assert report.ok, report.faults
    narrow = _INTEGERS.view(np.dtype(f"{'i' if kind[0] == 's' else 'u'}{int(kind[1:]) // 8}"))[:: 32 // int(kind[1:])]
    np.testing.assert_array_equal(out.view(np.int32), np.where(narrow.astype(np.int64) < 0, -1, 0))


def test_directed_rounding_never_passes_the_exact_value() -> None:
    down = _computed("mul.rm.f32 %f3, %f2, 0f3DCCCCCD;", _FLOATS, "f32", np.float32)
    up = _computed("mul.rp.f32 %f3, %f2, 0f3DCCCCCD;", _FLOATS, "f32", np.float32)
    exact = _FLOATS.astype(np.float64) * np.float32(0.1)
    assert np.all(down <= exact)
    assert np.all(exact <= up)
    assert np.all(np.nextafter(down, np.float32(np.inf)) >= exact)


@pytest.mark.parametrize(("mode", "offset"), [("bfly", 5), ("down", 3), ("up", 2), ("idx", 7)])
def test_shuffle(mode: str, offset: int) -> None:
    clamp = 0 if mode == "up" else 31
    found = _computed(f"shfl.sync.{mode}.b32 %r3, %r2, {offset}, {clamp}, -1;", _INTEGERS)
    lane = np.arange(32)
    source = {"bfly": lane ^ offset, "down": lane + offset, "up": lane - offset, "idx": np.full(32, offset)}[mode]
    source = np.where((source < 0) | (source > 31), lane, source)
    np.testing.assert_array_equal(found, _INTEGERS[source].view(np.uint32))


def test_what_a_whole_warp_asks_for_moves_once() -> None:
    values, out = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    body = "ld.global.u32 %r2, [%rd3];\nld.global.u32 %r3, [%rd1];\nadd.u32 %r4, %r2, %r3;\nst.global.u32 [%rd2], %r4;"
    report = run(body, [values, Output(out)], threads=64)
    assert report.ok, report.faults
    assert report.loaded_bytes.tolist() == [2 * 4 + 64 * 4]


def test_votes() -> None:
    found = _computed("setp.lt.s32 %p1, %r2, 0;\nvote.sync.ballot.b32 %r3, %p1, -1;", _INTEGERS)
    expected = sum(1 << lane for lane in range(32) if _INTEGERS[lane] < 0)
    assert set(found.tolist()) == {expected}


@pytest.mark.parametrize("kind", ["bf16", "f16"])
def test_tensor_core_product(kind: str) -> None:
    """Fragments are filled from whole matrices by the layout of the manual, entry by entry."""
    element = ml_dtypes.bfloat16 if kind == "bf16" else np.float16
    a, b = _DRAW.standard_normal((16, 16)).astype(element), _DRAW.standard_normal((16, 8)).astype(element)
    c = _DRAW.standard_normal((16, 8)).astype(np.float32)
    words = np.zeros((32, 16), np.uint32)
    for lane in range(32):
        g, t = lane // 4, lane % 4
        for r in range(4):
            row, column = g + 8 * (r & 1), 2 * t + 8 * (r >> 1)
            words[lane, r] = a[row, column : column + 2].view(np.uint32)[0]
            words[lane, 6 + r] = c[g + 8 * (r >> 1), 2 * t + (r & 1)].view(np.uint32)
        for r in range(2):
            words[lane, 4 + r] = np.ascontiguousarray(b[2 * t + 8 * r : 2 * t + 8 * r + 2, g]).view(np.uint32)[0]
    loads = "\n".join(f"ld.global.u32 %r{10 + k}, [%rd6+{4 * k}];" for k in range(10))
    stores = "\n".join(f"st.global.f32 [%rd7+{4 * k}], %f{k};" for k in range(4))
    moved = "\n".join(f"mov.b32 %f{k}, %r{16 + k};" for k in range(4))
    body = f"""
    mad.wide.u32 %rd6, %r1, 64, %rd3;
    mad.wide.u32 %rd7, %r1, 16, %rd4;
    {loads}
    {moved}
    mma.sync.aligned.m16n8k16.row.col.f32.{kind}.{kind}.f32 {{%f0, %f1, %f2, %f3}}, {{%r10, %r11, %r12, %r13}},
        {{%r14, %r15}}, {{%f0, %f1, %f2, %f3}};
    {stores}
    """
    out = np.zeros((32, 4), np.float32)
    report = run(body, [words, Output(out)])
    assert report.ok, report.faults
    expected = a.astype(np.float64) @ b.astype(np.float64) + c
    for lane in range(32):
        for r in range(4):
            row, column = lane // 4 + 8 * (r >> 1), 2 * (lane % 4) + (r & 1)
            assert out[lane, r] == pytest.approx(expected[row, column], abs=1e-4)


def test_rounding_to_tf32() -> None:
    """Ten bits of fraction, ties away from 0; what is not finite stays."""
    ties = np.array([1 + 2**-11, -1 - 2**-11, 1 + 3 * 2**-11, 2**-130, np.inf, -np.inf, np.nan, 3.4028e38], np.float32)
    values = np.concatenate([_FLOATS[:24], ties])
    found = _computed("cvt.rna.tf32.f32 %r4, %f2;\nmov.b32 %f3, %r4;", values, "f32", np.float32)
    scale = np.exp2(np.floor(np.log2(np.abs(_FLOATS[:24].astype(np.float64)))) - 10)
    exact = np.trunc(_FLOATS[:24] / scale + np.copysign(0.5, _FLOATS[:24])) * scale
    np.testing.assert_array_equal(found[:24], exact.astype(np.float32))
    np.testing.assert_array_equal(found[24:27], np.array([1 + 2**-10, -1 - 2**-10, 1 + 2**-9], np.float32))
    np.testing.assert_array_equal(found[28:], np.array([np.inf, -np.inf, np.nan, np.inf], np.float32))


def test_tensor_core_product_of_tf32() -> None:
    """The low bits of the operands' fractions take no part, and the layout is that of the manual, entry by entry."""
    a, b = (_DRAW.standard_normal(shape).astype(np.float32) for shape in ((16, 8), (8, 8)))
    c = _DRAW.standard_normal((16, 8)).astype(np.float32)
    words = np.zeros((32, 16), np.float32)
    for lane in range(32):
        g, t = lane // 4, lane % 4
        for r in range(4):
            words[lane, r] = a[g + 8 * (r & 1), t + 4 * (r >> 1)]
            words[lane, 6 + r] = c[g + 8 * (r >> 1), 2 * t + (r & 1)]
        for r in range(2):
            words[lane, 4 + r] = b[t + 4 * r, g]
    loads = "\n".join(f"ld.global.u32 %r{10 + k}, [%rd6+{4 * k}];" for k in range(10))
    stores = "\n".join(f"st.global.f32 [%rd7+{4 * k}], %f{k};" for k in range(4))
    moved = "\n".join(f"mov.b32 %f{k}, %r{16 + k};" for k in range(4))
    body = f"""
    mad.wide.u32 %rd6, %r1, 64, %rd3;
    mad.wide.u32 %rd7, %r1, 16, %rd4;
    {loads}
    {moved}
    mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {{%f0, %f1, %f2, %f3}}, {{%r10, %r11, %r12, %r13}},
        {{%r14, %r15}}, {{%f0, %f1, %f2, %f3}};
    {stores}
    """
    out = np.zeros((32, 4), np.float32)
    report = run(body, [words, Output(out)])
    assert report.ok, report.faults
    low_bits = np.uint32(0xFFFFE000)
    cut_a, cut_b = ((x.view(np.uint32) & low_bits).view(np.float32).astype(np.float64) for x in (a, b))
    expected = cut_a @ cut_b + c
    for lane in range(32):
        for r in range(4):
            row, column = lane // 4 + 8 * (r >> 1), 2 * (lane % 4) + (r & 1)
            assert out[lane, r] == pytest.approx(expected[row, column], abs=1e-5)


@pytest.mark.parametrize("transposed", [False, True])
def test_matrix_load(transposed: bool) -> None:
    """Four matrices of 8 x 8, whose rows lie one after another in shared memory."""
    values = np.arange(4 * 8 * 8, dtype=np.uint16).reshape(4, 8, 8)
    mode = "x4.trans" if transposed else "x4"
    copies = "\n".join(f"ld.global.u32 %r2, [%rd6+{4 * k}];\nst.shared.u32 [%r3+{4 * k}], %r2;" for k in range(4))
    body = f"""
    mad.wide.u32 %rd6, %r1, 16, %rd3;
    mad.wide.u32 %rd7, %r1, 16, %rd4;
    shl.b32 %r3, %r1, 4;
    mov.u32 %r4, tile;
    add.s32 %r3, %r3, %r4;
    {copies}
    bar.sync 0;
    ldmatrix.sync.aligned.m8n8.{mode}.shared.b16 {{%r10, %r11, %r12, %r13}}, [%r3];
    st.global.v4.u32 [%rd7], {{%r10, %r11, %r12, %r13}};
    """
    out = np.zeros((32, 4, 2), np.uint16)
    report = run(body, [values, Output(out)], shared=512)
    assert report.ok, report.faults
    for lane in range(32):
        for matrix in range(4):
            whole = values[matrix].T if transposed else values[matrix]
            expected = whole[lane // 4, 2 * (lane % 4) : 2 * (lane % 4) + 2]
            np.testing.assert_array_equal(out[lane, matrix], expected)


@pytest.mark.parametrize("schedule", ["greedy", "random"])
def test_branches_that_diverge_meet_again(schedule: Schedule) -> None:
    """Each thread goes round a loop as often as its number says, then all shuffle together."""
    body = """
    mov.u32 %r2, 0;
    mov.u32 %r3, 0;
    $again:
    setp.ge.u32 %p1, %r2, %r1;
    @%p1 bra $done;
    add.s32 %r3, %r3, %r2;
    add.s32 %r2, %r2, 1;
    bra.uni $again;
    $done:
    shfl.sync.bfly.b32 %r4, %r3, 1, 31, -1;
    st.global.u32 [%rd2], %r4;
    """
    out = np.zeros(64, np.uint32)
    report = run(body, [np.zeros(64, np.uint32), Output(out)], threads=64, schedule=schedule)
    assert report.ok, report.faults
    thread = np.arange(64) ^ 1
    np.testing.assert_array_equal(out, thread * (thread - 1) // 2)


@pytest.mark.parametrize(
    "instruction",
    [
        "frob.u32 %r2, %r1;",
        "add.wobbly.s32 %r2, %r1, 1;",
        "mma.sync.aligned.m8n8k4.row.col.f32 %r2, %r1;",
        "cvt.rn.tf32.f32 %r2, %f1;",
    ],
)
def test_an_unknown_instruction_is_never_skipped(instruction: str) -> None:
    with pytest.raises(PtxSyntaxError, match="does not know the instruction"):
        kernel(instruction)
