"""The three headline programs: the fused form is in the root's class, by the rules and by nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bbrewrite.core.operators import builtin_table
from bbrewrite.core.programs import BlockProgram
from bbrewrite.core.terms import At, Map, Reduce, Size, Term, walk
from bbrewrite.egraph.inline import inline
from bbrewrite.egraph.saturate import saturate
from bbrewrite.egraph.siblings import sibling_pairs
from bbrewrite.egraph.view import FrozenGraph
from bbrewrite.resources import resource_directory
from bbrewrite.rules.load import load_rules
from bbrewrite.rules.rules import RuleSet
from tests import programs
from tests.egraph.search import contains
from tests.programs import apply, read, safe_shift, total

SHIPPED = load_rules(resource_directory("rules"))


def saturated(program: BlockProgram, rules: RuleSet = SHIPPED, fast_math: bool = False) -> FrozenGraph:
    inlined = inline(program)
    return saturate(
        inlined.roots,
        inlined.indices,
        program.tensors,
        program.assumptions,
        rules,
        siblings=sibling_pairs(program),
        fast_math=fast_math,
    )


def without(*names: str) -> RuleSet:
    return RuleSet(tuple(rule for rule in SHIPPED.rules if rule.name not in names), SHIPPED.table)


def over(names: str, body: Term) -> Term:
    for index in reversed(names.split()):
        body = Map(index, body)
    return body


def fused_attention(guarded: bool = True, squared: bool = False) -> Term:
    """One loop over n that carries the maximum, the denominator and the product."""
    scores = apply(
        "divide", total("d", apply("dot", read("Q", "m", "d"), read("K", "n", "d"))), apply("sqrt", Size("d"))
    )
    block_max = apply("row_max", scores)
    exponentials = apply("exp", apply("row_shift", scores, safe_shift(block_max)))
    values = apply("transpose", read("V", "n", "l"))
    denominator: Term = Reduce("rescaled_sum", "n", (block_max, apply("row_sum", exponentials)))
    if squared:
        squares = apply("dot", apply("multiply", exponentials, exponentials), values)
        product: Term = Reduce("twice_rescaled_sum", "n", (block_max, squares))
    else:
        product = Reduce("rescaled_sum", "n", (block_max, apply("dot", exponentials, values)))
    if not guarded:
        visible = apply("one_if_visible", total("n", block_max, "max"))
        denominator = apply("row_scale", denominator, visible)
        product = apply("row_scale", product, visible)
        return over("m l", apply("row_scale", product, apply("recip", denominator)))
    safe = apply("where", apply("equal", denominator, 0), 0, apply("recip", denominator))
    result = apply("row_scale", product, safe)
    return over("m l", apply("row_scale", result, safe) if squared else result)


def fused_layernorm() -> Term:
    """Passes over k for the mean, the variance and the product, the scale applied to the product."""
    x = read("X", "m", "k")
    mean = apply("divide", total("k", apply("row_sum", x)), Size("k"))
    shifted = apply("row_shift", x, apply("negate", mean))
    square = apply("divide", total("k", apply("row_sum", apply("multiply", shifted, shifted))), Size("k"))
    scale = apply("rsqrt", apply("add", square, 1e-5))
    weights = apply("transpose", read("W", "k", "n"))
    return over("m n", apply("row_scale", total("k", apply("dot", shifted, weights)), scale))


def fast_layernorm() -> Term:
    """The product of the raw operand, corrected by an outer product."""
    x = read("X", "m", "k")
    mean = apply("divide", total("k", apply("row_sum", x)), Size("k"))
    shifted = apply("row_shift", x, apply("negate", mean))
    square = apply("divide", total("k", apply("row_sum", apply("multiply", shifted, shifted))), Size("k"))
    scale = apply("rsqrt", apply("add", square, 1e-5))
    weights = apply("transpose", read("W", "k", "n"))
    product = total("k", apply("dot", x, weights))
    correction = apply("outer", apply("negate", mean), total("k", apply("row_sum", weights)))
    return over("m n", apply("row_scale", apply("add", product, correction), scale))


def fused_swiglu() -> Term:
    """For each block of f one pass over d makes both products; the third is accumulated."""
    x = read("X", "m", "d")
    square = apply("divide", total("d", apply("row_sum", apply("multiply", x, x))), Size("d"))
    scale = apply("rsqrt", apply("add", square, 1e-6))
    gained = apply("col_scale", x, read("g", "d"))

    def product(weight: str) -> Term:
        found = total("d", apply("dot", gained, apply("transpose", read(weight, "d", "f"))))
        return apply("row_scale", found, scale)

    gate = apply("multiply", apply("silu", product("W1")), product("W3"))
    return over("m e", total("f", apply("dot", gate, apply("transpose", read("W2", "f", "e")))))


CASES: list[tuple[str, Callable[[], BlockProgram], str, Callable[[], Term], tuple[str, ...]]] = [
    (
        "attention",
        programs.attention,
        "O",
        fused_attention,
        (
            "fuse_consecutive_maps",
            "swap_scale_and_dot",
            "swap_scale_and_row_sum",
            "hoist_scale_out_of_sum",
            "rebase_exponential",
            "online_rescaled_sum",
        ),
    ),
    (
        "attention by hand",
        lambda: programs.attention(guarded=False),
        "O",
        lambda: fused_attention(guarded=False),
        ("guard_exponential", "rebase_exponential", "online_rescaled_sum", "hoist_scale_out_of_sum"),
    ),
    (
        "attention with squared weights",
        lambda: programs.attention(squared=True),
        "O",
        lambda: fused_attention(squared=True),
        ("square_as_product", "scale_of_product", "online_twice_rescaled_sum"),
    ),
    (
        "layernorm",
        programs.layernorm_matmul,
        "Y",
        fused_layernorm,
        ("fuse_consecutive_maps", "swap_scale_and_dot", "hoist_scale_out_of_sum"),
    ),
    (
        "swiglu",
        programs.rmsnorm_swiglu,
        "Y",
        fused_swiglu,
        ("fuse_consecutive_maps", "swap_row_and_col_scale", "swap_scale_and_dot", "hoist_scale_out_of_sum"),
    ),
]


@pytest.mark.parametrize(("make", "output", "fused"), [c[1:4] for c in CASES], ids=[c[0] for c in CASES])
def test_fused_form_is_in_the_class_of_the_output(
    make: Callable[[], BlockProgram], output: str, fused: Callable[[], Term]
) -> None:
    graph = saturated(make())
    assert not any(isinstance(node, At) for node in walk(fused()))
    assert contains(graph, graph.roots[output], fused())
    assert graph.report.stopped_by == "saturated"


@pytest.mark.parametrize(
    ("make", "output", "fused", "rule"),
    [(make, output, fused, rule) for _, make, output, fused, rules in CASES for rule in rules],
    ids=[f"{name} without {rule}" for name, _, _, _, rules in CASES for rule in rules],
)
def test_each_rule_is_needed(
    make: Callable[[], BlockProgram], output: str, fused: Callable[[], Term], rule: str
) -> None:
    graph = saturated(make(), without(rule))
    assert not contains(graph, graph.roots[output], fused())


def test_outer_product_form_of_layernorm_needs_fast_math() -> None:
    program = programs.layernorm_matmul()
    usual, fast = saturated(program), saturated(program, fast_math=True)
    assert not contains(usual, usual.roots["Y"], fast_layernorm())
    assert contains(fast, fast.roots["Y"], fast_layernorm())
    assert contains(fast, fast.roots["Y"], fused_layernorm())


@pytest.mark.parametrize("make", [c[1] for c in CASES], ids=[c[0] for c in CASES])
def test_nothing_changes_without_rules(make: Callable[[], BlockProgram]) -> None:
    program = make()
    graph = saturated(program, RuleSet((), builtin_table()))
    terms = {term for root in inline(program).roots.values() for term in walk(root)}
    assert all(len(found.nodes) == 1 for found in graph.classes.values())
    assert graph.report.nodes == len(terms)
    assert graph.report.iterations == 0


@pytest.mark.parametrize("make", [c[1] for c in CASES], ids=[c[0] for c in CASES])
def test_without_fusion_rules_every_edge_stays(make: Callable[[], BlockProgram]) -> None:
    """Linear rules alone may move scales, but no list leaves global memory."""
    program = make()
    graph = saturated(program, without("fuse_consecutive_maps"))
    for name, term in inline(program).roots.items():
        assert contains(graph, graph.roots[name], term)
    loads = {node for root in inline(program).roots.values() for node in walk(root) if isinstance(node, At)}
    for load in loads:
        assert len(loaded_alone(graph, load)) == 1


def loaded_alone(graph: FrozenGraph, load: Term) -> list[int]:
    """The classes of one node that is this load."""
    return [
        number for number, found in graph.classes.items() if len(found.nodes) == 1 and contains(graph, number, load)
    ]


SIZES = [
    ("attention", programs.attention, (63, 47, 6)),
    ("layernorm", programs.layernorm_matmul, (53, 43, 5)),
    ("swiglu", programs.rmsnorm_swiglu, (76, 52, 9)),
]


@pytest.mark.parametrize(("make", "size"), [s[1:] for s in SIZES], ids=[s[0] for s in SIZES])
def test_sizes_stay_small(make: Callable[[], BlockProgram], size: tuple[int, int, int]) -> None:
    report = saturated(make()).report
    assert (report.nodes, report.classes, report.iterations) == size
