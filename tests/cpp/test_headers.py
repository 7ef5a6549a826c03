"""The C++ programs here, which check the headers of block operators, built for this and for the plainest processor."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

from bbrewrite.resources import resource_directory
from bbrewrite.runtime.compiler import Compiler, CompilerMissing, find_compiler
from bbrewrite.runtime.processor import processor_features

HERE = Path(__file__).parent
HEADERS = resource_directory("targets") / "cpp"
# Last wins: the plainest processor has no fused multiply-add; one of the third level has, and 16 registers of 8 floats:
# this may be one itself. Only what is built for it need be as fast as it gets; the rest builds in half the time.
PROCESSORS: dict[str, tuple[str, ...]] = {"this": ()}
if platform.machine() == "x86_64":
    PROCESSORS["plain"] = ("-march=x86-64", "-O1")
if "avx512f" in processor_features():
    PROCESSORS["third level"] = ("-march=x86-64-v3", "-O1")


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("program", ["dot", "math", "round", "stream"])
def test_headers(program: str, processor: str, tmp_path: Path) -> None:
    _check(find_compiler(), program, processor, tmp_path)


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("program", ["dot", "math", "round", "stream"])
def test_headers_with_clang(program: str, processor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "clang++")
    try:
        compiler = find_compiler()
    except CompilerMissing as missing:
        pytest.skip(f"clang++ cannot be used here: {missing}")
    _check(compiler, program, processor, tmp_path, "-O1")


def _check(compiler: Compiler, program: str, processor: str, tmp_path: Path, *more: str) -> None:
    flags = compiler.flags((*PROCESSORS[processor], *more))
    built = tmp_path / program
    subprocess.run(
        [*compiler.command, *flags, f"-I{HEADERS}", "-o", built, HERE / f"{program}.cpp"],
        check=True,
    )
    done = subprocess.run([built], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
