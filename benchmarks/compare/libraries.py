"""The libraries that a user would call instead, each as fast as it goes: ONNX Runtime, OpenVINO, JAX, NumPy; PyTorch's
ways are in `torch_library.py`.

A builder takes a workload and the number of threads, and returns a contender, or None where the library has nothing
for it. A library that is not installed raises ImportError, which the caller reports. Weights are constants to every
library, which may lay them out ahead of calls; outputs go to memory that it reuses where it can.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.compare.contenders import Contender
from benchmarks.compare.torch_library import torch_compiled, torch_eager, torch_flex_attention
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


# JAX


def jax_jit(workload: Workload, threads: int) -> Contender | None:
    """The formulas under jax.jit, which takes all processors: where fewer are asked for it has no part."""
    if threads != os.cpu_count():
        return None
    import jax
    import jax.numpy as jnp

    kind = jnp.bfloat16 if workload.element == "bf16" else jnp.float32
    arrays = {name: jnp.asarray(array, kind) for name, array in (workload.inputs | workload.weights).items()}

    def value(given: dict[str, Any]) -> Any:
        if workload.is_attention:
            scores = given["Q"] @ given["K"].transpose(0, 2, 1) / math.sqrt(workload.shape[-1])
            if workload.kind == "softcap window attention":
                scores = SOFTCAP * jnp.tanh(scores / SOFTCAP)
            return jax.nn.softmax(jnp.where(workload.mask, scores, -jnp.inf), -1) @ given["V"]
        x = given["X"]
        if workload.kind == "rmsnorm swiglu":
            h = x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + EPSILON)
            return (jax.nn.silu(h @ given["W1"]) * (h @ given["W3"])) @ given["W2"]
        if workload.kind == "softmax":
            return jax.nn.softmax(x, -1)
        if "layernorm" in workload.kind:
            centred = x - x.mean(-1, keepdims=True)
            x = centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + EPSILON)
        return x @ given["W"] if "matmul" in workload.kind else x

    compiled = jax.jit(value)
    result: list[Any] = []

    def call() -> None:
        result[:] = [compiled(arrays).block_until_ready()]

    return Contender("jax", call, lambda: np.asarray(result[0]).astype(np.float32))


BUILDERS: dict[str, Builder] = {
    "numpy": numpy_expressions,
    "onnxruntime": onnxruntime_operators,
    "onnxruntime fused": onnxruntime_attention,
    "openvino": openvino,
    "torch": torch_eager,
    "torch compiled": torch_compiled,
    "torch flex": torch_flex_attention,
    "jax": jax_jit,
}
