"""PyTorch as a contender: its functions one after another, compiled as a whole, and FlexAttention."""

from __future__ import annotations

import math
from contextlib import redirect_stderr
from io import StringIO
from typing import Any

from benchmarks.compare.contenders import Contender
from benchmarks.compare.workloads import EPSILON, SOFTCAP, WINDOW, Workload


def torch_eager(workload: Workload, threads: int) -> Contender:
    """PyTorch's own functions; scaled_dot_product_attention for attention."""
    module, inputs = _module(workload, threads)
    return _contender("torch", module, inputs)


def torch_compiled(workload: Workload, threads: int) -> Contender:
    """torch.compile at its slowest and best: products tuned, weights frozen and packed."""
    import torch
    import torch._inductor.config as options

    module, inputs = _module(workload, threads)
    torch._dynamo.reset()
    compiled = torch.compile(module, dynamic=False)
    # The options are read while the first call compiles; what it tells of its choices is no row of ours.
    chosen = options.patch(max_autotune=True, freezing=True, max_autotune_gemm_backends="CPP,ATEN")
    with chosen, redirect_stderr(StringIO()):
        compiled(*inputs)
    return _contender("torch compiled", compiled, inputs)


def torch_flex_attention(workload: Workload, threads: int) -> Contender | None:
    """PyTorch's FlexAttention for masks, compiled, which passes over the blocks that a mask hides."""
    if not workload.is_attention or workload.kind == "attention":
        return None
    import torch
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    _, inputs = _module(workload, threads)
    torch._dynamo.reset()
    capped = workload.kind == "softcap window attention"

    def seen(batch: Any, head: Any, query: Any, key: Any) -> Any:
        return (key <= query) & (query - key < WINDOW) if capped else key <= query

    def softcap(score: Any, batch: Any, head: Any, query: Any, key: Any) -> Any:
        return SOFTCAP * torch.tanh(score / SOFTCAP)

    length = workload.shape[1]
    mask = create_block_mask(seen, None, None, length, length, device="cpu")
    compiled: Any = torch.compile(flex_attention, dynamic=False)

    def attend(*given: Any) -> Any:
        return compiled(*given, score_mod=softcap if capped else None, block_mask=mask)

    return _contender("torch flex", attend, inputs)


def _contender(name: str, function: Any, inputs: list[Any]) -> Contender:
    result: list[Any] = []

    def call() -> None:
        result[:] = [function(*inputs)]

    return Contender(name, call, lambda: result[0].float().numpy())


def _module(workload: Workload, threads: int) -> tuple[Any, list[Any]]:
    """The workload as a module, so that its weights are known to be constant, and the arrays to call it with."""
    import torch
    import torch.nn.functional as functions

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    kind = torch.bfloat16 if workload.element == "bf16" else torch.float32

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name, array in workload.weights.items():
                setattr(self, name, torch.nn.Parameter(torch.from_numpy(array).to(kind), requires_grad=False))
            if workload.kind == "softcap window attention":
                self.register_buffer("mask", torch.from_numpy(workload.mask))

        def forward(self, *given: Any) -> Any:
            if workload.kind == "softcap window attention":
                q, k, v = given
                scores = SOFTCAP * torch.tanh(q @ k.transpose(-1, -2) / (math.sqrt(workload.shape[-1]) * SOFTCAP))
                return torch.softmax(scores.masked_fill(~self.mask, -math.inf), -1) @ v
            if workload.is_attention:
                return functions.scaled_dot_product_attention(*given, is_causal=workload.kind == "causal attention")
            (x,) = given
            if workload.kind == "rmsnorm swiglu":
                h = functions.rms_norm(x, x.shape[-1:], eps=EPSILON)
                return (functions.silu(h @ self.W1) * (h @ self.W3)) @ self.W2
            if workload.kind == "softmax":
                return torch.softmax(x, -1)
            if "layernorm" in workload.kind:
                x = functions.layer_norm(x, x.shape[-1:], eps=EPSILON)
            return x @ self.W if "matmul" in workload.kind else x

    arrays = [torch.from_numpy(array).to(kind) for array in workload.inputs.values()]
    return Module().eval(), [array[None] for array in arrays] if workload.is_attention else arrays
