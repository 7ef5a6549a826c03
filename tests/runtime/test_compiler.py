"""Which compiler is taken, and what is said where there is none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bbrewrite.runtime.compiler import CompilationFailed, CompilerMissing, find_compiler
from bbrewrite.runtime.compiler_file import compiler_file


def test_the_environment_names_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "g++ -DNOTHING")
    compiler = find_compiler()
    assert compiler.command == ("g++", "-DNOTHING")
    assert "g++" in compiler.fingerprint


def test_a_missing_compiler_tells_how_to_get_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CompilerMissing, match=r"c\+\+, g\+\+, clang\+\+.*apt install g\+\+"):
        find_compiler()
    monkeypatch.setenv("CXX", "no-such-compiler -O2")
    with pytest.raises(CompilerMissing, match=r"named by CXX, no-such-compiler, .*apt install g\+\+"):
        find_compiler()


@pytest.mark.parametrize(
    ("named", "message"),
    [(" ", "CXX names no C.. compiler: it is blank"), ("g++ 'a", r"\"g\+\+ 'a\" is no command: no closing quotation")],
)
def test_a_name_that_is_no_command(named: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", named)
    with pytest.raises(CompilerMissing, match=message):
        find_compiler()


def test_a_file_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "no-program"
    path.write_bytes(b"x\0y")
    path.chmod(0o755)
    monkeypatch.setenv("CXX", str(path))
    with pytest.raises(CompilerMissing, match="no-program cannot be started: Exec format error"):
        find_compiler()


def _fake_compiler(directory: Path, message: str) -> Path:
    path = directory / "fake++"
    path.write_text(f'#!/bin/sh\ntest "$1" = --version && echo fake 1.0 && exit 0\necho "{message}" >&2\nexit 1\n')
    path.chmod(0o755)
    return path


def test_missing_openmp_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CXX", str(_fake_compiler(tmp_path, "fatal error: 'omp.h' file not found")))
    with pytest.raises(CompilerMissing, match=r"has no OpenMP.*libomp-dev"):
        find_compiler()


@pytest.mark.parametrize("message", ["fatal error: cannot write the object\ncompilation terminated.", "no company"])
def test_other_failures_are_not_taken_for_missing_openmp(
    message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CXX", str(_fake_compiler(tmp_path, message)))
    with pytest.raises(CompilerMissing, match="cannot build a library"):
        find_compiler()


def test_a_full_disk_is_not_taken_for_a_missing_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CXX", str(_fake_compiler(tmp_path, "fatal error: No space left on device")))
    with pytest.raises(CompilerMissing, match="temporary files: No space left on device"):
        find_compiler()


def test_a_broken_compiler_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CXX", str(_fake_compiler(tmp_path, "internal trouble")))
    with pytest.raises(CompilerMissing, match="cannot build a library: internal trouble"):
        find_compiler()


# One that does not take the source.
_ANOTHER = """\
test "$1" = --version && echo another && exit 0
case "$*" in *right.cpp*) exit 1;; esac
exec c++ "$@"
"""


@pytest.mark.parametrize(
    ("other", "message"),
    [("exit 1", "cannot build a library"), (_ANOTHER, "is another one than it was")],
)
def test_a_remembered_compiler_that_fails_is_looked_at_again(
    other: str, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What a command runs may have changed though its file has not."""
    inner, wrapper = tmp_path / "inner", tmp_path / "wrapper"
    wrapper.write_text(f"#!/bin/sh\n. {inner}\n")
    wrapper.chmod(0o755)
    inner.write_text('exec c++ "$@"\n')
    monkeypatch.setenv("CXX", str(wrapper))
    monkeypatch.setenv("BBREWRITE_CACHE_DIR", str(tmp_path / "cache"))
    source = tmp_path / "right.cpp"
    source.write_text("int f() { return 1; }\n")
    for is_remembered in (False, True):
        monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/nowhere")  # as another process: within one it is found once
        compiler = find_compiler()
        assert compiler.is_remembered == is_remembered
        compiler.build_library(source, tmp_path / "right.so", tmp_path)
    inner.write_text(other)
    with pytest.raises(CompilerMissing, match=message):
        compiler.build_library(source, tmp_path / "right.so", tmp_path)


def test_rejected_source_carries_the_diagnostics(tmp_path: Path) -> None:
    source = tmp_path / "wrong.cpp"
    source.write_text("int f() { return undefined_name; }\n")
    with pytest.raises(CompilationFailed) as caught:
        find_compiler().build_library(source, tmp_path / "wrong.so", tmp_path)
    assert "undefined_name" in caught.value.diagnostics
    assert "undefined_name" in str(caught.value)


@pytest.mark.parametrize("named", ["'{0}/a b/g++' -O2", "{0}/ccache '{0}/a b/g++'"])
def test_every_program_of_a_command_is_watched(named: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("a b/g++", "ccache"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("version 1")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("CXX", named.format(tmp_path))
    before = compiler_file()
    assert str(tmp_path / "a b/g++") in before
    (tmp_path / "a b/g++").write_text("version 1.1")
    assert compiler_file() not in (before, "")


def test_a_command_that_is_not_there_is_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    for named in ("no-such-compiler g++", "g++ 'a", " "):
        monkeypatch.setenv("CXX", named)
        assert compiler_file() == ""
