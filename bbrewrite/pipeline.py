"""The straight line of stages, with times: from a request to plans, kernels, outputs and a verdict.

Pure functions from one stage's form to the next; the command line and tests call them and print what they return.
How plans are found is in `fusion.py`. Nothing here prints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bbrewrite.codegen.cpp.program import print_programs
from bbrewrite.fusion import Fusion, fuse
from bbrewrite.inputs import draw_inputs
from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.memory import check_local_memory, check_memory
from bbrewrite.plan.kernel import KernelProgram
from bbrewrite.plan.masks.skipped_blocks import skipped_blocks
from bbrewrite.request import Request
from bbrewrite.runtime.apart import begin_products
from bbrewrite.runtime.library import CompiledProgram
from bbrewrite.runtime.module import build_all, signature_of
from bbrewrite.timing import run_in_turns, timed
from bbrewrite.verify.compare import Comparison, compare_outputs, hold_nan
from bbrewrite.verify.exact import evaluate_exactly
from bbrewrite.writing import writable_cache

type Array = npt.NDArray[Any]
type Executable = Callable[[], dict[str, Array]]


@dataclass(frozen=True)
class Prepared:
    """Both forms of a program, ready to run on given arrays. `sources` are the generated files, fused last."""

    unfused: Executable
    fused: Executable
    codegen_ms: float
    compile_ms: float
    sources: tuple[Path, ...]


@dataclass(frozen=True)
class RunResult:
    """A whole run, for reports and tests. Durations are in milliseconds, one for each repetition. `emulated_at` gives
    the extents at which a GPU was emulated; with `tf32`, operands of products of f32 were rounded to it.
    `skipped_blocks` is the share of blocks that masks hide, where that depends on the arrays.
    """

    fusion: Fusion
    target: str
    prepared: Prepared
    outputs: Mapping[str, Array]
    comparison: Comparison
    unfused_ms: tuple[float, ...]
    fused_ms: tuple[float, ...]
    emulated_at: Mapping[str, int] | None = None
    tf32: bool = False
    skipped_blocks: float | None = None


def run(request: Request, target: str, seed: int, step: Callable[[str], None] = lambda _: None) -> RunResult:
    """Fuses, builds and runs on `target` ("cpp" or "numpy"), and compares with the reference.

    `step` is told what begins. Raises InputError, and CompilerMissing where the target needs a compiler.
    """
    check_memory(request.blocks, request.extents)
    arrays = draw_inputs(request.program, request.extents, seed, request.given)
    step("saturating and planning")
    if target == "cpp":
        begin_products()
    fusion = fuse(request)
    check_local_memory(max(fusion.before.local_bytes, fusion.after.local_bytes), request.threads)
    step("evaluating the reference")
    reference = evaluate_exactly(request.program, arrays, request.extents, request.rules.table)
    step("compiling")
    prepared = prepare_cpp(fusion, arrays) if target == "cpp" else prepare_numpy(fusion, arrays)
    step("running")
    (unfused, unfused_ms), (fused, fused_ms) = run_in_turns([prepared.unfused, prepared.fused])
    elements = {tensor.name: tensor.element for tensor in request.blocks.outputs}
    definitions = [definition.tensor for definition in request.blocks.definitions]
    comparison = compare_outputs(
        elements, fused, unfused, reference, hold_nan(arrays.values()), definitions=definitions
    )
    skipped = skipped_blocks(fusion.fused.kernels, request.extents, arrays)
    return RunResult(fusion, target, prepared, fused, comparison, unfused_ms, fused_ms, skipped_blocks=skipped)


def prepare_numpy(fusion: Fusion, arrays: Mapping[str, Array]) -> Prepared:
    """Both forms as calls of the NumPy executor of kernels."""
    request = fusion.request
    # Over nothing, only the unfused form has the program's meaning.
    chosen = fusion.unfused if 0 in request.extents.values() else fusion.fused
    unfused, fused = (
        partial(run_kernels, plan.kernels, arrays, request.extents, request.rules.table)
        for plan in (fusion.unfused, chosen)
    )
    return Prepared(unfused, fused, 0.0, 0.0, ())


def prepare_cpp(fusion: Fusion, arrays: Mapping[str, Array]) -> Prepared:
    """Both forms as calls of compiled C++. Raises CompilerMissing, and InputError where the cache cannot be written."""
    request = fusion.request
    programs = (fusion.unfused.kernels, fusion.fused.kernels)
    # The branch for extents of 0 is left out where there are none: it would only be compiled.
    fallbacks = (None, fusion.unfused.kernels if 0 in request.extents.values() else None)
    sources, codegen_ms = timed(
        lambda: [
            print_programs([program], request.rules.table, fallback)
            for program, fallback in zip(programs, fallbacks, strict=True)
        ]
    )

    def load() -> list[CompiledProgram]:
        with writable_cache():
            libraries = build_all(sources)
        return [
            CompiledProgram(signature_of(program, source.entry_points[0]), library)
            for program, source, library in zip(programs, sources, libraries, strict=True)
        ]

    compiled, compile_ms = timed(load)
    unfused, fused = (
        partial(item.run, arrays, request.extents, request.threads, out=_empty_outputs(program, request.extents))
        for program, item in zip(programs, compiled, strict=True)
    )
    paths = tuple(item.library.with_name("kernels.cpp") for item in compiled)
    return Prepared(unfused, fused, codegen_ms, compile_ms, paths)


def _empty_outputs(program: KernelProgram, extents: Mapping[str, int]) -> dict[str, Array]:
    """Arrays to write outputs to, made once: fresh memory at every call would be timed too."""
    return {
        tensor.name: np.empty(
            [extents[program.indices.root(index)] for index in tensor.indices], tensor.element.numpy_type
        )
        for tensor in program.outputs
    }
