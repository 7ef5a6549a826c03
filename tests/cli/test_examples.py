"""Every example program runs and is right, at sizes that leave ragged blocks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bbrewrite.compiler_options import OPTIONS
from tests.built import QUICKLY
from tests.cli.conftest import ROOT, Command

_SIZES = {
    "attention_sinks": "h=2 m=70 d=8 l=9",
    "attention": "m=70 n=65 d=8 l=9",
    "batch_norm_relu": "m=65 c=33",
    "causal_attention": "b=1 h=2 m=5 n=70 d=8 l=9",
    "cross_entropy": "m=65 k=17 n=9",
    "decoder": "layer=3 m=9 c=20 r=3 l=5 f=17",
    "differential_attention": "m=70 d=8 l=9",
    "grouped_query_attention": "b=1 m=65 n=66 d=8 l=9",
    "layernorm_matmul": "m=65 k=130 n=66",
    "layernorm_mlp": "m=33 d=40 f=66",
    "packed_documents_attention": "h=2 m=150 d=8 l=9",
    "rmsnorm_qkv": "m=65 c=130 d=66 e=20",
    "rmsnorm_swiglu": "m=65 d=130 f=66",
    "row_moments": "m=65 k=1000",
    "self_attention": "m=65 e=33 d=8 l=9",
    "softmin": "m=70 d=8 l=9",
    "softcap_window_attention": "h=2 m=150 d=8 l=9",
}
# The decoder is three of them; tests/plan/test_kernel_counts.py runs one compiled.
_IN_ANOTHER = {"decoder_layer"}
# Compiled as users do, and without the optimiser, whose work on masked rows test_meaning.py looks at.
_OPTIMISED = {"attention", "row_moments", "layernorm_matmul", "rmsnorm_swiglu"}
_COMPILED_QUICKLY = {"attention_sinks", "rmsnorm_qkv", "causal_attention", "softcap_window_attention"}


def test_every_example_has_a_test() -> None:
    assert {path.stem for path in (ROOT / "examples").glob("*.bb")} == set(_SIZES) | _IN_ANOTHER


@pytest.mark.parametrize("name", sorted(_SIZES))
def test_example_on_numpy(bbrewrite: Command, rules: Path, name: str) -> None:
    _run(bbrewrite, rules, name, "numpy")


@pytest.mark.parametrize("name", sorted(_OPTIMISED | _COMPILED_QUICKLY))
def test_example_compiled(bbrewrite: Command, rules: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in _COMPILED_QUICKLY:
        monkeypatch.setattr("bbrewrite.runtime.compiler.OPTIONS", (*OPTIONS, *QUICKLY))
    _run(bbrewrite, rules, name, "cpp")


def _run(bbrewrite: Command, rules: Path, name: str, target: str) -> None:
    sizes = [option for size in _SIZES[name].split() for option in ("--size", size)]
    result = bbrewrite("run", rules, ROOT / f"examples/{name}.bb", "--target", target, *sizes, "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["ok"] is True
    # What one output has of another is stored anyway, and no buffer.
    assert report["after"]["buffers"] <= report["before"]["buffers"]
    assert report["after"]["kernels"] < report["before"]["kernels"]


def test_what_given_documents_save_is_told(bbrewrite: Command, rules: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "D.npy", np.repeat(np.arange(4), 32).astype(np.int32))
    program = ROOT / "examples/packed_documents_attention.bb"
    options = "--size h=1 --size m=128 --size d=8 --size l=8 --block m=32 --block n=32 --target numpy --input D=D.npy"
    result = bbrewrite("run", rules, program, *options.split())
    assert "blocks skipped by masks, for these arrays: 75 %" in result.output
    result = bbrewrite("run", rules, program, *options.split(), "--json")
    assert json.loads(result.stdout)["skipped_blocks"] == 0.75
