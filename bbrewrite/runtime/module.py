"""Builds generated source, once for each content, and loads it. How a loaded program is called is in `library.py`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bbrewrite.codegen.cpp import EntryPoint, Source, print_programs
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Assumption
from bbrewrite.plan.kernel import KernelProgram
from bbrewrite.resources import resource_directory
from bbrewrite.runtime.cache import cached_product, content_key
from bbrewrite.runtime.compiler import Compiler, find_compiler
from bbrewrite.runtime.library import CompiledProgram
from bbrewrite.runtime.signature import Argument, Signature

_LIBRARY = "library.so"
_SOURCE = "kernels.cpp"


def compile_program(
    program: KernelProgram,
    table: OperatorTable,
    compiler: Compiler | None = None,
    fallback: KernelProgram | None = None,
) -> CompiledProgram:
    """Generates, builds (or finds built) and loads a program. Raises CompilerMissing.

    `fallback` is its unfused form, which is used where an extent is 0.
    """
    return compile_programs([program], table, compiler, fallback)[0]


def compile_programs(
    programs: Sequence[KernelProgram],
    table: OperatorTable,
    compiler: Compiler | None = None,
    fallback: KernelProgram | None = None,
    prepare: bool = False,
) -> list[CompiledProgram]:
    """The same for several programs of one meaning in one library; of any meanings where there is no fallback.

    With `prepare`, which goes without a fallback, `CompiledProgram.prepare` packs weights once for all calls.
    """
    source = print_programs(programs, table, fallback, prepare)
    library = build(source, compiler or find_compiler())
    return [
        CompiledProgram(signature_of(program, entry), library)
        for program, entry in zip(programs, source.entry_points, strict=True)
    ]


def signature_of(program: KernelProgram, entry: EntryPoint, assumptions: Sequence[Assumption] = ()) -> Signature:
    """How the entry point of a program is called."""
    preparations = {weight.tensor.name: entry.preparation(weight) for weight in entry.prepared}
    arguments = tuple(
        Argument(
            tensor.name,
            tensor.role,
            tensor.element,
            tuple(program.indices.root(index) for index in tensor.indices),
            tuple(assumption.fact for assumption in assumptions if assumption.tensor == tensor.name),
            preparations.get(tensor.name, ""),
        )
        for tensor, _ in entry.tensor_arguments
    )
    return Signature(entry.name, arguments, tuple(index for index, _ in entry.extent_arguments))


def build(source: Source, compiler: Compiler, extra: Sequence[str] = ()) -> Path:
    """The shared library made from generated source, from the cache where it has been built before.

    `extra` are more compiler options. Raises CompilationFailed.
    """
    headers = resource_directory("targets") / "cpp"
    texts = [path.read_text(encoding="utf-8") for path in sorted(headers.glob("*.hpp"))]
    key = content_key(compiler.fingerprint, *extra, *texts, source.text)

    def make(directory: Path) -> None:
        path = directory / _SOURCE
        path.write_text(source.text, encoding="utf-8")
        compiler.build_library(path, directory / _LIBRARY, headers, extra)

    return cached_product(key, _LIBRARY, make)
