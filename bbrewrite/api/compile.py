"""`bbrewrite.compile`: reads texts and choices, and finds what was compiled from them before or compiles it now.

What was compiled is remembered on disk by its texts and choices, so that the next process neither saturates, plans nor
compiles. Nothing is checked against the reference here: that is what `bbrewrite run` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

from bbrewrite.api.choices import Rules, numbers_by_index, program_source, rule_sources
from bbrewrite.api.program import Program, Runner
from bbrewrite.api.record import CompileRequest, Record
from bbrewrite.api.remembered import remember, remembered
from bbrewrite.limits import checked_threads
from bbrewrite.resources import resource_directory
from bbrewrite.runtime.library import CompiledProgram, default_threads

if TYPE_CHECKING:
    from bbrewrite.api.device import DeviceProgram


@overload
def compile(
    program: str | Path,
    *,
    rules: Rules | None = None,
    sizes: Mapping[str, int] | None = None,
    blocks: Mapping[str, int] | None = None,
    threads: int | None = None,
    fast_math: bool = False,
    target: Literal["cpp", "numpy"] = "cpp",
    tuned: bool = True,
) -> Program: ...
@overload
def compile(
    program: str | Path,
    *,
    rules: Rules | None = None,
    sizes: Mapping[str, int] | None = None,
    blocks: Mapping[str, int] | None = None,
    threads: int | None = None,
    fast_math: bool = False,
    target: Literal["cuda"],
    tf32: bool = False,
) -> DeviceProgram: ...
def compile(
    program: str | Path,
    *,
    rules: Rules | None = None,
    sizes: Mapping[str, int] | None = None,
    blocks: Mapping[str, int] | None = None,
    threads: int | None = None,
    fast_math: bool = False,
    target: Literal["cpp", "numpy", "cuda"] = "cpp",
    tf32: bool = False,
    tuned: bool = True,
) -> Program | DeviceProgram:
    """A program as a function of arrays.

    `program` is the path of a file, or the text itself (a string of several lines); so are `rules`, which may also be a
    directory or a sequence of these: by default the rules that come with bbrewrite, and `()` for none. The plan is made
    for the extents that the program declares, `sizes` gives others, `blocks` fixes block sizes; `threads` is by default
    the number of processors. Extents are 0 or more, block sizes 1 or more, threads 1 to 1024; integers of NumPy do as
    well. With `fast_math`, rules that lose accuracy take part. The target "numpy" needs no compiler. The target "cuda"
    takes arrays of PyTorch, CuPy and others where they lie on the GPU; with `tf32` products of f32 are done on tensor
    cores, their operands rounded. What `bbrewrite bench --tune` found is used for the target "cpp", unless `tuned` is
    false.

    Raises TypeError for an argument of another type and ValueError for a number out of its range, an unknown target, an
    empty path, and `tf32` for another target than "cuda"; these name the argument, and the index that a number is for.
    Raises InputError for a fault of the program or the rules, and for an index that the program does not have,
    CompilerMissing where there is no compiler for the target, and GpuMissing where there is no GPU.
    """
    if target not in ("cpp", "numpy", "cuda"):
        raise ValueError(f'the target must be "cpp", "numpy" or "cuda", not {target!r}')
    if tf32 and target != "cuda":
        raise ValueError(f'tf32 is for the target "cuda", not {target!r}')
    request = CompileRequest(
        sizes=numbers_by_index("sizes", sizes, 0),
        blocks=numbers_by_index("blocks", blocks, 1),
        threads=default_threads() if threads is None else checked_threads(threads),
        fast_math=bool(fast_math),
        tuned=bool(tuned),
        program=program_source(program),
        rules=rule_sources(resource_directory("rules") if rules is None else rules),
    )
    if target == "cuda":
        from bbrewrite.api.device import DeviceProgram

        return DeviceProgram(request, bool(tf32))
    return Program(request, _for_cpp if target == "cpp" else _for_numpy)


def _for_cpp(request: CompileRequest) -> tuple[Record, Runner]:
    compiled = remembered(request)
    if compiled is None:
        from bbrewrite.runtime.apart import begin_products

        begin_products()
        from bbrewrite.api.stages import compile_for_cpp

        compiled = compile_for_cpp(request)
        remember(request, compiled)
    return compiled.record, CompiledProgram(compiled.record.signature, compiled.library)


def _for_numpy(request: CompileRequest) -> tuple[Record, Runner]:
    from bbrewrite.api.stages import plan_for_numpy

    return plan_for_numpy(request)
