"""The C++ programs here, which check the headers of block operators, built for this and for the plainest processor."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

from bbrewrite.resources import resource_directory
from bbrewrite.runtime.compiler import find_compiler

HERE = Path(__file__).parent
HEADERS = resource_directory("targets") / "cpp"
# Last wins: the plainest processor has no fused multiply-add.
PROCESSORS = {"this": (), "plain": ("-march=x86-64",)}


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("program", ["dot", "math", "stream"])
def test_headers(program: str, processor: str, tmp_path: Path) -> None:
    if processor == "plain" and platform.machine() != "x86_64":
        pytest.skip("the plainest processor is known for x86-64 only")
    compiler = find_compiler()
    flags = [flag for flag in compiler.flags(PROCESSORS[processor]) if flag != "-shared"]
    built = tmp_path / program
    subprocess.run(
        [*compiler.command, *flags, f"-I{HEADERS}", "-o", built, HERE / f"{program}.cpp"],
        check=True,
    )
    done = subprocess.run([built], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
