"""The part of generated programs that is the same in all of them, built once: block products of f32 (bb_apart.hpp).

They take the compiler longer than most kernels. Nothing of a program is needed to build them, so that begins while the
first one is still being planned. Light to import, for then it begins early.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread

from bbrewrite.resources import resource_directory
from bbrewrite.runtime.cache import cached_product, content_key
from bbrewrite.runtime.compiler import CompilationFailed, Compiler, CompilerMissing, find_compiler

# With this option, source that includes the headers is to be linked with what is built here.
APART = "-DBB_APART=extern template"
_SOURCE = "bb_apart.cpp"
_OBJECT = "products.o"


def multiplies(source: str) -> bool:
    """Whether generated source has a use for products that are built apart."""
    return "bb::dot" in source or "bb::pack" in source


def products_apart(compiler: Compiler, extra: Sequence[str] = ()) -> Path:
    """The object, from the cache where it has been built before. Raises CompilationFailed and OSError."""
    source = header_directory() / _SOURCE
    key = content_key("apart", compiler.fingerprint, *extra, source.read_text(encoding="utf-8"), *header_texts())

    def make(directory: Path) -> None:
        compiler.build_object(source, directory / _OBJECT, header_directory(), extra)

    return cached_product(key, _OBJECT, make)


def begin_products() -> None:
    """Sees to it that the object is being built, on a thread of its own. What goes wrong is told where it is needed."""

    def build() -> None:
        with suppress(CompilerMissing, CompilationFailed, OSError):
            products_apart(find_compiler())

    Thread(target=build).start()


def header_directory() -> Path:
    """Where the headers of block operators are."""
    return resource_directory("targets") / "cpp"


def header_texts() -> list[str]:
    """What they say, for names of what is made with them."""
    return [path.read_text(encoding="utf-8") for path in sorted(header_directory().glob("*.hpp"))]
