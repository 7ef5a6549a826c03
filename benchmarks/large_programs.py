"""Large programs as text, of several kinds: what planning must get through in a minute at a thousand operators.

Each kind stresses another thing: equal layers are one class of candidates, layers of different extents are none of
them alike, random graphs hold values for readers far away, of small arrays only launches count, chains give few places
to cut, and a fan gives many definitions one operand. Random kinds are the same for one seed everywhere. Nothing is
planned here.
"""

from __future__ import annotations

import random

_ELEMENTWISE = ("tanh({})", "relu({}) - 0.5", "sigmoid({})", "{} * 0.5", "exp(-abs({}))", "{} + 1")

_SMALL = (
    "tanh({one}[m, c]) + {other}[m, c]",
    "{one}[m, c] * sigmoid({other}[m, c])",
    "({one}[m, c] - {other}[m, c]) * 0.5",
    "sum[e]({one}[m, e] * W[c, e]) / 4 + {other}[m, c]",
    "softmax[c]({one}[m, c] + {other}[m, c])",
    "rms_norm[c]({one}[m, c]) * g[c] + {other}[m, c]",
    "{one}[m, c] / (1 + sum[e](abs({other}[m, e])))",
    "relu({one}[m, c]) + max[e]({other}[m, e])",
    "layer_norm[c]({one}[m, c]) * {other}[m, c]",
    "where({one}[m, c] > 0, {one}[m, c], {other}[m, c] * 0.1)",
)

_DECODER = """\
program written_out
index layer = {layers}, m = 64, n = m, c = 128, e = c, h = 4, g = 2, s = 2, r = 16, l = 32, f = 352
input  X[m, c] : f32
weight g1[layer, c], Wq[layer, c, h, s, r], Wk[layer, c, g, s, r], Wv[layer, c, g, l], Wo[layer, h, l, e] : f32
weight g2[layer, c], W1[layer, c, f], W3[layer, c, f], W2[layer, f, e], g3[c] : f32
def angle[r](position) = position * exp(-log(10000) * r / size(r))
"""

_DECODER_LAYER = """\
A{k}[m, c] = rms_norm[c]({before}[m, c]) * g1[{k}, c]
Q{k}[h, s, m, r] = sum[c](A{k}[m, c] * Wq[{k}, c, h, s, r])
K{k}[g, s, m, r] = sum[c](A{k}[m, c] * Wk[{k}, c, g, s, r])
V{k}[g, m, l] = sum[c](A{k}[m, c] * Wv[{k}, c, g, l])
QR{k}[h, s, m, r] = Q{k}[h, s, m, r] * cos(angle[r](m)) \
+ where(s == 0, -1, 1) * Q{k}[h, 1 - s, m, r] * sin(angle[r](m))
KR{k}[g, s, m, r] = K{k}[g, s, m, r] * cos(angle[r](m)) \
+ where(s == 0, -1, 1) * K{k}[g, 1 - s, m, r] * sin(angle[r](m))
S{k}[h, m, n] = sum[s, r](QR{k}[h, s, m, r] * KR{k}[h / 2, s, n, r]) / sqrt(2 * size(r))
P{k}[h, m, n] = softmax[n](where(n <= m, S{k}[h, m, n], -inf))
O{k}[h, m, l] = sum[n](P{k}[h, m, n] * V{k}[h / 2, n, l])
Y{k}[m, e] = {before}[m, e] + sum[h, l](O{k}[h, m, l] * Wo[{k}, h, l, e])
B{k}[m, c] = rms_norm[c](Y{k}[m, c]) * g2[{k}, c]
G{k}[m, f] = silu(sum[c](B{k}[m, c] * W1[{k}, c, f])) * sum[c](B{k}[m, c] * W3[{k}, c, f])
H{k}[m, e] = Y{k}[m, e] + sum[f](G{k}[m, f] * W2[{k}, f, e])
"""


def written_out_decoder(layers: int) -> str:
    """The decoder of the examples without `repeat`: every layer's text, on the weights of that layer."""
    text, value = _DECODER.format(layers=layers), "X"
    for k in range(layers):
        text += _DECODER_LAYER.format(k=k, before=value)
        value = f"H{k}"
    return f"{text}output Z[m, c] = rms_norm[c]({value}[m, c]) * g3[c]\n"


