"""Finds NVIDIA's compiler, and runs it: generated CUDA to PTX, and PTX to machine code with what it needs.

No GPU is needed for either. The compiler is nvcc on the PATH or in CUDA_HOME, or the one of the packages that the extra
`cuda` installs. Products are kept by content.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bbrewrite.resources import resource_directory
from bbrewrite.runtime.cache import cached_product, content_key
from bbrewrite.runtime.compiler import CompilationFailed, CompilerMissing

# Multiplications and additions are contracted only where products say so: see `bb_dot.cuh`.
_FLAGS = ("-std=c++17", "-fmad=false", "-lineinfo")
HOW_TO_GET_NVCC = (
    "Install it with pip install 'bbrewrite[cuda]' (nvidia-cuda-nvcc, nvidia-cuda-runtime, nvidia-cuda-crt and"
    " nvidia-nvvm from PyPI; no GPU is needed), or put the CUDA toolkit's nvcc on the PATH."
)


@dataclass(frozen=True)
class Usage:
    """What ptxas says that a kernel needs, for one architecture."""

    registers: int
    spilled_bytes: int
    stack_bytes: int
    static_shared_bytes: int


@dataclass(frozen=True)
class Nvcc:
    """NVIDIA's compiler and assembler; `version` is what the compiler says of itself."""

    compiler: Path
    assembler: Path
    version: str
    include: tuple[Path, ...]

    def ptx(self, source: str, architecture: str = "sm_80") -> Path:
        """The PTX of generated source, for this architecture or newer ones. Raises CompilationFailed."""
        headers = resource_directory("targets") / "cuda"
        texts = [path.read_text(encoding="utf-8") for path in sorted(headers.glob("*.cuh"))]
        virtual = architecture.replace("sm", "compute")
        key = content_key(self.version, *_FLAGS, virtual, *texts, source)

        def make(directory: Path) -> None:
            path = directory / "kernels.cu"
            path.write_text(source, encoding="utf-8")
            includes = [f"-I{place}" for place in (headers, *self.include)]
            command = [str(self.compiler), "-ptx", f"-arch={virtual}", *_FLAGS, *includes]
            _run([*command, "-o", str(directory / "kernels.ptx"), str(path)], path)

        return cached_product(key, "kernels.ptx", make)

    def usage(self, ptx: Path, architecture: str) -> Mapping[str, Usage]:
        """Assembles PTX and gives what each kernel needs. Raises CompilationFailed."""
        key = content_key(self.version, architecture, ptx.read_text(encoding="utf-8"))

        def make(directory: Path) -> None:
            command = [str(self.assembler), "-v", f"-arch={architecture}", "-o", str(directory / "kernels.cubin")]
            told = _run([*command, str(ptx)], ptx)
            (directory / "usage.txt").write_text(told, encoding="utf-8")

        return _read_usage(cached_product(key, "usage.txt", make).read_text(encoding="utf-8"))


def find_nvcc() -> Nvcc:
    """Raises CompilerMissing, which says how to get it."""
    return _find(os.environ.get("PATH", ""), os.environ.get("CUDA_HOME", ""))


@functools.cache
def _find(path: str, home: str) -> Nvcc:
    places = [Path(home) / "bin"] if home else []
    # The packages of PyPI share the namespace `nvidia`: cu13/bin in newer ones, cuda_nvcc/bin in older.
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations if spec and spec.submodule_search_locations else ():
        places += [place / "bin" for place in sorted(Path(root).glob("cu*"), reverse=True)]
    search = os.pathsep.join([*(str(place) for place in places), path])
    compiler, assembler = shutil.which("nvcc", path=search), shutil.which("ptxas", path=search)
    if compiler is None or assembler is None:
        missing = "nvcc" if compiler is None else "ptxas"
        raise CompilerMissing(f"NVIDIA's {missing} was not found. {HOW_TO_GET_NVCC}")
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout
    beside = Path(compiler).parent.parent / "include"
    return Nvcc(Path(compiler), Path(assembler), version, (beside,) if beside.is_dir() else ())


def _run(command: Sequence[str], source: Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        first = next((line for line in done.stderr.splitlines() if "error" in line), f"exit code {done.returncode}")
        raise CompilationFailed(f"{Path(command[0]).name} failed on {source}: {first}", done.stderr)
    return done.stderr + done.stdout


def _read_usage(text: str) -> dict[str, Usage]:
    found: dict[str, Usage] = {}
    kernels = re.split(r"Compiling entry function '([\w$]+)' for", text)[1:]
    for name, told in zip(kernels[::2], kernels[1::2], strict=True):
        spilled = _told(r"(\d+) bytes spill stores", told) + _told(r"(\d+) bytes spill loads", told)
        stack, shared = _told(r"(\d+) bytes stack frame", told), _told(r"(\d+) bytes smem", told)
        found[name] = Usage(_told(r"Used (\d+) registers", told), spilled, stack, shared)
    return found


def _told(pattern: str, text: str) -> int:
    """The number that a pattern finds; what is not mentioned is 0."""
    match = re.search(pattern, text)
    return int(match[1]) if match else 0
