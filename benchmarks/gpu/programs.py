"""The programs that are checked and timed on a GPU, in one place: their texts, extents, and the same in PyTorch.

Tests emulate them without a GPU: whole programs at three small sizes, block operators as they are here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

KINDS = ("bf16", "f16", "f32")

# One block operator each, at extents with a rest, so that a wrong one is named and not just a wrong program.
CONFORMANCE = {
    "copy": "input A[m, n] : TYPE; output Y[m, n] = A[m, n]",
    "copy of odd rows": "input A[m, o] : TYPE; output Y[m, o] = A[m, o]",
    "row sums": "input A[m, n] : TYPE; output Y[m] = sum[n](A[m, n])",
    "column sums": "input A[m, n] : TYPE; output Y[n] = sum[m](A[m, n])",
    "total": "input A[m, n] : TYPE; output y = max[m, n](A[m, n])",
    "product": "input A[m, k], B[k, n] : TYPE; output Y[m, n] = sum[k](A[m, k] * B[k, n])",
    "product of rows": "input A[m, k], B[n, k] : TYPE; output Y[m, n] = sum[k](A[m, k] * B[n, k])",
    "product of columns": "input A[k, m], B[k, n] : TYPE; output Y[m, n] = sum[k](A[k, m] * B[k, n])",
    "computed left operand": "input A[m, k], B[k, n] : TYPE; output Y[m, n] = sum[k](exp(A[m, k]) * B[k, n])",
    "functions": "input A[m, n] : TYPE; output Y[m, n] = exp(A[m, n]) + tanh(A[m, n]) + erf(A[m, n]) + sin(A[m, n])",
    "masks": "input A[m, n] : TYPE; output Y[m, n] = where(n <= m, A[m, n], 0)",
}

# Whole programs at the sizes of models.
MODEL_PROGRAMS = {
    "attention": """\
index m = 16384, n = 4096, d = 64, l = 64
input  Q[m, d], K[n, d], V[n, l] : TYPE
S[m, n] = sum[d](Q[m, d] * K[n, d]) / sqrt(size(d))
output O[m, l] = sum[n](softmax[n](S[m, n]) * V[n, l])
""",
    "layernorm_matmul": """\
index m = 1024, k = 1024, n = 1024
input  X[m, k] : TYPE
weight W[k, n], g[k], b[k] : TYPE
H[m, k] = layer_norm[k](X[m, k]) * g[k] + b[k]
output Y[m, n] = sum[k](H[m, k] * W[k, n])
""",
    "rmsnorm_swiglu": """\
index m = 4096, d = 1024, f = 2816, e = d
input  X[m, d] : TYPE
weight W1[d, f], W3[d, f], W2[f, e], g[d] : TYPE
H[m, d] = rms_norm[d](X[m, d], eps = 1e-6) * g[d]
G[m, f] = silu(sum[d](H[m, d] * W1[d, f])) * sum[d](H[m, d] * W3[d, f])
output Y[m, e] = sum[f](G[m, f] * W2[f, e])
""",
    "masked_attention": """\
index h = 8, m = 2048, n = m, d = 128, l = 128
def softcap(x, c) = c * tanh(x / c)
input  Q[h, m, d], K[h, n, d], V[h, n, l] : TYPE
S[h, m, n] = softcap(sum[d](Q[h, m, d] * K[h, n, d]) / sqrt(size(d)), 50)
C[h, m, n] = where(n < m and m - n < 100, S[h, m, n], -inf)
output O[h, m, l] = sum[n](softmax[n](C[h, m, n]) * V[h, n, l])
""",
    "grouped_query_attention": """\
index b = 2, h = 8, g = 2, m = 1024, n = 1024, d = 64, l = 64
input  Q[b, h, m, d], K[b, g, n, d], V[b, g, n, l] : TYPE
S[b, h, m, n] = sum[d](Q[b, h, m, d] * K[b, h / 4, n, d]) / sqrt(size(d))
output O[b, h, m, l] = sum[n](softmax[n](S[b, h, m, n]) * V[b, h / 4, n, l])
""",
    "rmsnorm_qkv": """\
