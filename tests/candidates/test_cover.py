"""Large programs cut into candidates: what a cover must be, and that cutting changes no result."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bbrewrite.candidates.assemble import assemble
from bbrewrite.candidates.cover import Bounds
from bbrewrite.candidates.graph import OperatorGraph, is_cover
from bbrewrite.candidates.order import atoms_in_order
from bbrewrite.candidates.subprogram import class_key, make_candidate
from bbrewrite.codegen.cpp.program import print_programs
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.programs import BlockProgram
from bbrewrite.core.spans import Source
from bbrewrite.fusion import Fusion, fuse
from bbrewrite.inputs import draw_inputs
from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.lang.programs import parse_program
from bbrewrite.plan.plans import Plan
from bbrewrite.request import Request, make_request
from bbrewrite.resources import resource_directory
from bbrewrite.verify.exact import evaluate_exactly
from benchmarks.large_programs import (
    elementwise_chain,
    fan,
    random_graph,
    small_arrays,
    uneven_layers,
    written_out_decoder,
)
from tests.candidates.programs import random_network
from tests.plan.pipelines import shipped_rules

FEW_CASES = settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)

LAYERS = """\
program layers
index layer = {count}, m = 5, c = 6, e = c
input  X[m, c] : f32
weight W[layer, c, e], g[layer, c] : f32
repeat layer
    carry H[m, c] = X[m, c]
    A[m, c] = rms_norm[c](H[m, c]) * g[layer, c]
    P[m, c] = softmax[c](A[m, c])
    next H[m, e] = H[m, e] + {factor} * sum[c](P[m, c] * W[layer, c, e])
output Y[m, c] = H[m, c] * 2
"""


@cache
def fused(text: str, bounds: Bounds) -> Fusion:
    rules = shipped_rules()
    return fuse(make_request(parse_program(Source("test", text), rules.table), rules, threads=2), bounds=bounds)


def planned_alone(request: Request, part: BlockProgram) -> Plan:
    """The plan of a part of a request's program as one candidate."""
    extents = {index.name: index.extent for index in part.indices if index.extent is not None}
    alone = replace(request, program=part, blocks=part, extents=extents)
    return fuse(alone, bounds=Bounds(len(part.definitions))).fused


def check_result(fusion: Fusion, seed: int = 0) -> None:
    """Both forms agree with the reference."""
    check_plans(fusion.request, [fusion.unfused, fusion.fused], seed)


def check_plans(request: Request, plans: Sequence[Plan], seed: int) -> None:
    """Plans agree with the reference."""
    arrays = draw_inputs(request.program, request.extents, seed, {})
    expected = evaluate_exactly(request.program, arrays, request.extents, request.rules.table)
    for plan in plans:
        found = run_kernels(plan.kernels, arrays, request.extents, request.rules.table)
        for name, array in found.items():
            np.testing.assert_allclose(array, expected[name], rtol=2e-5, atol=2e-5)


@FEW_CASES
@given(st.integers(0, 1000), st.sampled_from([1, 2, 3, 5, 8, 14]))
def test_any_cover_is_convex_complete_and_in_order_and_gives_the_reference_result(seed: int, largest: int) -> None:
    fusion = fused(random_network(4, seed), Bounds(0, largest))
    check_result(fusion, seed)
    members = [chosen.candidate.members for chosen in fusion.cover]
    assert is_cover(OperatorGraph.of(fusion.request.blocks), members)
    assert all(len(candidate) <= largest for candidate in members)


@FEW_CASES
@given(st.integers(0, 1000), st.randoms(use_true_random=False))
def test_any_order_cut_anywhere_gives_the_reference_result(seed: int, draw: random.Random) -> None:
    """Not only the cuts that the search would make, and in any order in which operands come before their readers."""
    rules = shipped_rules()
    request = make_request(parse_program(Source("test", random_network(4, seed)), rules.table), rules, threads=2)
    blocks = replace(request.blocks, indices=request.blocks.indices.with_extents(request.extents))
    graph = OperatorGraph.of(blocks)
    order: list[int] = []
    while len(order) < len(graph.needed):
        ready = [p for p in sorted(graph.needed - set(order)) if set(graph.operands[p]) <= set(order)]
        order.append(draw.choice(ready))
    cuts = sorted(draw.sample(range(1, len(order)), draw.randint(0, min(3, len(order) - 1))))
    groups = [order[first:last] for first, last in pairwise([0, *cuts, len(order)])]
    assert is_cover(graph, groups)
    candidates = [make_candidate(blocks, graph, group) for group in groups]
    parts = [(candidate, planned_alone(request, candidate.program)) for candidate in candidates]
    check_plans(request, [assemble(blocks, parts)], seed)


