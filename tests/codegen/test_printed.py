"""Golden files of generated source. BBREWRITE_UPDATE_GOLDEN=1 writes them anew; read the differences."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from bbrewrite.codegen.cpp.program import print_programs
from bbrewrite.codegen.cpp.project import project_files
from bbrewrite.codegen.names import Names, identifier
from bbrewrite.codegen.text import bare, number
from bbrewrite.core.elements import Element
from bbrewrite.runtime.compiler import Compiler
from bbrewrite.runtime.module import build
from tests.codegen.general_cases import general_cases
from tests.codegen.kernel_cases import attention, layer_norm, swiglu, table_with_weight

GOLDEN = Path(__file__).parent / "golden"
TABLE = table_with_weight()
CASES = general_cases()
PRINTED = {
    "attention": attention("attention", 64, causal=True),
    "layer_norm": layer_norm(),
    "swiglu": swiglu(whole_list=True),
    "two_kernels": CASES["two_kernels"],
    "user_operator": CASES["user_operator"],
    "half_type_shift": CASES["half_type_shift"],
}


def _assert_golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("BBREWRITE_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"{path} differs; BBREWRITE_UPDATE_GOLDEN=1 updates it"


@pytest.mark.parametrize("name", PRINTED)
def test_generated_source(name: str) -> None:
    _assert_golden(f"{name}.cpp", print_programs([PRINTED[name]], TABLE).text)


def test_project() -> None:
    files = project_files(CASES["two_kernels"], TABLE)
    assert {"two_kernels.cpp", "two_kernels.h", "bb.hpp", "CMakeLists.txt"} <= files.keys()
    _assert_golden("two_kernels.h", files["two_kernels.h"])
    _assert_golden("CMakeLists.txt", files["CMakeLists.txt"])


def test_a_program_with_loops_unrolled_is_built_so_everywhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By the option with which it is compiled here, in the build file, and in a word to who compiles it otherwise."""
    program = replace(CASES["two_kernels"], unrolled=True)
    plain, unrolled = print_programs([CASES["two_kernels"]], TABLE), print_programs([program], TABLE)
    assert (plain.options, unrolled.options) == ((), ("-funroll-loops",))
    assert unrolled.text == f"// Measured to be faster when compiled with -funroll-loops.\n\n{plain.text}"
    usual, other = (project_files(made, TABLE)["CMakeLists.txt"].split() for made in (CASES["two_kernels"], program))
    assert [word for word in other if word not in usual] == ["-funroll-loops"]
    built: list[tuple[str, ...]] = []

    def build_library(_: Compiler, source: Path, product: Path, include: Path, extra: tuple[str, ...]):
        built.append(extra)
        product.write_bytes(b"")

    monkeypatch.setenv("BBREWRITE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(Compiler, "build_library", build_library)
    for source in (plain, unrolled):
        build(source, Compiler(("c++",), "0"))
    assert built == [(), ("-funroll-loops",)]


def test_the_same_program_is_printed_the_same_twice() -> None:
    programs = list(CASES.values())
    assert print_programs(programs, TABLE).text == print_programs(programs, TABLE).text


def test_names_are_unique_and_legal() -> None:
    names = Names()
    assert [names.fresh(name) for name in ("int", "x", "x", "ж", "2d", "_a__b")] == [
        "int_1", "x", "x_1", "u436", "x2d", "a_b",
    ]  # fmt: skip
    assert names.inner().fresh("x") == "x_2"
    assert identifier("a.b") == "au2eb"
    assert [identifier(name) for name in ("NULL", "M_PI", "INT8_MAX", "M", "M_new")] == [
        "xNULL", "xM_PI", "xINT8_MAX", "M", "M_new",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "element", "text"),
    [
        (0.1, Element.F32, "0.1f"),
        (0.1, Element.F64, "0.1"),
        (-2.0, Element.F32, "(-2.0f)"),
        (1e-5, Element.F32, "1e-05f"),
        (1e300, Element.F32, "INFINITY"),
        (float("-inf"), Element.F64, "double(-INFINITY)"),
        (float("-inf"), Element.INDEX, "INT64_MIN"),
        (3.0, Element.INDEX, "INT64_C(3)"),
        (float("-inf"), Element.BOOL, "false"),
        (2.0, Element.BOOL, "true"),
    ],
)
def test_numbers(value: float, element: Element, text: str) -> None:
    assert number(value, element) == text


def test_bare_expressions() -> None:
    assert [bare(text) for text in ("(a + b)", "(a) + (b)", "((a))", "f(a)")] == ["a + b", "(a) + (b)", "(a)", "f(a)"]
