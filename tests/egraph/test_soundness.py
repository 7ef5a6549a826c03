"""Every member of every class has the value of the class: shipped rules, tried on whole programs.

For each class one small term stands for it; each node over such terms is evaluated in float64 and compared. Extents
are ragged, rows are hidden in part and in whole, and some are huge.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from bbrewrite.core.elements import Element
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.programs import BlockProgram
from bbrewrite.core.terms import Number, Term
from bbrewrite.core.types import BlockType, Typing
from bbrewrite.egraph.inline import inline
from bbrewrite.egraph.saturate import saturate
from bbrewrite.egraph.siblings import sibling_pairs
from bbrewrite.egraph.view import FrozenGraph
from bbrewrite.interpret.block_programs import TermValues
from bbrewrite.lower.lowering import lower
from bbrewrite.resources import resource_directory
from bbrewrite.rules.load import load_rules
from tests.array_programs import Arrays, draw_inputs, extents_of, program

SHIPPED = load_rules(resource_directory("rules"))

PROGRAMS = {
    "attention": """
        index m = 5, n = 7, d = 3, l = 4
        block m = 2, n = 3, d = 2, l = 3
        input Q[m, d], K[n, d], V[n, l] : f64
        S[m, n] = where(n <= m + 2 and m != 3, sum[d](Q[m, d] * K[n, d]) / sqrt(size(d)), -inf)
        output O[m, l] = sum[n](softmax[n](S[m, n]) * V[n, l])""",
    "attention by hand": """
        index m = 5, n = 7, d = 3, l = 4
        block m = 2, n = 3, d = 2, l = 3
        input Q[m, d], K[n, d], V[n, l] : f64
        S[m, n] = where(n <= m + 2 and m != 3, sum[d](Q[m, d] * K[n, d]), -inf)
        M[m] = max[n](S[m, n])
        E[m, n] = exp(S[m, n] - M[m])
        c[m] = sum[n](E[m, n])
        output O[m, l] = sum[n](E[m, n] / c[m] * V[n, l])""",
    "squared weights": """
        index m = 5, n = 7, l = 4
        block m = 2, n = 3, l = 3
        input S[m, n], V[n, l] : f64
        P[m, n] = softmax[n](S[m, n])
        output O[m, l] = sum[n](P[m, n]^2 * V[n, l])""",
    "softmax down the columns": """
        index m = 5, n = 7, l = 4
        block m = 2, n = 3, l = 3
        input S[m, n], V[m, l], U[l, m] : f64
        P[m, n] = softmax[m](where(n != 2, S[m, n], -inf))
        output O[n, l] = sum[m](P[m, n] * V[m, l])
        output R[l, n] = sum[m](P[m, n] * U[l, m])""",
    "softmax of vectors": """
        index b = 2, n = 7, l = 4
        block n = 3, l = 3
        input S[b, n], V[b, n, l] : f64
        P[b, n] = softmax[n](where(b == 0, S[b, n], -inf))
        output O[b, l] = sum[n](P[b, n] * V[b, n, l])""",
    "softmax of a vector by hand": """
        index n = 7, l = 4
        block n = 3, l = 3
        input S[n], V[n, l] : f64
        M = max[n](S[n])
        E[n] = exp(S[n] - M)
        c = sum[n](E[n])
        output O[l] = sum[n](E[n] / c * V[n, l])""",
    "logsumexp": """
        index m = 5, n = 7
        block m = 2, n = 3
        input S[m, n] : f64
        output L[m] = logsumexp[n](where(n <= m - 1, S[m, n], -inf))
        output P[m, n] = log_softmax[n](S[m, n])""",
    "layernorm": """
        index m = 5, k = 7, n = 4
        block m = 2, k = 3, n = 3
        input X[m, k] : f64
        weight W[k, n], g[k], b[k] : f64
        output Y[m, n] = sum[k]((layer_norm[k](X[m, k]) * g[k] + b[k]) * W[k, n])""",
    "swiglu": """
        index m = 5, d = 7, f = 6, e = d
        block m = 2, d = 3, f = 4, e = 3
        input X[m, d] : f64
        weight W1[d, f], W3[d, f], W2[f, e], g[d] : f64
        H[m, d] = rms_norm[d](X[m, d], eps = 1e-6) * g[d]
        G[m, f] = silu(sum[d](H[m, d] * W1[d, f])) * sum[d](H[m, d] * W3[d, f])
        output Y[m, e] = sum[f](G[m, f] * W2[f, e])""",
    "another name for the keys": """
        index m = 5, n = 7, t = n, l = 4
        block m = 2, n = 3, t = 3, l = 3
        input S[m, n], V[n, l] : f64
        P[m, n] = softmax[n](S[m, n])
        output O[m, l] = sum[t](P[m, t] * V[t, l])""",
    "self attention": """
        index m = 5, n = m, d = 3, e = 3
        block m = 2, n = 2, d = 2, e = 2
        input A[m, e] : f64
        weight W[d, e] : f64
        X[m, d] = sum[e](A[m, e] * W[d, e])
        output O[m, d] = sum[n](softmax[n](sum[d](X[m, d] * X[n, d])) * X[n, d])""",
    "scalars": """
        index m = 5, n = 7
        block m = 2, n = 3
        input A[m, n] : f64
        input lam : f64
        t = sum[m, n](A[m, n] * lam)
        output Y[m, n] = A[m, n] * t / lam
        output z = t + lam""",
    "narrow types": """
        index m = 5, n = 7
        block m = 2, n = 3
        input A[m, n] : f64
        input k[m] : i32
        B[m, n] : f64 = exp(A[m, n]) * k[m]
        output Y[m] = sum[n](B[m, n])""",
}


def lowered(text: str) -> tuple[BlockProgram, IndexTable, Arrays]:
    parsed = program(text)
    extents = extents_of(parsed)
    source = lower(parsed, SHIPPED.table)
    return source, source.indices.with_extents(extents), draw_inputs(parsed, extents)


def smallest_terms(graph: FrozenGraph) -> dict[int, Term]:
    """For each class a term of it, of least size."""
    best: dict[int, tuple[int, Term]] = {}
    changed = True
    while changed:
        changed = False
        for number, found in graph.classes.items():
            for node in found.nodes:
                if any(child not in best for child in node.children):
                    continue
                size = 1 + sum(best[child][0] for child in node.children)
                if number not in best or size < best[number][0]:
                    best[number] = (size, node.build(tuple(best[child][1] for child in node.children)))
                    changed = True
    return {number: term for number, (_, term) in best.items()}


def check_classes(source: BlockProgram, table: IndexTable, arrays: Mapping[str, np.ndarray], fast_math: bool) -> int:
    """Evaluates every node of every class of blocks; the number of nodes compared with another of their class."""
    inlined = inline(source)
    graph = saturate(
        inlined.roots,
        inlined.indices,
        source.tensors,
        source.assumptions,
        SHIPPED,
        siblings=sibling_pairs(source),
        fast_math=fast_math,
    )
    assert graph.report.stopped_by == "saturated"
    indices = inlined.indices.with_extents({i.name: i.extent for i in table if i.extent is not None})
    typing = Typing(SHIPPED.table, indices, source.tensors)
    known = TermValues(indices, source.tensors, arrays, SHIPPED.table)
    generator = np.random.default_rng(1)
    best = smallest_terms(graph)
    compared = 0
    for number, found in graph.classes.items():
        if len(found.nodes) < 2 or not isinstance(typing.of(best[number]), BlockType):
            continue
        for _ in range(3):
            point = {i.name: int(generator.integers(0, _positions(indices, i.name))) for i in indices}
            values = []
            for node in found.nodes:
                term = node.build(tuple(best[child] for child in node.children))
                if not isinstance(term, Number):
                    values.append(known.of(term, point))
            for node, value in zip(found.nodes[1:], values[1:], strict=True):
                np.testing.assert_allclose(value, values[0], rtol=1e-9, atol=1e-9, err_msg=str(node.head))
                compared += 1
    return compared


def _positions(indices: IndexTable, name: str) -> int:
    extent = indices.extent(name)
    assert extent is not None
    return -(-extent // (indices[name].block or 1))


@pytest.mark.parametrize("fast_math", [False, True], ids=["", "fast-math"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_members_of_a_class_have_one_value(name: str, fast_math: bool) -> None:
    source, table, arrays = lowered(PROGRAMS[name])
    assert check_classes(source, table, arrays, fast_math) > 0


@pytest.mark.parametrize("name", ["attention", "attention by hand", "another name for the keys"])
def test_products_with_softmax_become_online(name: str) -> None:
    source, _, _ = lowered(PROGRAMS[name])
    inlined = inline(source)
    graph = saturate(inlined.roots, inlined.indices, source.tensors, source.assumptions, SHIPPED)
    assert graph.report.rules_applied["online_rescaled_sum"] == 2


def test_hidden_and_huge_rows() -> None:
    source, table, arrays = lowered(PROGRAMS["squared weights"])
    arrays["S"][1, :] = -np.inf
    arrays["S"][2, 3:6] = -np.inf  # a whole block of it
    arrays["S"][3, :] *= 1e4
    assert check_classes(source, table, arrays, False) > 0


def test_elements_are_double() -> None:
    assert all(t.element in (Element.F64, Element.I32) for p in PROGRAMS.values() for t in program(p).inputs)