@st.composite
def graphs(draw: st.DrawFn) -> OperatorGraph:
    """Graphs whose definitions read any earlier ones."""
    count = draw(st.integers(1, 9))
    operands = [draw(st.sets(st.integers(0, p - 1), max_size=3)) if p else set[int]() for p in range(count)]
    edges = {(operand, p) for p, found in enumerate(operands) for operand in found}
    subset = st.sets(st.integers(0, count - 1)).map(frozenset)
    sources = tuple(frozenset(f"t{operand}" for operand in found) for found in operands)
    fusible = frozenset(draw(st.sets(st.sampled_from(sorted(edges))))) if edges else frozenset[tuple[int, int]]()
    ordered = tuple(tuple(sorted(found)) for found in operands)
    return OperatorGraph(ordered, fusible, sources, draw(subset), draw(subset), draw(subset) | {count - 1})


def paths_leave_and_return(graph: OperatorGraph, members: Sequence[int]) -> bool:
    """The definition of what a convex set must not have, by walking every path."""
    inside = frozenset(members)

    def returns(position: int) -> bool:
        return any(user in inside or returns(user) for user in graph.users[position])

    return any(user not in inside and returns(user) for member in inside for user in graph.users[member])


@settings(max_examples=300, deadline=None, derandomize=True)
@given(graphs(), st.data())
def test_convex_is_what_no_path_leaves_and_reenters(graph: OperatorGraph, data: st.DataObject) -> None:
    members = sorted(data.draw(st.sets(st.integers(0, len(graph) - 1))))
    assert graph.is_convex(members) is not paths_leave_and_return(graph, members)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(graphs(), st.integers(1, 5), st.data())
def test_every_run_of_neighbouring_atoms_is_convex(graph: OperatorGraph, largest: int, data: st.DataObject) -> None:
    atoms = atoms_in_order(graph, largest)
    assert is_cover(graph, atoms)
    first = data.draw(st.integers(0, len(atoms) - 1))
    last = data.draw(st.integers(first, len(atoms) - 1))
    assert graph.is_convex([member for atom in atoms[first : last + 1] for member in atom])


def test_a_cover_out_of_order_or_with_a_gap_is_none() -> None:
    graph = OperatorGraph(((), (0,), (1,)), frozenset(), (frozenset(),) * 3, frozenset(), frozenset(), frozenset({2}))
    assert is_cover(graph, [(0,), (1, 2)])
    assert not is_cover(graph, [(1,), (0,), (2,)])
    assert not is_cover(graph, [(0, 2), (1,)])
    assert not is_cover(graph, [(0,), (2,)])
    assert not is_cover(graph, [(0,), (0, 1), (2,)])


def renamed(text: str) -> str:
    """The program under names that sort the other way round."""
    names = {"m": "zr", "c": "yc", "e": "xe", "f": "wf", "X": "kX", "W": "jW", "U": "iU", "D": "hD", "g": "gg"}
    text = re.sub(r"\b([A-Z])(\d+)\b", lambda found: f"q{found[1]}{1000 - int(found[2])}", text)
    return re.sub(r"\b(\w+)\b", lambda found: names.get(found[1], found[1]), text)


@pytest.mark.parametrize("seed", [1, 2])
def test_names_do_not_matter(seed: int) -> None:
    text = random_network(5, seed)
    one, other = fused(text, Bounds(0, 8)), fused(renamed(text), Bounds(0, 8))
    assert [c.candidate.members for c in one.cover] == [c.candidate.members for c in other.cover]
    assert one.after == other.after
    assert [c.candidate.key for c in one.cover] == [c.candidate.key for c in other.cover]


def layers(count: int, factor: str = "0.5") -> Fusion:
    return fused(LAYERS.format(count=count, factor=factor), Bounds(0, 8))


def test_layers_give_the_reference_result() -> None:
    check_result(layers(3, "where(layer == 1, 2, layer + 1)"))


