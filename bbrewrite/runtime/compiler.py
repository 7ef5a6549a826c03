"""Finds the system's C++ compiler and runs it. Knows nothing of what is compiled, or where products are kept."""

from __future__ import annotations

import errno
import functools
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bbrewrite.compiler_options import OPTIONS, OPTIONS_OF_GCC
from bbrewrite.runtime.cache import content_key, forget, note, noted
from bbrewrite.runtime.compiler_file import CANDIDATES, compiler_file
from bbrewrite.runtime.processor import processor_name

_SEEN = "compilers"  # notes of the versions of those that build libraries with OpenMP
_HOW_TO_GET_ONE = (
    "Install GCC or Clang (Debian, Ubuntu: apt install g++; Fedora: dnf install gcc-c++;"
    " macOS: xcode-select --install), or name one in the environment variable CXX. --target numpy needs no compiler."
)
_HOW_TO_GET_OPENMP = (
    "Install its OpenMP library (Debian, Ubuntu: apt install libomp-dev for clang++; macOS: brew install libomp),"
    " or name another compiler in the environment variable CXX."
)


class CompilerMissing(Exception):
    """No usable C++ compiler; the message says how to get one."""


class CompilationFailed(Exception):
    """The compiler rejected generated source: a fault of the generator. `diagnostics` is what the compiler printed."""

    def __init__(self, message: str, diagnostics: str) -> None:
        super().__init__(message)
        self.diagnostics = diagnostics


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler with OpenMP. `command` may carry a user's own options; `version` is what it says of itself."""

    command: tuple[str, ...]
    version: str
    is_remembered: bool = field(default=False, compare=False)  # it was not asked in this process

    def flags(self, extra: Sequence[str] = ()) -> tuple[str, ...]:
        """The options with which sources are compiled; they depend on nothing but the compiler and the host."""
        own = () if "clang" in self.version else OPTIONS_OF_GCC
        return ("-std=c++20", *OPTIONS, "-fopenmp", "-fPIC", *own, *extra)

    @property
    def fingerprint(self) -> str:
        """Text that differs where products may: the compiler, its options and, by -march=native, the processor."""
        return "\n".join((*self.command, self.version, *self.flags(), processor_name()))

    def build_library(self, source: Path, product: Path, include: Path, extra: Sequence[str] = ()) -> None:
        """Compiles one translation unit to a shared library. Raises CompilationFailed, and OSError for a full disk."""
        self._run((*self.flags(extra), f"-I{include}", "-shared", str(source)), source, product)

    def build_object(self, source: Path, product: Path, include: Path, extra: Sequence[str] = ()) -> None:
        """Compiles one translation unit to an object. Raises CompilationFailed, and OSError for a full disk."""
        self._run((*self.flags(extra), f"-I{include}", "-c", str(source)), source, product)

    def link_library(self, objects: Sequence[Path], product: Path, extra: Sequence[str] = ()) -> None:
        """Links objects to a shared library. Raises CompilationFailed, and OSError for a full disk."""
        self._run((*self.flags(extra), "-shared", *map(str, objects)), objects[0], product)

    def _run(self, options: Sequence[str], source: Path, product: Path) -> None:
        arguments = (*self.command, *options, "-o", str(product))
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            full = os.strerror(errno.ENOSPC)
            if full in done.stderr:
                raise OSError(errno.ENOSPC, full, str(product))
            if self.is_remembered:
                _check_again(self)
            first = next((line for line in done.stderr.splitlines() if "error" in line), f"exit code {done.returncode}")
            raise CompilationFailed(f"{self.command[0]} failed on {source}: {first}", done.stderr)


def find_compiler() -> Compiler:
    """The compiler that CXX names, or the first of c++, g++ and clang++ that is there. Raises CompilerMissing."""
    return _find(os.environ.get("CXX", ""), os.environ.get("PATH", ""))


@functools.cache
def _find(named: str, path: str) -> Compiler:
    if named:
        try:
            command = tuple(shlex.split(named))
        except ValueError as error:
            raise CompilerMissing(f"CXX names no C++ compiler: {named!r} is no command: {str(error).lower()}") from None
        if not command:
            raise CompilerMissing("CXX names no C++ compiler: it is blank")
        if shutil.which(command[0], path=path) is None:
            raise CompilerMissing(f"the C++ compiler named by CXX, {command[0]}, was not found. {_HOW_TO_GET_ONE}")
        return _examined(command)
    for candidate in CANDIDATES:
        if shutil.which(candidate, path=path):
            return _examined((candidate,))
    raise CompilerMissing(f"no C++ compiler was found (looked for {', '.join(CANDIDATES)}). {_HOW_TO_GET_ONE}")


def _examined(command: tuple[str, ...]) -> Compiler:
    """The compiler, once it was seen to build a library with OpenMP; of the same file that is not asked again."""
    key = _note_of(command)
    known = noted(_SEEN, key) if key else None
    if known is not None:
        return Compiler(command, known.decode(), is_remembered=True)
    compiler = _tried(command)
    if key:
        note(_SEEN, key, compiler.version.encode())
    return compiler


def _note_of(command: tuple[str, ...]) -> str:
    """The key under which a command's version is noted; "" where its file cannot be told."""
    told = compiler_file()
    return content_key("compiler", *command, told) if told else ""


def _check_again(compiler: Compiler) -> None:
    """Raises CompilerMissing where a compiler that was remembered builds nothing any more, or is another one now: what
    its file runs or needs may have changed, though the file has not.
    """
    forget(_SEEN, _note_of(compiler.command))
    if _tried(compiler.command).version != compiler.version:
        raise CompilerMissing(f"the C++ compiler {compiler.command[0]} is another one than it was; please run it again")


def _tried(command: tuple[str, ...]) -> Compiler:
    """The compiler, which has built a library with OpenMP."""
    try:
        version = subprocess.run((*command, "--version"), capture_output=True, text=True, check=False).stdout
    except OSError as error:
        message = f"the C++ compiler {command[0]} cannot be started: {error.strerror}. {_HOW_TO_GET_ONE}"
        raise CompilerMissing(message) from None
    compiler = Compiler(command, version)
    try:
        with tempfile.TemporaryDirectory() as directory:
            source = Path(directory) / "probe.cpp"
            source.write_text("#include <omp.h>\nint threads() { return omp_get_max_threads(); }\n", encoding="utf-8")
            compiler.build_library(source, Path(directory) / "probe.so", Path(directory))
    except CompilationFailed as failure:
        raise CompilerMissing(_what_fails(command[0], failure.diagnostics)) from failure
    except OSError as error:
        message = f"the C++ compiler {command[0]} cannot be tried, for want of temporary files: {error.strerror}"
        raise CompilerMissing(message) from None
    return compiler


def _what_fails(name: str, diagnostics: str) -> str:
    if re.search(r"\bomp\.h|openmp|lomp|gomp", diagnostics):
        return f"the C++ compiler {name} has no OpenMP. {_HOW_TO_GET_OPENMP}"
    first = next((line for line in diagnostics.splitlines() if line.strip()), "no message")
    return f"the C++ compiler {name} cannot build a library: {first.strip()}. {_HOW_TO_GET_ONE}"
