"""How many kernels the examples come to at their own sizes: what can be one kernel is one."""

from __future__ import annotations

import pytest

from bbrewrite.fusion import Fusion, fuse
from bbrewrite.pipeline import run
from bbrewrite.request import make_request, read_program
from tests.cli.conftest import ROOT
from tests.plan.pipelines import shipped_rules

ONE_KERNEL = {
    # name: how many outputs the kernel stores
    "attention": 1,
    "attention_sinks": 1,
    "causal_attention": 1,
    "cross_entropy": 1,
    "grouped_query_attention": 1,
    "layernorm_matmul": 1,
    "packed_documents_attention": 1,
    "rmsnorm_qkv": 3,
    "rmsnorm_swiglu": 1,
    "softcap_window_attention": 1,
    "softmin": 1,
}


def _fused(name: str) -> Fusion:
    rules = shipped_rules()
    return fuse(make_request(read_program(ROOT / f"examples/{name}.bb", rules.table), rules, threads=2))


@pytest.mark.parametrize("name", ONE_KERNEL)
def test_one_kernel_each(name: str) -> None:
    (kernel,) = _fused(name).fused.kernels.kernels
    assert len(kernel.writes) == ONE_KERNEL[name]


def test_a_normalised_layer_with_its_residual_is_one_kernel_or_two_with_the_reason() -> None:
    fusion = _fused("layernorm_mlp")
    kernels = fusion.after.kernels
    assert kernels == 1 or (kernels == 2 and any(" stored: the plan takes" in note for note in fusion.notes))


def test_a_decoder_layer_is_at_most_six_kernels() -> None:
    assert _fused("decoder_layer").after.kernels <= 6


def test_a_decoder_layer_is_right_in_single_precision() -> None:
    rules = shipped_rules()
    program = read_program(ROOT / "examples/decoder_layer.bb", rules.table)
    sizes = {"m": 70, "c": 40, "r": 6, "l": 12, "f": 72}
    result = run(make_request(program, rules, sizes, threads=2), "cpp", seed=3)
    assert result.fusion.after.kernels <= 6
    assert result.comparison.max_rel_err <= 1e-4
