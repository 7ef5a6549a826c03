"""Generated source in other hands: a strict compiler, sanitizers, and a C program that links to it."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import pytest

from bbrewrite.codegen.cpp.program import print_programs
from bbrewrite.codegen.cpp.project import project_files
from bbrewrite.resources import resource_directory
from bbrewrite.runtime.compiler import find_compiler
from tests.codegen.general_cases import general_cases
from tests.codegen.kernel_cases import table_with_weight

TABLE = table_with_weight()
CASES = general_cases()
HEADERS = resource_directory("targets") / "cpp"

_USER = """\
#include "two_kernels.h"
#include <math.h>
#include <stdio.h>

int main(void) {
  float X[10] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, T[10], Y[2];
  bb_two_kernels(X, Y, T, 2, 5, 2);
  printf("%g %g", Y[0], Y[1]);
  return 0;
}
"""

# Calls every program on blocks of memory of exactly the right size, where any access outside is reported.
_DRIVER = """\
import ctypes, json, sys
library = ctypes.CDLL(sys.argv[1])
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
for name, sizes, extents in json.load(sys.stdin):
    arrays = [libc.malloc(size) for size in sizes]
    for array, size in zip(arrays, sizes):
        libc.memset(array, 0, size)
    function = library[name]
    function.restype = None
    function(*map(ctypes.c_void_p, arrays), *map(ctypes.c_int64, extents), 2)
    for array in arrays:
        libc.free(array)
print("done")
"""


def _run(*command: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]


def test_compilers_find_nothing_to_warn_about(tmp_path: Path) -> None:
    source = tmp_path / "all.cpp"
    source.write_text(print_programs(list(CASES.values()), TABLE).text, encoding="utf-8")
    flags = ("-std=c++20", "-O1", "-fopenmp", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{HEADERS}")
    done = _run(*find_compiler().command, *flags, source)
    assert done.returncode == 0, done.stderr


def test_a_c_program_uses_the_project(tmp_path: Path) -> None:
    for name, text in project_files(CASES["two_kernels"], TABLE).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "user.c").write_text(_USER, encoding="utf-8")
    compiler = find_compiler()
    compiler.build_library(tmp_path / "two_kernels.cpp", tmp_path / "libtwo_kernels.so", tmp_path)
    user = tmp_path / "user"
    link = ("-x", "c", "user.c", "-x", "none", "-o", user, "-L.", "-ltwo_kernels", f"-Wl,-rpath,{tmp_path}")
    built = _run(*compiler.command, "-Wall", "-Werror", *link, cwd=tmp_path)
    assert built.returncode == 0, built.stderr
    assert _run(user).stdout == "5 5"


def test_nothing_outside_the_arrays_is_touched(tmp_path: Path) -> None:
    import json

    source = print_programs(list(CASES.values()), TABLE)
    path, library = tmp_path / "all.cpp", tmp_path / "all.so"
    path.write_text(source.text, encoding="utf-8")
    command = find_compiler().command
    # Without optimisation, so that no access is proved away.
    flags = ("-std=c++20", "-O0", "-march=native", "-fopenmp", "-fPIC", "-shared", f"-I{HEADERS}")
    sanitizers = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    built = _run(*command, *flags, *sanitizers, "-o", library, path)
    if built.returncode != 0 and "asan" in built.stderr:
        pytest.skip("the compiler's sanitizer library is not installed")
    assert built.returncode == 0, built.stderr
    calls: list[tuple[str, list[int], list[int]]] = []
    for case, entry in zip(CASES.values(), source.entry_points, strict=True):
        for sizes in ((9, 11, 7, 13), (1,), (17, 5, 23, 3), (0, 3), (3, 0)):
            extents = dict(zip((index for index, _ in entry.extent_arguments), itertools.cycle(sizes), strict=False))
            lengths = [
                _product(extents[case.indices.root(index)] for index in tensor.indices) * tensor.element.size_bytes
                for tensor, _ in entry.tensor_arguments
            ]
            calls.append((entry.name, lengths, list(extents.values())))
    runtime = _run(*command, "-print-file-name=libasan.so").stdout.strip()
    done = _run(
        sys.executable, "-c", _DRIVER, library,
        input=json.dumps(calls),
        env={"LD_PRELOAD": runtime, "ASAN_OPTIONS": "detect_leaks=0", "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.stdout.strip() == "done", done.stderr[-4000:]


def _product(factors: object) -> int:
    result = 1
    for factor in factors:  # type: ignore[attr-defined]
        result *= factor
    return result
