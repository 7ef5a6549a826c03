"""The target `cuda` on the command line: emulated where there is no GPU, and what is said where tools are missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bbrewrite.codegen.cuda.program import print_cuda
from bbrewrite.pipeline import fuse
from bbrewrite.plan.target import gpu_target
from bbrewrite.request import make_request, read_program
from bbrewrite.rules.load import load_rules
from bbrewrite.runtime.nvcc import find_nvcc
from tests.cli.conftest import Command
from tests.codegen.cuda.programs import nvcc


def test_run_emulates_and_says_so(bbrewrite: Command, rules: Path, scaled_sum: Path) -> None:
    nvcc()
    result = bbrewrite("run", rules, scaled_sum, "--target", "cuda", "--emulate", "--size", "m=1000")
    assert result.exit_code == 0, result.output
    assert "emulated" in result.output
    assert "m = 150" in result.output
    assert "result: right" in result.output
    assert "faster" not in result.output


def test_json_tells_the_extents_of_an_emulation(bbrewrite: Command, rules: Path, scaled_sum: Path) -> None:
    nvcc()
    run = ("run", rules, scaled_sum, "--target", "cuda", "--emulate", "--size", "m=1000", "--json")
    report = json.loads(bbrewrite(*run).stdout)
    assert report["ok"] is True
    assert report["sizes"]["m"] == 1000
    assert report["emulated_at"] == {"m": 150, "n": 5}


def test_bench_needs_a_gpu(bbrewrite: Command, rules: Path, scaled_sum: Path) -> None:
    result = bbrewrite("bench", rules, scaled_sum, "--target", "cuda", "--emulate", "--size", "m=9")
    assert result.exit_code == 3
    assert "does not time them" in result.stderr


def test_without_nvcc_the_message_names_the_packages(
    bbrewrite: Command, rules: Path, scaled_sum: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    result = bbrewrite("run", rules, scaled_sum, "--target", "cuda", "--emulate", "--size", "m=9")
    assert result.exit_code == 3
    assert "nvidia-cuda-nvcc" in result.stderr


def test_codegen_writes_a_project_that_nvcc_compiles(bbrewrite: Command, rules: Path, scaled_sum: Path) -> None:
    compiler = nvcc()
    result = bbrewrite("codegen", rules, scaled_sum, "--target", "cuda", "--gpu", "sm_90", "--size", "m=9", "-o", "out")
    assert result.exit_code == 0, result.output
    written = {path.name for path in Path("out").iterdir()}
    assert {"scaled_sum.cu", "scaled_sum.h", "bb.cuh", "CMakeLists.txt"} <= written
    ptx = compiler.ptx(Path("out/scaled_sum.cu").read_text())
    assert compiler.usage(ptx, "sm_90a")


def test_blocks_that_do_not_fit(bbrewrite: Command, rules: Path) -> None:
    text = "program p\nindex m = 4096, n = 4096, k = 4096\ninput A[m, k], B[k, n] : f32\n"
    Path("p.bb").write_text(text + "output C[m, n] = sum[k](A[m, k] * B[k, n])\n")
    blocks = ("--block", "m=128", "--block", "n=128", "--block", "k=512")
    result = bbrewrite("codegen", rules, "p.bb", "--target", "cuda", *blocks, "-o", "out")
    assert result.exit_code == 2
    assert "bytes of shared memory" in result.stderr
    assert "--block" in result.stderr


def test_the_compiler_is_asked_once_for_a_source(rules: Path, scaled_sum: Path) -> None:
    """What nvcc made is kept by content: the same source again costs nothing."""
    nvcc()
    ruleset = load_rules(rules)
    request = make_request(read_program(scaled_sum, ruleset.table), ruleset, sizes={"m": 9})
    target = gpu_target("sm_80")
    assert target.gpu is not None
    source = print_cuda(fuse(request, target).fused.kernels, ruleset.table, target.gpu)
    first = find_nvcc().ptx(source.text)
    written = first.stat().st_mtime_ns
    assert find_nvcc().ptx(source.text) == first
    assert first.stat().st_mtime_ns == written
