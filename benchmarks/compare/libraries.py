"""The libraries that a user would call instead: ONNX Runtime, OpenVINO, PyTorch and NumPy, each as fast as it goes.

A builder takes a workload and the number of threads, and returns a contender, or None where the library has nothing
for it. A library that is not installed raises ImportError, which the caller reports. Weights are constants to every
library, which may lay them out ahead of calls; outputs go to memory that it reuses where it can.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.compare.contenders import Contender
from benchmarks.compare.workloads import EPSILON, SOFTCAP, WINDOW, Array, Workload

type Builder = Callable[[Workload, int], Contender | None]


def numpy_expressions(workload: Workload, threads: int) -> Contender | None:
    """The product alone: other rows are too slow to be worth the time."""
    if workload.kind != "matmul" or workload.element != "f32":
        return None
    X, W = workload.inputs["X"], workload.weights["W"]
    out = np.empty((X.shape[0], W.shape[1]), np.float32)
    return Contender("numpy", lambda: np.matmul(X, W, out=out), lambda: out)


# ONNX Runtime


def onnxruntime_operators(workload: Workload, threads: int) -> Contender | None:
    """Standard ONNX operators, which ONNX Runtime fuses where it knows how."""
    from onnx.helper import make_node as node

    if workload.element != "f32" or workload.kind == "softcap window attention":
        return None
    weights = dict(workload.weights)
    inputs = workload.inputs
    if workload.is_attention:
        inputs = {name: array[None] for name, array in inputs.items()}
        causal = int(workload.kind == "causal attention")
        nodes = [node("Attention", ["Q", "K", "V"], ["Y"], is_causal=causal)]
    elif workload.kind == "matmul":
        nodes = [node("MatMul", ["X", "W"], ["Y"])]
    elif workload.kind == "softmax":
        nodes = [node("Softmax", ["X"], ["Y"], axis=-1)]
    elif workload.kind == "rmsnorm swiglu":
        weights["scale"] = np.ones(workload.shape[1], np.float32)
        nodes = [
            node("SimplifiedLayerNormalization", ["X", "scale"], ["H"], axis=-1, epsilon=EPSILON),
            node("MatMul", ["H", "W1"], ["G"]),
            node("Sigmoid", ["G"], ["S"]),
            node("Mul", ["G", "S"], ["A"]),
            node("MatMul", ["H", "W3"], ["U"]),
            node("Mul", ["A", "U"], ["T"]),
            node("MatMul", ["T", "W2"], ["Y"]),
        ]
    else:
        weights["scale"] = np.ones(workload.shape[1], np.float32)
        last = workload.kind == "layernorm"
        nodes = [node("LayerNormalization", ["X", "scale"], ["Y" if last else "H"], axis=-1, epsilon=EPSILON)]
        nodes += [] if last else [node("MatMul", ["H", "W"], ["Y"])]
    return _onnx_session("onnxruntime", nodes, inputs, weights, workload.reference.shape, threads)


def onnxruntime_attention(workload: Workload, threads: int) -> Contender | None:
    """ONNX Runtime's own fused attention operators."""
    from onnx.helper import make_node as node

    if workload.element != "f32" or not workload.is_attention:
        return None
    heads, length, width = workload.shape
    inputs = {
        name: np.ascontiguousarray(array.transpose(1, 0, 2)).reshape(1, length, heads * width)
        for name, array in workload.inputs.items()
    }
    weights: dict[str, Array] = {}
    if workload.kind == "attention":
        nodes = [node("MultiHeadAttention", [*"QKV"], ["Y"], domain="com.microsoft", num_heads=heads)]
    else:
        empty = np.zeros((1, heads, 0, width), np.float32)
        weights = {"past_key": empty, "past_value": empty}
        weights |= {"last": np.array([length - 1], np.int32), "total": np.array([length], np.int32)}
        capped = workload.kind == "softcap window attention"
        nodes = [
            node(
                "GroupQueryAttention",
                [*"QKV", "past_key", "past_value", "last", "total"],
                ["Y", "key", "value"],
                domain="com.microsoft",
                num_heads=heads,
                kv_num_heads=heads,
                local_window_size=WINDOW if capped else -1,
                softcap=SOFTCAP if capped else 0.0,
            )
        ]
    shape = (1, length, heads * width)
    made = _onnx_session("onnxruntime fused", nodes, inputs, weights, shape, threads)
    fetch = made.fetch
    made.fetch = lambda: fetch().reshape(length, heads, width).transpose(1, 0, 2)
    return made


