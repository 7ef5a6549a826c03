"""Optimising compilers find nothing to warn about, though blocks are narrower than vectors, or hold one row."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bbrewrite.codegen.cpp.program import print_programs
from bbrewrite.core.elements import Element
from bbrewrite.core.operators import builtin_table
from bbrewrite.plan.kernel import KernelProgram, Let, Store, Update
from bbrewrite.resources import resource_directory
from bbrewrite.runtime.compiler import CompilerMissing, find_compiler
from tests.codegen.kernel_cases import (
    BF16,
    F16,
    F32,
    F64,
    attention,
    block,
    indices,
    layer_norm,
    op,
    output,
    read,
    single,
    tensor,
    use,
)

TABLE = builtin_table()
HEADERS = resource_directory("targets") / "cpp"


def _kernels(size: int, element: Element) -> Iterator[KernelProgram]:
    """A softmax of rows, whose rows are written while the next ones are read, and folds of a whole vector."""
    name, kept, table = f"{element.value}_{size}", element.compute_type, indices(m=size, n=size)
    values = tensor("X", "m n", element)
    x, total = block("x", "m n", element=kept), block("total", "m", element=kept)
    top, greatest = block("top", "m", element=kept), block("greatest", element=kept)
    softmax = (
        Let(x, read("X", "m", "n")),
        Let(top, op("row_max", use(x))),
        Update(x, op("exp", op("row_shift", use(x), op("negate", use(top))))),
        Let(total, op("row_sum", use(x))),
        Store(output("Y", "m n", element), op("row_scale", use(x), op("recip", use(total)))),
    )
    yield single(f"softmax_{name}", table, "m n", softmax, values, output("Y", "m n", element))
    folds = (
        Let(total, op("row_sum", read("X", "m", "n"))),
        Let(greatest, op("sum_of", use(total))),
        Update(greatest, op("add", use(greatest), op("max_of", use(total)))),
        Store(output("Y", "m", element), op("multiply", use(total), op("row_spread", use(greatest), to="m"))),
    )
    yield single(f"folds_{name}", table, "m n", folds, values, output("Y", "m", element))


@pytest.mark.parametrize("size", [1, 12, 24])
@pytest.mark.parametrize("compiler", ["", "clang++"])
def test_narrow_blocks(compiler: str, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if compiler:
        monkeypatch.setenv("CXX", compiler)
    try:
        command = find_compiler().command
    except CompilerMissing as missing:
        pytest.skip(f"{compiler} cannot be used here: {missing}")
    kernels = [kernel for element in (F32, F64, BF16, F16) for kernel in _kernels(size, element)]
    kernels += [attention(b=size, causal=True), layer_norm(b=size)]
    source = tmp_path / "kernels.cpp"
    source.write_text(print_programs(kernels, TABLE).text, encoding="utf-8")
    # As they are built, since what compilers see depends on what they inline and unroll.
    flags = [flag for flag in find_compiler().flags() if flag != "-shared"]
    warned = [*command, *flags, "-Wall", "-Wextra", "-Werror", "-S", "-o", "/dev/null", f"-I{HEADERS}", str(source)]
    done = subprocess.run(warned, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
