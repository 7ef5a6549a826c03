"""Random programs of many operators as text: chains and residual blocks of linear, norm, softmax and elementwise."""

from __future__ import annotations

import random


def random_network(operators: int, seed: int, extents: str = "m = 5, c = 6, e = c, f = 7") -> str:
    """A program of about so many definitions over rows m and columns c, with a hidden extent f."""
    draw = random.Random(seed)
    lines = ["program network", f"index {extents}", "input X[m, c] : f32"]
    lines += ["weight W[c, e], U[c, f], D[f, e], g[c] : f32"]
    value, count = "X", 0

    def define(name: str, indices: str, body: str, after: str = "") -> str:
        nonlocal count
        count += 1
        lines.append(f"{after}{name}{count}[{indices}] = {body}")
        return f"{name}{count}"

    while count < operators:
        kind = draw.choice(["norm", "linear", "softmax", "elementwise", "gated", "residual"])
        if kind == "norm":
            value = define("N", "m, c", f"rms_norm[c]({value}[m, c]) * g[c]")
        elif kind == "linear":
            value = define("L", "m, e", f"sum[c]({value}[m, c] * W[c, e]) / 4")
        elif kind == "softmax":
            value = define("P", "m, c", f"softmax[c]({value}[m, c])")
        elif kind == "elementwise":
            body = draw.choice(["tanh({})", "relu({}) - 0.5", "sigmoid({})", "{} * 0.5"])
            value = define("T", "m, c", body.format(f"{value}[m, c]"))
        elif kind == "gated":
            hidden = define("G", "m, f", f"silu(sum[c]({value}[m, c] * U[c, f]) / 4)")
            value = define("M", "m, e", f"{value}[m, e] + sum[f]({hidden}[m, f] * D[f, e]) / 4")
        else:
            inner = define("R", "m, c", f"layer_norm[c]({value}[m, c])")
            value = define("S", "m, e", f"{value}[m, e] + sum[c]({inner}[m, c] * W[c, e]) / 4")
    define("Y", "m, c", f"{value}[m, c]", "output ")
    return "\n".join(lines) + "\n"