def test_layers_are_planned_and_printed_once_however_many() -> None:
    few, many = layers(3), layers(5)
    assert len(many.classes) == len(few.classes)
    assert len(many.cover) > len(few.cover)
    table = few.request.rules.table
    sources = [print_programs([fusion.fused.kernels], table).text for fusion in (few, many)]
    assert sources[0].count("static void") == sources[1].count("static void") < len(few.fused.kernels.kernels)


def test_layers_written_out_are_the_layers_that_repeat_makes() -> None:
    lines = ["program layers", "index layer = 3, m = 5, c = 6, e = c", "input X[m, c] : f32"]
    lines += ["weight W[layer, c, e], g[layer, c] : f32"]
    for k, value in enumerate(["X", "H0", "H1"]):
        lines.append(f"A{k}[m, c] = rms_norm[c]({value}[m, c]) * g[{k}, c]")
        lines.append(f"P{k}[m, c] = softmax[c](A{k}[m, c])")
        lines.append(f"H{k}[m, e] = {value}[m, e] + 0.5 * sum[c](P{k}[m, c] * W[{k}, c, e])")
    written = fused("\n".join([*lines, "output Y[m, c] = H2[m, c] * 2"]) + "\n", Bounds(0, 8))
    assert [chosen.candidate.key for chosen in written.cover] == [chosen.candidate.key for chosen in layers(3).cover]
    assert written.after == layers(3).after


LARGE = {
    "random graph": random_graph(6, 1),
    "small arrays": small_arrays(5, 1),
    "elementwise chain": elementwise_chain(7, 3, 1),
    "fan": fan(2, 3),
    "uneven layers": uneven_layers(2),
}


@pytest.mark.parametrize("kind", LARGE)
def test_kinds_of_large_programs_give_the_reference_result(kind: str) -> None:
    fusion = fused(LARGE[kind], Bounds(0, 5))
    assert len(fusion.cover) > 1
    check_result(fusion)


LATER_PRODUCTS = """\
program products
index m = 5, c = 6, e = c
input X[m, c] : f32
weight W[c, e], V[c, e] : f32
A[m, e] = sum[c](X[m, c] * W[c, e])
output Y[m, e] = sum[c](tanh(A[m, c]) * V[c, e])
output Z[m, c] = X[m, c] * 2
"""


@pytest.mark.parametrize("text", [*LARGE.values(), LATER_PRODUCTS], ids=[*LARGE, "products"])
def test_the_fused_program_of_all_candidates_parses_back(text: str) -> None:
    fusion = fused(text, Bounds(0, 5))
    assert parse_program(Source("fused", fusion.text), shipped_rules().table) == fusion.fused.fused


def test_the_decoder_written_out_is_the_example_with_its_layers_repeated() -> None:
    text = (resource_directory("rules").parent / "examples/decoder.bb").read_text(encoding="utf-8")
    repeated, written = (
        make_request(parse_program(Source("test", text), shipped_rules().table), shipped_rules(), threads=2).blocks
        for text in (text.replace("layer = 32", "layer = 2"), written_out_decoder(2))
    )
    keys = [
        [make_candidate(blocks, graph, [position]).key for position in sorted(graph.needed)]
        for blocks, graph in ((blocks, OperatorGraph.of(blocks)) for blocks in (repeated, written))
    ]
    assert keys[0] == keys[1]


def test_no_layers_at_all_pass_the_first_value_on() -> None:
    fusion = fused(LAYERS.format(count=0, factor="1"), Bounds())
    assert not fusion.cover
    check_result(fusion)


def test_a_block_size_that_the_user_chose_makes_a_class_of_its_own() -> None:
    blocks = layers(3).request.blocks
    chosen = replace(blocks, indices=IndexTable.of([replace(index, block_is_fixed=True) for index in blocks.indices]))
    assert chosen == blocks
    assert class_key(chosen) != class_key(blocks)


def test_small_programs_are_one_candidate() -> None:
    fusion = fused(random_network(2, 3), Bounds())
    assert not fusion.cover
    assert fusion.classes == (fusion,)


@pytest.mark.slow
def test_a_thousand_operators() -> None:
    fusion = fused(random_network(520, 7, "m = 128, c = 256, e = c, f = 512"), Bounds())
    assert len(fusion.request.blocks.definitions) > 1000
    members = [chosen.candidate.members for chosen in fusion.cover]
    assert is_cover(OperatorGraph.of(fusion.request.blocks), members)
    assert len(fusion.classes) < len(fusion.cover)
    assert fusion.after.kernels < fusion.before.kernels / 2
