"""The programs that are checked and timed on a GPU, in one place: their texts, extents, and the same in PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_ATTENTION = """\
program attention
index h = {h}, m = {m}, n = {m}, d = 128, l = 128
input Q[h, m, d], K[h, n, d], V[h, n, l] : {kind}
S[h, m, n] = sum[d](Q[h, m, d] * K[h, n, d]) / sqrt(size(d))
C[h, m, n] = {scores}
output O[h, m, l] = sum[n](softmax[n](C[h, m, n]) * V[h, n, l])
"""
_MATMUL = """\
program rmsnorm_matmul
index m = {m}, d = 4096, n = 4096
input X[m, d] : {kind}
weight W[d, n], g[d] : {kind}
H[m, d] = rms_norm[d](X[m, d], eps = 1e-6) * g[d]
output Y[m, n] = sum[d](H[m, d] * W[d, n])
"""
_SWIGLU = """\
program rmsnorm_swiglu
index m = {m}, d = 4096, f = 11008, e = d
input X[m, d] : {kind}
weight W1[d, f], W3[d, f], W2[f, e], g[d] : {kind}
H[m, d] = rms_norm[d](X[m, d], eps = 1e-6) * g[d]
G[m, f] = silu(sum[d](H[m, d] * W1[d, f])) * sum[d](H[m, d] * W3[d, f])
output Y[m, e] = sum[f](G[m, f] * W2[f, e])
"""

type Tensors = Mapping[str, Any]


@dataclass(frozen=True)
class GpuProgram:
    """`contenders` compute the same from PyTorch tensors on the device, by name; a name in capitals is a library's."""

    label: str
    text: str
    contenders: Mapping[str, Callable[[Tensors], Any]]
    flops: float


def timed_programs(kind: str = "bf16") -> list[GpuProgram]:
    """What is timed: attention at 8k tokens, and norms with what follows them, for one row and for many."""
    programs = [_attention(causal, kind) for causal in (False, True)]
    for m in (1, 4, 16, 4096):
        programs.append(
            GpuProgram(f"rmsnorm_matmul m={m}", _MATMUL.format(m=m, kind=kind), _norm(_matmul), 2.0 * m * 4096**2)
        )
        work = 6.0 * m * 4096 * 11008
        programs.append(GpuProgram(f"rmsnorm_swiglu m={m}", _SWIGLU.format(m=m, kind=kind), _norm(_swiglu), work))
    return programs


def _attention(causal: bool, kind: str, h: int = 16, m: int = 8192) -> GpuProgram:
    scores = "where(n <= m, S[h, m, n], -inf)" if causal else "S[h, m, n]"
    label = f"attention{' causal' if causal else ''} m={m}"
    work = 4.0 * h * m * m * 128 * (0.5 if causal else 1.0)

    def sdpa(given: Tensors) -> Any:
        import torch

        function = torch.nn.functional.scaled_dot_product_attention
        return function(given["Q"][None], given["K"][None], given["V"][None], is_causal=causal)

    def flex(given: Tensors) -> Any:
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, m, m) if causal else None
        return _compiled(flex_attention)(given["Q"][None], given["K"][None], given["V"][None], block_mask=mask)

    return GpuProgram(
        label, _ATTENTION.format(h=h, m=m, kind=kind, scores=scores), {"SDPA": sdpa, "FlexAttention": flex}, work
    )


def _norm(after: Callable[[Any, Tensors], Any]) -> dict[str, Callable[[Tensors], Any]]:
    def eager(given: Tensors) -> Any:
        import torch

        x = given["X"]
        return after(torch.nn.functional.rms_norm(x, x.shape[-1:], given["g"], 1e-6), given)

    return {"eager (cuBLAS)": eager, "torch.compile": lambda given: _compiled(eager)(given)}


def _matmul(h: Any, given: Tensors) -> Any:
    return h @ given["W"]


def _swiglu(h: Any, given: Tensors) -> Any:
    import torch

    return (torch.nn.functional.silu(h @ given["W1"]) * (h @ given["W3"])) @ given["W2"]


_COMPILED: dict[Any, Any] = {}


def _compiled(function: Any) -> Any:
    """A function as torch.compile makes it, once."""
    import torch

    if function not in _COMPILED:
        _COMPILED[function] = torch.compile(function, mode="max-autotune-no-cudagraphs")
    return _COMPILED[function]