def uneven_layers(layers: int) -> str:
    """Gated layers with a residual, each of another hidden extent, so that no two are alike."""
    hidden = ", ".join(f"w{k} = {128 + 8 * k}" for k in range(layers))
    lines = ["program uneven_layers", f"index m = 128, c = 256, e = c, {hidden}", "input X[m, c] : f32"]
    value = "X"
    for k in range(layers):
        lines += [
            f"weight U{k}[c, w{k}], D{k}[w{k}, e] : f32",
            f"N{k}[m, c] = rms_norm[c]({value}[m, c])",
            f"G{k}[m, w{k}] = silu(sum[c](N{k}[m, c] * U{k}[c, w{k}]))",
            f"H{k}[m, e] = {value}[m, e] + sum[w{k}](G{k}[m, w{k}] * D{k}[w{k}, e])",
        ]
        value = f"H{k}"
    return "\n".join([*lines, f"output Y[m, c] = {value}[m, c] * 0.5"]) + "\n"


def random_graph(definitions: int, seed: int, outputs: int = 3) -> str:
    """A directed acyclic graph of mixed operators over rows, with several outputs; readers may be far away."""
    draw = random.Random(seed)
    lines = _heading("random_graph")
    values = ["X"]
    for number in range(definitions):
        one, other = draw.choice(values[-4:]), draw.choice(values[-12:])
        kind = draw.choice(["linear", "norm", "softmax", "sum", "elementwise", "elementwise"])
        elementwise = draw.choice(_ELEMENTWISE).format(f"{one}[m, c]")
        body = {
            "linear": f"sum[e]({one}[m, e] * W[c, e]) / 16",
            "norm": f"rms_norm[c]({one}[m, c])",
            "softmax": f"softmax[c]({one}[m, c])",
            "sum": f"{one}[m, c] * 0.5 + {other}[m, c]",
            "elementwise": elementwise,
        }[kind]
        lines.append(f"T{number}[m, c] = {body}")
        values.append(f"T{number}")
    used = values[-outputs:]
    return "\n".join([*lines, *(f"output Y{k}[m, c] = {value}[m, c] * 2" for k, value in enumerate(used))]) + "\n"


def small_arrays(definitions: int, seed: int) -> str:
    """Mixed operators over arrays so small that launches cost more than work; each reads two of the last values."""
    draw = random.Random(seed)
    lines = ["program small_arrays", "index m = 24, c = 16, e = c", "input X[m, c] : f32", "weight W[c, e], g[c] : f32"]
    values = ["X"]
    for number in range(definitions):
        one, other = draw.choice(values[-3:]), draw.choice(values[-6:])
        body = draw.choice(_SMALL).format(one=one, other=other)
        lines.append(f"T{number}[m, c] = {body}")
        values.append(f"T{number}")
    used = values[-3:]
    return "\n".join([*lines, *(f"output Y{k}[m, c] = {value}[m, c] * 2" for k, value in enumerate(used))]) + "\n"


def elementwise_chain(definitions: int, product_every: int, seed: int) -> str:
    """A chain of elementwise operators with a matrix product every few of them."""
    draw = random.Random(seed)
    lines, value = _heading("elementwise_chain"), "X"
    for number in range(definitions):
        is_product = number % product_every == product_every - 1
        elementwise = draw.choice(_ELEMENTWISE).format(f"{value}[m, c]")
        body = f"sum[e]({value}[m, e] * W[c, e]) / 16" if is_product else elementwise
        lines.append(f"T{number}[m, c] = {body}")
        value = f"T{number}"
    return "\n".join([*lines, f"output Y[m, c] = {value}[m, c] * 2"]) + "\n"


def fan(stages: int, width: int) -> str:
    """Stages in which many products read one value, and one value sums them up again."""
    lines, value = _heading("fan"), "X"
    for stage in range(stages):
        branches = [f"B{stage}_{branch}" for branch in range(width)]
        for branch, name in enumerate(branches):
            lines.append(f"{name}[m, c] = tanh(sum[e]({value}[m, e] * W[c, e]) / {16 + branch})")
        lines.append(f"S{stage}[m, c] = " + " + ".join(f"{name}[m, c]" for name in branches))
        value = f"S{stage}"
    return "\n".join([*lines, f"output Y[m, c] = {value}[m, c] * 0.5"]) + "\n"


def _heading(name: str) -> list[str]:
    return [f"program {name}", "index m = 128, c = 256, e = c", "input X[m, c] : f32", "weight W[c, e] : f32"]
