"""Builds generated source, once for each content, and loads it. How a loaded program is called is in `library.py`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from bbrewrite.codegen.cpp.program import EntryPoint, Source, print_programs
from bbrewrite.codegen.cpp.units import units
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Assumption
from bbrewrite.plan.kernel import KernelProgram
from bbrewrite.runtime.apart import APART, header_directory, header_texts, multiplies, products_apart
from bbrewrite.runtime.cache import cached_product, content_key, kept_product, note, noted
from bbrewrite.runtime.compiler import Compiler, CompilerMissing, find_compiler
from bbrewrite.runtime.library import CompiledProgram, default_threads
from bbrewrite.runtime.processor import processor_name
from bbrewrite.runtime.signature import Argument, Signature

_LIBRARY = "library.so"
_SOURCE = "kernels.cpp"
_BUILT = "built"  # notes of what was built from which source


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
    return Signature.of(entry.name, arguments, (index for index, _ in entry.extent_arguments))


def build(source: Source, compiler: Compiler, extra: Sequence[str] = ()) -> Path:
    """The shared library made from generated source, from the cache where it has been built before.

    `extra` are more compiler options. Raises CompilationFailed.
    """
    key = content_key(compiler.fingerprint, *source.options, *extra, *header_texts(), source.text)

    def make(directory: Path) -> None:
        path = directory / _SOURCE
        path.write_text(source.text, encoding="utf-8")
        flags = (*source.options, *extra)
        texts = units(source, default_threads())
        apart = (partial(products_apart, compiler, extra),) if multiplies(source.text) else ()
        if len(texts) > 1 or apart:
            _build_side_by_side(texts, apart, compiler, (*flags, APART) if apart else flags, directory / _LIBRARY)
        else:
            compiler.build_library(path, directory / _LIBRARY, header_directory(), flags)

    library = cached_product(key, _LIBRARY, make)
    if not extra:
        note(_BUILT, _source_key(source), key.encode())
    return library


def _build_side_by_side(
    texts: Sequence[str],
    apart: Sequence[Callable[[], Path]],
    compiler: Compiler,
    flags: Sequence[str],
    product: Path,
) -> None:
    """Links the objects of translation units, compiled side by side, with others that are made meanwhile."""
    import tempfile  # what is in the cache needs none

    with tempfile.TemporaryDirectory(dir=product.parent) as scratch, ThreadPoolExecutor() as pool:

        def compiled(number: int) -> Path:
            path = Path(scratch) / f"kernels_{number}.cpp"
            path.write_text(texts[number], encoding="utf-8")
            compiler.build_object(path, path.with_suffix(".o"), header_directory(), flags)
            return path.with_suffix(".o")

        made = [pool.submit(make) for make in (*apart, *(partial(compiled, number) for number in range(len(texts))))]
        compiler.link_library([one.result() for one in made], product, flags)


def build_all(sources: Sequence[Source]) -> list[Path]:
    """The libraries made from sources, built side by side with the compiler of this machine.

    Where there is none, those are taken that the last one made. Raises CompilerMissing where one was never made,
    CompilationFailed, and OSError where the cache cannot be written.
    """
    try:
        compiler = find_compiler()
    except CompilerMissing:
        libraries = [library for source in sources if (library := _built_before(source)) is not None]
        if len(libraries) < len(sources):
            raise
        return libraries
    with ThreadPoolExecutor(len(sources)) as pool:
        return list(pool.map(build, sources, [compiler] * len(sources)))


def _built_before(source: Source) -> Path | None:
    key = noted(_BUILT, _source_key(source))
    return kept_product(key.decode(errors="replace"), _LIBRARY) if key else None


def _source_key(source: Source) -> str:
    return content_key(os.environ.get("CXX", ""), processor_name(), *header_texts(), source.text)
