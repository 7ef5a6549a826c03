"""The target `cuda` on the command line: emulated where there is no GPU, and what is said where tools are missing."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bbrewrite.codegen.cuda.program import print_cuda
from bbrewrite.fusion import fuse
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


@pytest.mark.parametrize("as_json", [False, True])
def test_tf32_is_asked_for_and_reported(bbrewrite: Command, rules: Path, as_json: bool) -> None:
    nvcc()
    text = "program p\nindex m = 40, n = 48, k = 72\ninput A[m, k], B[k, n] : f32\n"
    Path("p.bb").write_text(text + "output C[m, n] = sum[k](A[m, k] * B[k, n])\n")
    run = ("run", rules, "p.bb", "--target", "cuda", "--emulate", *(["--json"] if as_json else []))
    plain, rounded = bbrewrite(*run), bbrewrite(*run, "--tf32")
    assert (plain.exit_code, rounded.exit_code) == (0, 0)
    if not as_json:
        assert "rounded to tf32" in rounded.output
        assert "rounded to tf32" not in plain.output
        assert re.search(r"  C: \d+ blocks? of \d+ threads, \d+ at a time on a multiprocessor", rounded.output)
        assert "registers a thread (estimated)" in rounded.output
        return
    exact, rough = json.loads(plain.stdout), json.loads(rounded.stdout)
    assert (exact.get("tf32"), rough["tf32"]) == (None, True)
    assert exact["max_rel_err"] < 1e-6 < rough["max_rel_err"] < 2e-3


@pytest.mark.parametrize("sizes", [("--size", "m=0"), ("--size", "m=9", "--size", "n=0")])
def test_over_nothing(bbrewrite: Command, rules: Path, scaled_sum: Path, sizes: tuple[str, ...]) -> None:
    """No rows are an empty result; over no columns, a sum is what the unfused program says."""
    nvcc()
    result = bbrewrite("run", rules, scaled_sum, "--target", "cuda", "--emulate", *sizes, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["ok"] is True


@pytest.mark.parametrize("option", ["--tf32", "--gpu sm_80", "--gpu sm_90", "--emulate"])
@pytest.mark.parametrize("command", ["run", "bench", "run --target numpy", "codegen -o out"])
def test_options_of_gpus_are_for_gpus(
    bbrewrite: Command, rules: Path, scaled_sum: Path, command: str, option: str
) -> None:
    if command.startswith("codegen") and option == "--emulate":
        option = "--gpu=sm_90"  # nothing is run
    result = bbrewrite(*command.split(), rules, scaled_sum, "--size", "m=3", *option.split())
    assert result.exit_code == 2
    assert f"{option.split()[0].split('=')[0]} is for the target cuda" in result.stderr
    assert not Path("out").exists()


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


def test_the_header_tells_extents_and_which_must_be_equal(bbrewrite: Command, rules: Path) -> None:
    text = "program p\nindex m = 8, n = 8, k = 9\ninput A[m, k], B[n] : f32\n"
    Path("p.bb").write_text(text + "output C[m] = sum[k](A[m, k]) + B[m]\n")
    assert bbrewrite("codegen", rules, "p.bb", "--target", "cuda", "-o", "out").exit_code == 0
    header = Path("out/p.h").read_text()
    assert "Extents that must be equal: size_m = size_n." in header
    assert "size_m: the extent of m, usually 8; at least 0" in header
    assert "size_k: the extent of k, usually 9; at least 1" in header


@pytest.mark.slow
def test_the_build_file_builds_what_is_written(bbrewrite: Command, rules: Path, scaled_sum: Path) -> None:
    compiler, cmake = nvcc(), shutil.which("cmake")
    if cmake is None:
        pytest.skip("cmake was not found")
    assert bbrewrite("codegen", rules, scaled_sum, "--target", "cuda", "--size", "m=9", "-o", "out").exit_code == 0
    configure = [cmake, "-S", "out", "-B", "build", f"-DCMAKE_CUDA_COMPILER={compiler.compiler}"]
    for command in (configure, [cmake, "--build", "build"]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert Path("build/libscaled_sum.so").exists()


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
