"""Random array programs as text: well-typed, with values that stay tame, so that results can be compared closely.

Conditions compare only positions and inputs with numbers: a comparison of computed values may fall either way where
they are equal but for rounding.
"""

from __future__ import annotations

from hypothesis import strategies as st

INPUTS = {"A": "mk", "B": "kn", "C": "mn", "T": "mnk", "u": "m", "v": "n", "w": "k", "z": ""}
DECLARATIONS = "input " + ", ".join(f"{t}[{', '.join(i)}]" if i else t for t, i in INPUTS.items()) + " : f64"
ALIASES = {"m": "mj", "n": "n", "k": "k"}  # index j has the extent of m
REDUCTIONS = ("sum", "sum", "sum", "max", "min", "mean", "prod")
SHAPED = ("softmax", "log_softmax", "layer_norm", "rms_norm")
REDUCED = ("logsumexp", "variance")


def programs() -> st.SearchStrategy[str]:
    """Texts of programs with one or two definitions before the output."""
    return st.composite(_program)()


def _program(draw: st.DrawFn) -> str:
    extents = st.sampled_from([0, 1, 2, 3, 5, 6, 7, 9])
    m, n, k = draw(extents), draw(extents), draw(extents)
    lines = [f"index m = {m}, n = {n}, k = {k}, j = m", DECLARATIONS]
    tensors = dict(INPUTS)
    for name, role in (("S", ""), ("P", ""), ("O", "output ")):
        indices = draw(st.sampled_from(["mn", "nm", "mk", "m", "n", "", "mnk", "jk", "jm"]))
        body = _expression(draw, indices, 3, tensors)
        lines.append(f"{role}{name}{_subscript(list(indices))} : f64 = {body}")
        tensors[name] = indices.replace("j", "m")
    return "\n".join(lines)


def _subscript(addresses: list[str]) -> str:
    return f"[{', '.join(addresses)}]" if addresses else ""


def _expression(draw: st.DrawFn, scope: str, depth: int, tensors: dict[str, str]) -> str:
    if depth == 0:
        return _leaf(draw, scope, tensors)
    inner = depth - 1
    form = draw(st.sampled_from(["leaf", "unary", "binary", "binary", "where", "fold", "fold", "product", "library"]))
    if form == "leaf":
        return _leaf(draw, scope, tensors)
    if form == "unary":
        shape = draw(st.sampled_from(["tanh({})", "-({})", "abs({})", "relu({})", "sqrt(abs({}))", "sigmoid({})"]))
        return shape.format(_expression(draw, scope, inner, tensors))
    if form == "binary":
        shapes = ["({}) + ({})", "({}) - ({})", "({}) * ({})", "({}) / (2 + abs({}))", "maximum({}, {})"]
        shape = draw(st.sampled_from(shapes))
        return shape.format(*(_expression(draw, scope, inner, tensors) for _ in range(2)))
    if form == "where":
        condition = _condition(draw, scope)
        return f"where({condition}, {_expression(draw, scope, inner, tensors)}, {_leaf(draw, scope, tensors)})"
    bound = draw(st.sampled_from(["m", "n", "k", "j", "kn", "mk"]))
    inside = "".join(dict.fromkeys(scope + bound))
    names = ", ".join(bound)
    if form == "fold":
        body = _expression(draw, inside, inner, tensors)
        return f"{draw(st.sampled_from(REDUCTIONS))}[{names}](tanh({body}))"
    if form == "product":
        factors = [_leaf(draw, inside, tensors) for _ in range(draw(st.integers(2, 4)))]
        body = " * ".join(f"({factor})" for factor in factors)
        return f"sum[{names}]({body} / (1 + abs({_leaf(draw, inside, tensors)})))"
    functions = SHAPED if set(bound) <= set(scope) else REDUCED
    return f"{draw(st.sampled_from(functions))}[{names}]({_expression(draw, inside, inner, tensors)})"


def _leaf(draw: st.DrawFn, scope: str, tensors: dict[str, str]) -> str:
    usable = [t for t, indices in tensors.items() if all(_names_for(i, scope) for i in indices)]
    choices = [*usable, *usable, "number", "size"] + (["position"] if scope else [])
    choice = draw(st.sampled_from(choices))
    if choice == "number":
        return draw(st.sampled_from(["0.5", "2", "3", "1 / 3"]))
    if choice == "size":
        return f"sqrt(size({draw(st.sampled_from('mnk'))}))"
    if choice == "position":
        return f"({draw(st.sampled_from(scope))} / 4)"
    addresses = [_address(draw, index, scope) for index in tensors[choice]]
    read = f"{choice}{_subscript(addresses)}"
    return f"tanh({read})" if choice not in INPUTS else read


def _names_for(index: str, scope: str) -> str:
    return "".join(name for name in ALIASES[index] if name in scope)


def _address(draw: st.DrawFn, index: str, scope: str) -> str:
    name = draw(st.sampled_from(_names_for(index, scope)))
    return draw(st.sampled_from([name, name, name, f"size({name}) - 1 - {name}", f"{name} / 2"]))


def _condition(draw: st.DrawFn, scope: str) -> str:
    if len(scope) < 2:
        return f"{scope} < 2" if scope else "z > 0"
    a, b = draw(st.permutations(scope))[:2]
    return draw(st.sampled_from([f"{a} <= {b}", f"{a} - {b} < 2", f"{a} + {b} < 5 and {a} > 0", f"not {a} == {b}"]))