def _onnx_session(
    name: str,
    nodes: list[Any],
    inputs: dict[str, Array],
    weights: dict[str, Array],
    shape: tuple[int, ...],
    threads: int,
) -> Contender:
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    given = [helper.make_tensor_value_info(key, TensorProto.FLOAT, value.shape) for key, value in inputs.items()]
    made = [helper.make_tensor_value_info("Y", TensorProto.FLOAT, None)]
    constants = [numpy_helper.from_array(value, key) for key, value in weights.items()]
    graph = helper.make_graph(nodes, "graph", given, made, constants)
    sets = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=sets, ir_version=11)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    binding = session.io_binding()
    for key, value in inputs.items():
        binding.bind_cpu_input(key, value)
    # The first run tells the output's shape; later ones write to that memory again.
    binding.bind_output("Y")
    session.run_with_iobinding(binding)
    out = binding.get_outputs()[0]
    binding.bind_ortvalue_output("Y", out)
    return Contender(name, lambda: session.run_with_iobinding(binding), out.numpy)


# OpenVINO


def openvino(workload: Workload, threads: int) -> Contender | None:
    """OpenVINO's CPU device, for the lowest latency of one request."""
    import openvino as ov
    import openvino.opset13 as op

    kind = ov.Type.bf16 if workload.element == "bf16" else ov.Type.f32

    def constant(array: Any) -> Any:
        made = op.constant(np.asarray(array, np.float32))
        return op.convert(made, "bf16") if workload.element == "bf16" else made

    def tensor(array: Array) -> Any:
        if workload.element == "f32":
            return ov.Tensor(array, shared_memory=True)
        made = ov.Tensor(kind, ov.Shape(array.shape))
        made.data.view(np.uint16)[...] = workload.stored(array).view(np.uint16)
        return made

    last = op.constant(np.array([-1], np.int64))
    leading = (1,) if workload.is_attention else ()
    given = {name: array.reshape(*leading, *array.shape) for name, array in workload.inputs.items()}
    parameters = {name: op.parameter(array.shape, kind, name=name) for name, array in given.items()}
    weights = {name: constant(array) for name, array in workload.weights.items()}
    x = next(iter(parameters.values()))
    if workload.kind == "softcap window attention":
        scale = constant(workload.shape[-1] ** -0.5 / SOFTCAP)
        scores = op.multiply(op.matmul(parameters["Q"], parameters["K"], False, True), scale)
        masked = op.add(op.multiply(op.tanh(scores), constant(SOFTCAP)), constant(np.where(workload.mask, 0, -1e30)))
        y = op.matmul(op.softmax(masked, -1), parameters["V"], False, False)
    elif workload.is_attention:
        causal = workload.kind == "causal attention"
        y = op.scaled_dot_product_attention(*parameters.values(), causal=causal)
    elif workload.kind == "rmsnorm swiglu":
        mean = op.reduce_mean(op.power(x, constant(2)), last, True)
        h = op.multiply(x, op.divide(constant(1), op.sqrt(op.add(mean, constant(EPSILON)))))
        h = op.multiply(h, constant(np.ones((1, workload.shape[1]))))
        gate = op.swish(op.matmul(h, weights["W1"], False, False), constant(1))
        up = op.matmul(h, weights["W3"], False, False)
        y = op.matmul(op.multiply(gate, up), weights["W2"], False, False)
    elif workload.kind == "softmax":
        y = op.softmax(x, -1)
    else:
        y = op.mvn(x, last, True, EPSILON, "inside_sqrt") if "layernorm" in workload.kind else x
        y = op.matmul(y, weights["W"], False, False) if "matmul" in workload.kind else y
    configuration = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": workload.element,
        "ENABLE_CPU_PINNING": False,
    }
    model = ov.Model([y], list(parameters.values()), "model")
    request = ov.Core().compile_model(model, "CPU", configuration).create_infer_request()
    tensors = [tensor(array) for array in given.values()]
    for position, each in enumerate(tensors):
        request.set_input_tensor(position, each)

    def fetch() -> Array:
        out = request.get_output_tensor()
        if workload.element == "f32":
            return np.array(out.data)
        return (out.data.view(np.uint16).astype(np.uint32) << 16).view(np.float32)

    return Contender("openvino", request.infer, fetch)


