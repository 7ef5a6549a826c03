"""Generated CUDA kernels, compiled by nvcc and run without a GPU: right, and free of every fault that is looked for.

Each program runs in each type at an aligned, a ragged and a tiny size, under both schedules.
"""

from __future__ import annotations

import numpy as np
import pytest

from bbrewrite.core.terms import Apply, walk
from bbrewrite.plan.kernel import Loop, walk_statements
from tests.codegen.cuda.programs import NAMES, SHAPES, TYPES, case, data, fused, moved_bytes, nvcc, relative_error, run

# What is run in every test run: all in bf16, and two in the other types. The rest is for the slow campaign.
_ALWAYS = {
    *((name, "bf16") for name in NAMES),
    ("attention", "f16"),
    ("rmsnorm_swiglu", "f16"),
    ("attention", "f32"),
    ("layernorm_matmul", "f32"),
    ("attention_few_rows", "f32"),
    ("attention", "tf32"),
    ("rmsnorm_swiglu", "tf32"),
}
_PROGRAMS = [
    pytest.param(name, kind, id=f"{name}-{kind}", marks=() if (name, kind) in _ALWAYS else pytest.mark.slow)
    for name in NAMES
    for kind in TYPES
]
# Kernels of f16 are those of bf16 but for the names of instructions.
_ASSEMBLED = [
    pytest.param(*program.values, id=program.id, marks=pytest.mark.slow) if "f16" in program.values else program
    for program in _PROGRAMS
]
# The most registers of a thread and KiB of shared memory that kernels take, a little above what they did when this
# was written. More is no fault by itself, but must be meant: where shared memory has room for one or two blocks alone,
# registers cost nothing.
_LIMITS = {
    "attention": {"narrow": (160, 48), "f32": (168, 112), "tf32": (192, 96)},
    "layernorm_matmul": {"narrow": (232, 144), "f32": (96, 144), "tf32": (192, 144)},
    "rmsnorm_swiglu": {"narrow": (248, 144), "f32": (255, 144), "tf32": (240, 144)},
    "masked_attention": {"narrow": (184, 64), "f32": (255, 128), "tf32": (255, 112)},
    "grouped_query_attention": {"narrow": (160, 48), "f32": (176, 112), "tf32": (255, 96)},
    "rmsnorm_qkv": {"narrow": (192, 80), "f32": (176, 144), "tf32": (240, 144)},
    "attention_few_rows": {"narrow": (160, 48), "f32": (232, 163), "tf32": (248, 96)},
    "layernorm_matmul_few_rows": {"narrow": (112, 96), "f32": (96, 144), "tf32": (128, 112)},
    "rmsnorm_swiglu_few_rows": {"narrow": (248, 144), "f32": (144, 144), "tf32": (192, 144)},
}
_LEAST_COVERED = 0.85
_MOST_PASSES = {"f32": 1.05, "tf32": 1.2}  # through the banks of shared memory, for each request
# Rounding differs where a value is kept local instead of stored, so that small programs have errors of their own. Of
# f32, where entries are added one after another and BLAS has several sums at a time, twice a unit in the last place.
_LEAST_ERROR = {"bf16": 2**-9, "f16": 2**-12, "f32": 2**-21, "tf32": 2**-12}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("name", "kind"), _PROGRAMS)
def test_right_and_without_faults(name: str, kind: str, shape: str) -> None:
    """The error against float64 is at most twice that of the program's definitions, one by one in its own types."""
    given = data(name, kind, shape)
    greedy, scattered = run(name, kind, shape, "greedy"), run(name, kind, shape, "random")
    assert greedy.faults == ()
    assert scattered.faults == ()
    for output, found in greedy.outputs.items():
        exact = given.exact[output]
        allowed = 2 * max(relative_error(given.rounded[output], exact), _LEAST_ERROR[kind])
        assert relative_error(found, exact) <= allowed, output
        # Which warp comes first is nothing that a result may depend on.
        np.testing.assert_array_equal(found.view(np.uint8), scattered.outputs[output].view(np.uint8))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("name", "kind"), _PROGRAMS)
def test_global_memory_moves_as_planned(name: str, kind: str, shape: str) -> None:
    """Every byte that a kernel loads and stores is one that the cost model counts, at these extents and blocks."""
    tested, given = case(name, kind), data(name, kind, shape)
    reports = run(name, kind, shape, "greedy").reports
    for kernel, report in zip(tested.fusion.fused.kernels.kernels, reports, strict=True):
        planned = moved_bytes(kernel, given.extents, tested.table)
        moved = int(report.loaded_bytes.sum() + report.stored_bytes.sum())
        assert moved == planned, kernel.name


@pytest.mark.parametrize("name", ["attention", "rmsnorm_swiglu", "layernorm_matmul_few_rows"])
def test_types_of_16_bits_are_planned_alike(name: str) -> None:
    one, other = (fused(name, kind).fused for kind in ("bf16", "f16"))
    assert one.costs == other.costs
    for kernel, same in zip(one.kernels.kernels, other.kernels.kernels, strict=True):
        assert kernel.indices == same.indices


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(("name", "kind"), _ASSEMBLED)
def test_nothing_spills_and_nothing_grows(name: str, kind: str, architecture: str) -> None:
    tested = case(name, kind)
    compiler = nvcc()
    usage = compiler.usage(compiler.ptx(tested.source.text), architecture)
    most_registers, most_shared = _LIMITS[name].get(kind) or _LIMITS[name]["narrow"]
    for kernel in tested.source.kernels:
        used = usage[kernel.name]
        assert (used.spilled_bytes, used.stack_bytes) == (0, 0), kernel.name
        assert used.registers <= most_registers, kernel.name
        assert kernel.shared_bytes <= most_shared << 10, kernel.name


@pytest.mark.parametrize(("name", "kind"), _PROGRAMS)
def test_there_are_no_bank_conflicts_but_of_f32_beside_products(name: str, kind: str) -> None:
    """Entries of f32 that are no operands are read singly beside products: pairs would take too many registers."""
    kernels = case(name, kind).fusion.fused.kernels.kernels
    for kernel, report in zip(kernels, run(name, kind, "aligned", "greedy").reports, strict=True):
        has_products = any(
            isinstance(term, Apply) and term.operator == "dot"
            for statement in walk_statements(kernel.body)
            if not isinstance(statement, Loop)
            for term in walk(statement.expression)
        )
        most = _MOST_PASSES.get(kind, 1.0) if has_products else 1.0
        assert report.shared_passes <= most * report.shared_requests, kernel.name


@pytest.mark.parametrize(("name", "kind"), _PROGRAMS)
def test_the_three_shapes_reach_most_of_what_nvcc_made(name: str, kind: str) -> None:
    """What no shape runs is not tested: unrolled rests, mostly, of copies in chunks."""
    for position, kernel in enumerate(case(name, kind).emulated.kernels):
        times = sum(run(name, kind, shape, "greedy").reports[position].executed for shape in SHAPES)
        never = [kernel.place(number) for number in np.flatnonzero(times[:-1] == 0)]
        covered = 1 - len(never) / (len(kernel.code) - 1)
        assert covered >= _LEAST_COVERED, f"{kernel.kernel.name}: {covered:.1%}, never {never[:20]}"
