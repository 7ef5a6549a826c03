"""Source divided among translation units: nothing lost, nothing twice, and the numbers of the source as one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bbrewrite.codegen.cpp.program import Source, print_programs
from bbrewrite.codegen.cpp.units import units
from bbrewrite.runtime.apart import header_directory, multiplies
from bbrewrite.runtime.compiler import Compiler, find_compiler
from bbrewrite.runtime.library import CompiledProgram
from bbrewrite.runtime.module import build, signature_of
from tests.built import QUICKLY
from tests.codegen.general_cases import general_cases
from tests.codegen.kernel_cases import arrays_for, attention, swiglu, table_with_weight

TABLE = table_with_weight()
_CASES = general_cases()
# Several kernels of one program, functions of a user's, products, and loops that all threads share.
PROGRAMS = [_CASES["two_kernels"], _CASES["user_operator"], attention("attention", 16, causal=True), swiglu()]
PROGRAMS += [case for case in _CASES.values() if any(kernel.is_split for kernel in case.kernels)][:2]


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Source:
    monkeypatch.setattr("bbrewrite.codegen.cpp.units._WORTH_A_UNIT", 1)
    return print_programs(PROGRAMS, TABLE)


@pytest.mark.parametrize("most", [2, 3, 100])
def test_every_kernel_is_in_one_unit_and_entry_points_in_the_first(source: Source, most: int) -> None:
    first, *others = units(source, most)
    assert len(others) + 1 == min(most, len(source.kernels))
    for kernel in source.kernels:
        heads = [f"{kernel.declaration} {{" in text for text in (first, *others)]
        assert heads.count(True) == 1
        assert (f"{kernel.declaration};" in first) != heads[0]
    for point in source.entry_points:
        assert point.declaration in first
    assert not any('extern "C"' in text for text in others)


def test_what_is_short_stays_in_one_piece() -> None:
    source = print_programs([_CASES["two_kernels"]], TABLE)
    assert units(source, 8) == [source.text]
    assert units(print_programs(PROGRAMS, TABLE), 1) == [print_programs(PROGRAMS, TABLE).text]


def test_results_do_not_depend_on_units(source: Source, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    compiled: list[str] = []

    def build_object(
        self: Compiler,
        path: Path,
        product: Path,
        include: Path,
        extra: tuple[str, ...] = (),
        original=Compiler.build_object,
    ) -> None:
        compiled.append(path.name)
        original(self, path, product, include, extra)

    assert multiplies(source.text)
    monkeypatch.setattr("bbrewrite.runtime.module.default_threads", lambda: 3)
    monkeypatch.setattr(Compiler, "build_object", build_object)
    monkeypatch.setenv("BBREWRITE_CACHE_DIR", str(tmp_path))
    path, library = tmp_path / "all.cpp", tmp_path / "all.so"
    path.write_text(source.text, encoding="utf-8")
    find_compiler().build_library(path, library, header_directory(), QUICKLY)
    divided = build(source, find_compiler(), QUICKLY)
    assert {f"kernels_{number}.cpp" for number in range(3)} <= set(compiled)
    # What is kept is the source as one.
    assert {file.name for file in divided.parent.iterdir()} >= {"kernels.cpp", divided.name}
    assert not [file for file in divided.parent.iterdir() if file.is_dir() or file.suffix == ".o"]
    for program, point in zip(PROGRAMS, source.entry_points, strict=True):
        arrays = arrays_for(program, extents := {index: 37 for index, _ in point.extent_arguments}, seed=1)
        one, other = (CompiledProgram(signature_of(program, point), path) for path in (library, divided))
        for name, array in one.run(arrays, extents, 2).items():
            np.testing.assert_array_equal(other.run(arrays, extents, 2)[name], array)