# PyTorch


def torch_eager(workload: Workload, threads: int) -> Contender | None:
    """PyTorch's own functions, one after another; scaled_dot_product_attention for attention."""
    import torch
    import torch.nn.functional as functions

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    kind = torch.bfloat16 if workload.element == "bf16" else torch.float32
    arrays = {name: torch.from_numpy(array).to(kind) for name, array in (workload.inputs | workload.weights).items()}
    result: list[Any] = []

    def value() -> Any:
        if workload.kind == "softcap window attention":
            scores = arrays["Q"] @ arrays["K"].transpose(-1, -2) / math.sqrt(workload.shape[-1])
            capped = SOFTCAP * torch.tanh(scores / SOFTCAP)
            return torch.softmax(capped.masked_fill(~mask, -math.inf), -1) @ arrays["V"]
        if workload.is_attention:
            causal = workload.kind == "causal attention"
            q, k, v = (array[None] for array in arrays.values())
            return functions.scaled_dot_product_attention(q, k, v, is_causal=causal)
        x = arrays["X"]
        if workload.kind == "rmsnorm swiglu":
            h = functions.rms_norm(x, x.shape[-1:], eps=EPSILON)
            return (functions.silu(h @ arrays["W1"]) * (h @ arrays["W3"])) @ arrays["W2"]
        if workload.kind == "softmax":
            return torch.softmax(x, -1)
        if "layernorm" in workload.kind:
            x = functions.layer_norm(x, x.shape[-1:], eps=EPSILON)
        return x @ arrays["W"] if "matmul" in workload.kind else x

    mask = torch.from_numpy(workload.mask) if workload.kind == "softcap window attention" else None

    def call() -> None:
        result[:] = [value()]

    return Contender("torch", call, lambda: result[0].float().numpy())


def torch_flex_attention(workload: Workload, threads: int) -> Contender | None:
    """PyTorch's FlexAttention for masks, compiled, which passes over the blocks that a mask hides."""
    if not workload.is_attention or workload.kind == "attention":
        return None
    import torch
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    kind = torch.bfloat16 if workload.element == "bf16" else torch.float32
    q, k, v = (torch.from_numpy(array)[None].to(kind) for array in workload.inputs.values())
    capped = workload.kind == "softcap window attention"

    def seen(batch: Any, head: Any, query: Any, key: Any) -> Any:
        return (key <= query) & (query - key < WINDOW) if capped else key <= query

    def softcap(score: Any, batch: Any, head: Any, query: Any, key: Any) -> Any:
        return SOFTCAP * torch.tanh(score / SOFTCAP)

    length = workload.shape[1]
    mask = create_block_mask(seen, None, None, length, length, device="cpu")
    compiled: Any = torch.compile(flex_attention, dynamic=False)
    result: list[Any] = []

    def call() -> None:
        result[:] = [compiled(q, k, v, score_mod=softcap if capped else None, block_mask=mask)]

    return Contender("torch flex", call, lambda: result[0].float().numpy())


BUILDERS: dict[str, Builder] = {
    "numpy": numpy_expressions,
    "onnxruntime": onnxruntime_operators,
    "onnxruntime fused": onnxruntime_attention,
    "openvino": openvino,
    "torch": torch_eager,
    "torch flex": torch_flex_attention,
}