index m = 2048, e = 1024, d = 128
input  X[m, e] : TYPE
weight WQ[e, d], WK[e, d], WV[e, d], g[e] : TYPE
H[m, e] = rms_norm[e](X[m, e], eps = 1e-6) * g[e]
output Q[m, d] = sum[e](H[m, e] * WQ[e, d])
output K[m, d] = sum[e](H[m, e] * WK[e, d])
output V[m, d] = sum[e](H[m, e] * WV[e, d])
""",
}
# Extents at which whole programs are checked: more than two blocks of each, and a rest.
_CHECKED_UP_TO = {"m": 333, "n": 331, "k": 328, "d": 296, "e": 296, "f": 328}
_REHEARSED_UP_TO = {"b": 1, "m": 33, "n": 35, "k": 40, "d": 40, "e": 40, "f": 40, "l": 24}

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
index m = {m}, d = {d}, n = {d}
input X[m, d] : {kind}
weight W[d, n], g[d] : {kind}
H[m, d] = rms_norm[d](X[m, d], eps = 1e-6) * g[d]
output Y[m, n] = sum[d](H[m, d] * W[d, n])
"""
_SWIGLU = """\
program rmsnorm_swiglu
index m = {m}, d = {d}, f = {f}, e = d
input X[m, d] : {kind}
weight W1[d, f], W3[d, f], W2[f, e], g[d] : {kind}
H[m, d] = rms_norm[d](X[m, d], eps = 1e-6) * g[d]
G[m, f] = silu(sum[d](H[m, d] * W1[d, f])) * sum[d](H[m, d] * W3[d, f])
output Y[m, e] = sum[f](G[m, f] * W2[f, e])
"""

type Tensors = Mapping[str, Any]


@dataclass(frozen=True)
class CheckedProgram:
    """A program in an element type, planned as its text says, run at extents up to `most`, emulated where small."""

    label: str
    text: str
    kind: str
    most: Mapping[str, int]
    is_small: bool


def conformance_programs() -> list[CheckedProgram]:
    """Every block operator in every type."""
    found: list[CheckedProgram] = []
    for kind in KINDS:
        for label, text in CONFORMANCE.items():
            statements = text.replace("TYPE", kind).split("; ")
            whole = "\n".join(["program p", "index m = 70, n = 72, k = 136, o = 37", *statements, ""])
            found.append(CheckedProgram(f"{label} {kind}", whole, kind, {}, True))
    return found


def checked_programs(rehearsal: bool = False) -> list[CheckedProgram]:
    """Whole programs in the types that tensor cores take; for a rehearsal small."""
    most = _REHEARSED_UP_TO if rehearsal else _CHECKED_UP_TO
    return [
        CheckedProgram(f"{name} {kind}", f"program {name}\n{text}".replace("TYPE", kind), kind, most, False)
        for kind in ("bf16", "f16")
        for name, text in MODEL_PROGRAMS.items()
    ]


@dataclass(frozen=True)
class TimedProgram:
    """`contenders` compute the same from PyTorch tensors on the device, by name; a name in capitals is a library's."""

    label: str
    text: str
    contenders: Mapping[str, Callable[[Tensors], Any]]
    flops: float


def timed_programs(rehearsal: bool = False, kind: str = "bf16") -> list[TimedProgram]:
    """What is timed: attention at 8k tokens, and norms with what follows them, for one row and for many.

    For a rehearsal all of it is small.
    """
    heads, tokens, d, f, rows = (2, 128, 128, 192, (1, 48)) if rehearsal else (16, 8192, 4096, 11008, (1, 4, 16, 4096))
    programs = [_attention(causal, kind, heads, tokens) for causal in (False, True)]
    for m in rows:
        text = _MATMUL.format(m=m, d=d, kind=kind)
        programs.append(TimedProgram(f"rmsnorm_matmul m={m}", text, _norm(_matmul), 2.0 * m * d**2))
        text = _SWIGLU.format(m=m, d=d, f=f, kind=kind)
        programs.append(TimedProgram(f"rmsnorm_swiglu m={m}", text, _norm(_swiglu), 6.0 * m * d * f))
    return programs


def _attention(causal: bool, kind: str, h: int, m: int) -> TimedProgram:
    scores = "where(n <= m, S[h, m, n], -inf)" if causal else "S[h, m, n]"
    label = f"attention{' causal' if causal else ''} m={m}"
    work = 4.0 * h * m * m * 128 * (0.5 if causal else 1.0)

    def sdpa(given: Tensors) -> Any:
        import torch

        function = torch.nn.functional.scaled_dot_product_attention
        return function(given["Q"][None], given["K"][None], given["V"][None], is_causal=causal)

    masks: dict[str, Any] = {}  # made once, as it would be for all layers of a model

    def flex(given: Tensors) -> Any:
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        if causal and "mask" not in masks:
            masks["mask"] = create_block_mask(lambda b, h, q, k: q >= k, None, None, m, m)
        queries, keys, values = (given[name][None] for name in "QKV")
        return _compiled(flex_attention)(queries, keys, values, block_mask=masks.get("mask"))

    return TimedProgram(
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
    """A function as torch.compile makes it, once. Trying out all forms takes it longer than all minutes there are."""
    import torch

    if function not in _COMPILED:
        _COMPILED[function] = torch.compile(function, dynamic=False)
    return _COMPILED[function]
