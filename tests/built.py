"""Programs built together with options of one's own, for another processor or in a sixth of the time; and new caches.

Without optimisation, a test says what generated code means, which is a matter of the generator; what the optimiser
makes of such code, the tests say that build as users do.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bbrewrite.codegen.cpp.program import print_programs
from bbrewrite.core.operators import OperatorTable
from bbrewrite.plan.kernel import KernelProgram
from bbrewrite.runtime.apart import products_apart
from bbrewrite.runtime.compiler import Compiler, find_compiler
from bbrewrite.runtime.library import CompiledProgram
from bbrewrite.runtime.module import build, signature_of

QUICKLY = ("-O0",)


def built(
    programs: Sequence[KernelProgram],
    table: OperatorTable,
    options: Sequence[str] = QUICKLY,
    compiler: Compiler | None = None,
) -> list[CompiledProgram]:
    """The programs in one library; of two options that contradict each other the last one counts."""
    source = print_programs(programs, table)
    library = build(source, compiler or find_compiler(), options)
    return [
        CompiledProgram(signature_of(program, entry), library)
        for program, entry in zip(programs, source.entry_points, strict=True)
    ]


def cache_with_products(directory: Path) -> Path:
    """A new cache that has nothing but what is the same in all programs, and takes longer to build than most do."""
    entry = products_apart(find_compiler()).parent
    directory.mkdir(parents=True, exist_ok=True)
    (directory / entry.name).symlink_to(entry)
    return directory
