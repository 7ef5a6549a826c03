"""Masked attention moves what the cost model counts, to the byte: no mask, extent or block size leaves a difference.

A mask's edges cross blocks, and last blocks are smaller than others: both decide how much of the keys is loaded.
"""

from __future__ import annotations

import numpy as np
import pytest

from bbrewrite.codegen.cuda.program import print_cuda
from bbrewrite.core.spans import Source
from bbrewrite.emulate.program import EmulatedProgram
from bbrewrite.fusion import fuse
from bbrewrite.inputs import draw_inputs
from bbrewrite.lang.programs import parse_program
from bbrewrite.plan.kernel import Loop, walk_statements
from bbrewrite.request import make_request
from bbrewrite.verify.exact import evaluate_exactly
from tests.codegen.cuda.programs import TARGET, moved_bytes, nvcc, relative_error
from tests.plan.pipelines import shipped_rules

_TEXT = """\
program masked
index h = 4, g = 2, m = 2048, n = 2048, d = 32, l = 32
input  Q[h, m, d], K[g, n, d], V[g, n, l] : bf16
S[h, m, n] = sum[d](Q[h, m, d] * K[h / 2, n, d]) / sqrt(size(d))
C[h, m, n] = where({condition}, S[h, m, n], -inf)
output O[h, m, l] = sum[n](softmax[n](C[h, m, n]) * V[h / 2, n, l])
"""
_CAUSAL, _WINDOW, _PREFIX = "n <= m", "m - n < 50", "n < 40"
_MASKS = {
    "causal": _CAUSAL,
    "later queries": "n <= m + size(n) - size(m)",
    "window": f"{_CAUSAL} and {_WINDOW}",
    "prefix": _PREFIX,
    "causal or prefix": f"{_CAUSAL} or {_PREFIX}",
    "window or prefix": f"{_CAUSAL} and ({_WINDOW} or {_PREFIX})",
    "both sides": "n - m < 30 and m - n < 20",
}
_BLOCKS = ((64, 64), (64, 16), (16, 32))
_ALWAYS = {("causal", (64, 64)), ("window", (64, 16)), ("causal or prefix", (16, 32)), ("both sides", (16, 32))}
# Queries and keys: whole blocks, rests in both, fewer of one than of the other, and less than a block.
_EXTENTS = ((128, 128), (150, 150), (75, 200), (200, 90), (9, 13))


@pytest.mark.parametrize(
    ("mask", "blocks"),
    [
        pytest.param(
            mask,
            blocks,
            id=f"{mask} {blocks[0]}x{blocks[1]}",
            marks=() if (mask, blocks) in _ALWAYS else pytest.mark.slow,
        )
        for mask in _MASKS
        for blocks in _BLOCKS
    ],
)
def test_masked_attention_moves_what_the_model_counts(mask: str, blocks: tuple[int, int]) -> None:
    rules = shipped_rules()
    array = parse_program(Source(mask, _TEXT.format(condition=_MASKS[mask])), rules.table)
    request = make_request(array, rules, blocks=dict(zip(("m", "n"), blocks, strict=True)))
    assert TARGET.gpu is not None
    program = fuse(request, TARGET).fused.kernels
    assert any(isinstance(s, Loop) and s.bounds for kernel in program.kernels for s in walk_statements(kernel.body))
    source = print_cuda(program, rules.table, TARGET.gpu)
    emulated = EmulatedProgram(program, source, nvcc().ptx(source.text))
    for m, n in _EXTENTS:
        extents = {**request.extents, "m": m, "n": n}
        arrays = draw_inputs(array, extents, 0, {})
        run = emulated.run(arrays, extents)
        assert run.faults == ()
        for kernel, report in zip(program.kernels, run.reports, strict=True):
            moved = int(report.loaded_bytes.sum() + report.stored_bytes.sum())
            assert moved == moved_bytes(kernel, extents, rules.table), (kernel.name, m, n)
        exact = evaluate_exactly(array, arrays, extents, rules.table)["O"]
        seen = np.isfinite(exact)
        np.testing.assert_array_equal(seen, np.isfinite(run.outputs["O"].astype(np.float64)))
        assert relative_error(run.outputs["O"][seen], exact[seen]) <= 2**-6
