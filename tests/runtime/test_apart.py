"""Products that are built once for all programs compute what a program's own would, and are there when needed."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from bbrewrite.codegen.cpp.program import print_programs
from bbrewrite.plan.kernel import KernelProgram
from bbrewrite.runtime.apart import APART, begin_products, header_directory, multiplies, products_apart
from bbrewrite.runtime.compiler import find_compiler
from bbrewrite.runtime.library import CompiledProgram
from bbrewrite.runtime.module import compile_program, signature_of
from tests.codegen.general_cases import general_cases
from tests.codegen.kernel_cases import arrays_for, attention, swiglu, table_with_weight

TABLE = table_with_weight()


@pytest.mark.parametrize("program", [attention("attention", 64, causal=True), swiglu(whole_list=True)])
def test_results_do_not_depend_on_where_products_are_built(program: KernelProgram, tmp_path: Path) -> None:
    source = print_programs([program], TABLE)
    assert multiplies(source.text)
    path, library = tmp_path / "all.cpp", tmp_path / "all.so"
    path.write_text(source.text, encoding="utf-8")
    find_compiler().build_library(path, library, header_directory())
    whole = CompiledProgram(signature_of(program, source.entry_points[0]), library)
    extents = {index: 37 for index, _ in source.entry_points[0].extent_arguments}
    arrays = arrays_for(program, extents, seed=1)
    linked = compile_program(program, TABLE).run(arrays, extents, 2)
    for name, array in whole.run(arrays, extents, 2).items():
        np.testing.assert_array_equal(linked[name], array)


def test_declared_products_come_from_the_object_alone(tmp_path: Path) -> None:
    source = print_programs([attention("attention", 64, causal=True)], TABLE)
    path = tmp_path / "kernels.cpp"
    path.write_text(source.text, encoding="utf-8")
    compiler = find_compiler()
    sizes: list[int] = []
    for options in ((), (APART,)):
        compiler.build_object(path, tmp_path / "kernels.o", header_directory(), options)
        sizes.append((tmp_path / "kernels.o").stat().st_size)
    assert sizes[1] < 0.75 * sizes[0]  # the rest are rows, whose size depends on the processor's vectors
    defined = products_apart(compiler).read_bytes()
    assert all(name in defined for name in (b"full_panel", b"pack_kn", b"pack_nk"))


def test_a_program_without_products_waits_for_none() -> None:
    assert not multiplies(print_programs([general_cases()["user_operator"]], TABLE).text)


def test_what_goes_wrong_ahead_is_told_where_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[object] = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    monkeypatch.setenv("CXX", "no-such-compiler")
    before = set(threading.enumerate())
    begin_products()
    for thread in set(threading.enumerate()) - before:
        thread.join()
    assert not raised
