"""Saturation: analyses, facts, conditions, limits, the canary, determinism."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from bbrewrite.core.addresses import index_address, make_address
from bbrewrite.core.elements import Element
from bbrewrite.core.indices import Index, IndexTable
from bbrewrite.core.programs import Assumption, BlockProgram, Definition, Role
from bbrewrite.core.spans import Source
from bbrewrite.core.terms import Apply, At, Cast, Component, IndexValue, Map, Number, Pair, Size, Term
from bbrewrite.egraph.canary import UnsoundRules
from bbrewrite.egraph.engine import Limits
from bbrewrite.egraph.inline import inline
from bbrewrite.egraph.saturate import saturate
from bbrewrite.egraph.siblings import sibling_pairs
from bbrewrite.egraph.view import FrozenGraph
from bbrewrite.resources import resource_directory
from bbrewrite.rules.load import load_rules, parse_rules
from bbrewrite.rules.rules import Rule, RuleSet
from tests import programs
from tests.egraph.search import buffered_edges, contains
from tests.programs import apply, define, indices, program, read, tensor, total

SHIPPED = load_rules(resource_directory("rules"))


def rules(text: str) -> RuleSet:
    return parse_rules([Source("test.rules", text)])


def run(
    source: BlockProgram, ruleset: RuleSet = SHIPPED, limits: Limits | None = None, fast_math: bool = False
) -> FrozenGraph:
    inlined = inline(source)
    return saturate(
        inlined.roots,
        inlined.indices,
        source.tensors,
        source.assumptions,
        ruleset,
        limits,
        sibling_pairs(source),
        fast_math,
    )


def single(
    body: Term,
    names: str = "m n",
    table: IndexTable | None = None,
    assumptions: tuple[Assumption, ...] = (),
    inputs: str = "A B",
) -> BlockProgram:
    """One output over inputs A, B (matrices, m by n), weight W, vector v, scalar s."""
    tensors = [tensor(name, "m n", Role.INPUT) for name in inputs.split()]
    tensors += [tensor("W", "m n", Role.WEIGHT), tensor("v", "m", Role.INPUT), tensor("s", "", Role.INPUT)]
    return program("p", table or indices(m=64, n=64), tensors, [define("Y", names, body, Role.OUTPUT)], assumptions)


def fires(ruleset: RuleSet, source: BlockProgram) -> bool:
    return any(run(source, ruleset).report.rules_applied.values())


A, B, W = read("A", "m", "n"), read("B", "m", "n"), read("W", "m", "n")


def test_scope_trap() -> None:
    """A class that does not depend on k may hold a term that mentions k: its free indices say that it does not."""
    constant = Map("k", Size("n"))
    body = total("k", apply("add", At(constant, index_address("k")), read("s")))
    source = single(body, "", indices(m=64, n=64, k=None))
    graph = run(source)
    trap = next(number for number, c in graph.classes.items() if any(isinstance(n.head, Size) for n in c.nodes))
    heads = {type(node.head) for node in graph.classes[trap].nodes}
    assert heads == {Size, At}
    assert graph.classes[trap].free == frozenset()


@pytest.mark.parametrize(("factor", "hoisted"), [(read("v", "m"), True), (apply("row_max", A), False)])
def test_hoisting_asks_for_free_indices(factor: Term, hoisted: bool) -> None:
    summed = total("n", apply("row_scale", apply("row_sum", A), factor))
    graph = run(single(summed, "m"))
    expected = Map("m", apply("row_scale", total("n", apply("row_sum", A)), factor))
    assert contains(graph, graph.roots["Y"], expected) is hoisted


def test_free_indices_see_through_a_fused_edge() -> None:
    """The scale is read from a list over m that is computed by a loop over n: it does not depend on this n."""
    source = program(
        "p",
        indices(m=64, n=64),
        [tensor("A", "m n", Role.INPUT)],
        [
            define("c", "m", total("n", apply("row_sum", A))),
            define("Y", "m", total("n", apply("row_scale", apply("row_sum", A), read("c", "m"))), Role.OUTPUT),
        ],
    )
    graph = run(source)
    summed = total("n", apply("row_sum", A))
    assert contains(graph, graph.roots["Y"], Map("m", apply("row_scale", summed, summed)))


def test_masks_hold_more_indices_than_a_machine_word() -> None:
    names = [f"i{number}" for number in range(80)]
    table = IndexTable.of([Index(name, 8, None, 4) for name in names])
    last = names[-1]
    source = program(
        "p",
        table,
        [tensor("A", f"{last} i0", Role.INPUT), tensor("v", last, Role.INPUT)],
        [
            define(
                "Y",
                last,
                total("i0", apply("row_scale", apply("row_sum", read("A", last, "i0")), read("v", last))),
                Role.OUTPUT,
            )
        ],
    )
    graph = run(source)
    hoisted = apply("row_scale", total("i0", apply("row_sum", read("A", last, "i0"))), read("v", last))
    assert contains(graph, graph.roots["Y"], Map(last, hoisted))
    assert {c.free for c in graph.classes.values()} == {frozenset(), frozenset({last}), frozenset({last, "i0"})}


def test_self_attention_fuses_under_both_names() -> None:
    x, y = read("X", "m", "d"), read("X", "n", "d")
    table = IndexTable.of(
        [Index("m", 256, None, 64), Index("n", None, "m", 64), Index("d", 64, None, 64), Index("e", 64, None, 64)]
    )
    source = program(
        "p",
        table,
        [tensor("A", "m e", Role.INPUT), tensor("W", "d e", Role.WEIGHT)],
        [
            define("X", "m d", total("e", apply("dot", read("A", "m", "e"), read("W", "d", "e")))),
            define("S", "m n", total("d", apply("dot", x, y)), Role.OUTPUT),
        ],
    )
    graph = run(source)

    def projected(name: str) -> Term:
        return total("e", apply("dot", read("A", name, "e"), read("W", "d", "e")))

    fused = Map("m", Map("n", total("d", apply("dot", projected("m"), projected("n")))))
    assert contains(graph, graph.roots["S"], fused)


def test_a_read_at_an_expression_is_never_fused() -> None:
    shifted = make_address([("m", 1)], offset=1)
    source = program(
        "p",
        indices(m=None, n=64),
        [tensor("A", "m n", Role.INPUT)],
        [
            define("B", "m n", apply("exp", A)),
            define("Y", "m n", read("B", shifted, "n"), Role.OUTPUT),
        ],
    )
    graph = run(source)
    assert len(graph.classes[graph.roots["Y"]].nodes) == 1
    assert buffered_edges(graph) == 2


def test_scalar_edges_fuse() -> None:
    source = program(
        "p",
        indices(m=64),
        [tensor("v", "m", Role.INPUT)],
        [
            define("t", "", total("m", apply("sum_of", read("v", "m")))),
            define("Y", "m", apply("divide", read("v", "m"), read("t")), Role.OUTPUT),
        ],
    )
    graph = run(source)
    assert contains(
        graph,
        graph.roots["Y"],
        Map("m", apply("divide", read("v", "m"), total("m", apply("sum_of", read("v", "m"))))),
    )
    kept = RuleSet(tuple(r for r in SHIPPED.rules if r.name != "fuse_stored_value"), SHIPPED.table)
    assert buffered_edges(run(source, kept)) == 1


def test_a_value_kept_local_is_not_rounded_but_is_converted() -> None:
    rounded = run(single(apply("exp", Cast("f16", apply("exp", A)))))
    assert contains(rounded, rounded.roots["Y"], Map("m", Map("n", apply("exp", apply("exp", A)))))
    converted = run(single(apply("exp", Cast("i32", apply("exp", A)))))
    assert not contains(converted, converted.roots["Y"], Map("m", Map("n", apply("exp", apply("exp", A)))))


# --- conditions

LOG = "rule r\n    log(x)  =>  log(x) + 0\n    where {}(x)\n"


@pytest.mark.parametrize(
    ("fact", "value", "proved"),
    [
        ("nonnegative", apply("exp", A), True),
        ("positive", apply("exp", A), False),
        ("positive", apply("exp", apply("sigmoid", IndexValue("m"))), True),
        ("nonnegative", apply("multiply", A, A), True),
        ("nonnegative", apply("multiply", A, B), False),
        ("nonnegative", apply("power", A, 2), True),
        ("nonnegative", apply("power", A, 3), False),
        ("nonnegative", total("n", apply("row_sum", apply("multiply", A, A))), True),
        ("positive", apply("add", apply("multiply", A, A), 1e-5), True),
        ("positive", apply("multiply", A, A), False),
        ("positive", Number(2.0), True),
        ("nonzero", Number(-2.0), True),
        ("positive", Number(-2.0), False),
        ("positive", Size("n"), True),
        ("finite", Number(float("inf")), False),
        ("finite", A, False),
        ("nonnegative", apply("dot", apply("exp", A), apply("exp", B)), True),
        ("nonnegative", apply("row_shift", apply("exp", A), read("v", "m")), False),
        ("nonnegative", apply("maximum", A, 0), True),
        ("nonnegative", apply("recip", apply("multiply", A, A)), False),
    ],
)
def test_facts_are_proved_or_the_rule_does_not_fire(fact: str, value: Term, proved: bool) -> None:
    names = {0: "", 1: "m", 2: "m n"}[len(value.free)]
    assert fires(rules(LOG.format(fact)), single(apply("log", value), names)) is proved


@pytest.mark.parametrize(
    ("assumed", "fact", "proved"),
    [("positive", "positive", True), ("positive", "nonzero", True), ("nonnegative", "positive", False)],
)
def test_assumptions_are_facts(assumed: str, fact: str, proved: bool) -> None:
    source = single(apply("log", A), assumptions=(Assumption(assumed, "A"),))
    assert fires(rules(LOG.format(fact)), source) is proved


def test_facts_of_integer_inputs() -> None:
    source = program(
        "p",
        indices(m=64),
        [tensor("k", "m", Role.INPUT, Element.I32)],
        [define("Y", "m", apply("log", read("k", "m")), Role.OUTPUT)],
    )
    assert fires(rules(LOG.format("finite")), source)
    assert not fires(rules(LOG.format("nonnegative")), source)


@pytest.mark.parametrize(("value", "constant"), [(apply("exp", W), True), (apply("multiply", W, A), False)])
def test_constness(value: Term, constant: bool) -> None:
    assert (
        fires(rules("rule r\n    log(x) => log(x) + 0\n    where x is const\n"), single(apply("log", value)))
        is constant
    )


@pytest.mark.parametrize(
    ("value", "scalar"),
    [(read("s"), True), (apply("exp", read("s")), True), (apply("sum_of", read("v", "m")), True), (A, False)],
)
def test_scalars(value: Term, scalar: bool) -> None:
    text = "rule make\n    exp(x) => log(x)\nrule r\n    log(x) => x + 0\n    where x is scalar\n"
    names = "m n" if value.free == {"m", "n"} else ""
    source = single(apply("exp", total("m", value) if value.free == {"m"} else value), names)
    assert bool(run(source, rules(text)).report.rules_applied["r"]) is scalar


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("size(i) > 100", True),
        ("size(i) * 2 == 512", True),
        ("size(i) < c", False),
        ("c != 3", False),
        ("-c <= 0 - 3", True),
    ],
)
def test_comparisons(condition: str, holds: bool) -> None:
    text = f"rule r\n    reduce(sum, i, x + c) => reduce(sum, i, c + x)\n    where {condition}\n"
    assert fires(rules(text), single(total("n", apply("add", apply("row_sum", A), 3)), "m")) is holds


def test_open_extents_are_unknown() -> None:
    table = IndexTable.of([Index("m", None, None, 64), Index("n", None, None, 64)])
    text = "rule r\n    reduce(sum, i, x) => x\n    where size(i) > 0\n"
    assert not fires(rules(text), single(total("n", apply("row_sum", A)), "m", table))


def test_sizes_of_indices_with_one_extent_are_one_number() -> None:
    table = IndexTable.of([Index("m", 256, None, 64), Index("n", None, "m", 64)])
    text = "rule mean\n    reduce(sum, i, x) / size(i)  =>  x\n"
    assert fires(rules(text), single(apply("divide", total("n", apply("row_sum", A)), Size("m")), "m", table))


def test_phases_follow_each_other() -> None:
    text = """@phase(extend)
rule last
    log(x) => sqrt(x)
rule middle
    exp(x) => log(x)
@phase(lower)
rule first
    sqrt(x) => exp(x)
"""
    report = run(single(apply("sqrt", A)), rules(text)).report
    assert report.rules_applied == {"last": 1, "middle": 1, "first": 1}
    graph = run(single(apply("exp", A)), rules(text.replace("extend", "lower").replace("(x) => sqrt", "(x) => tanh")))
    assert graph.report.rules_applied["last"] == 0


@pytest.mark.parametrize(
    "value", [apply("recip", apply("multiply", A, B)), apply("multiply", apply("recip", A), apply("recip", B))]
)
def test_rules_that_go_both_ways(value: Term) -> None:
    graph = run(single(value), rules("rule recip_of_product\n    recip(x * y)  <=>  recip(x) * recip(y)\n"))
    for member in (apply("recip", apply("multiply", A, B)), apply("multiply", apply("recip", A), apply("recip", B))):
        assert contains(graph, graph.roots["Y"], Map("m", Map("n", member)))
    assert graph.report.rules_applied["recip_of_product"] > 0


# --- limits and unsound rules

GROWING = "rule grow\n    exp(x)  =>  exp(x + 1)\n"


def test_limits_stop_a_rule_that_grows() -> None:
    by_rounds = run(single(apply("exp", A)), rules(GROWING), Limits(iterations=7)).report
    assert (by_rounds.stopped_by, by_rounds.iterations) == ("iterations", 7)
    by_nodes = run(single(apply("exp", A)), rules(GROWING), Limits(nodes=50)).report
    assert by_nodes.stopped_by == "nodes"
    assert 50 < by_nodes.nodes < 60
    assert ["rounds of rules" in by_rounds.notes[0], "e-nodes" in by_nodes.notes[0]] == [True, True]
    assert run(single(apply("exp", A)), rules(GROWING.replace("exp(x + 1)", "exp(x)"))).report.notes == ()


def test_two_numbers_in_a_class_tell_of_an_unsound_rule() -> None:
    source = single(apply("add", A, 2))
    with pytest.raises(UnsoundRules, match="the rules make 2 equal to 3, so one of them is unsound: wrong") as caught:
        run(source, rules("rule wrong\n    x + 2  =>  x + 3\nrule worse\n    x + y  =>  y\n"))
    assert "worse" in str(caught.value)


def test_two_shapes_in_a_class_tell_of_an_unsound_rule() -> None:
    with pytest.raises(UnsoundRules, match=r"matrix\[n, m\] equal to a matrix\[m, n\]"):
        run(single(apply("transpose", A), "n m"), rules("rule wrong\n    transpose(x)  =>  x\n"))


def test_a_number_may_stand_for_a_block() -> None:
    graph = run(single(apply("divide", A, A)), rules("rule one\n    x / x  =>  1\nrule unit\n    x * 1 => x\n"))
    assert not any(isinstance(node.head, Number) for c in graph.classes.values() for node in c.nodes)


# --- siblings


def siblings_program() -> BlockProgram:
    return program(
        "p",
        indices(m=64, n=64),
        [tensor("A", "m n", Role.INPUT), tensor("B", "m n", Role.INPUT)],
        [
            define("E", "m n", apply("exp", A), Role.OUTPUT),
            define("L", "m n", apply("log", A), Role.OUTPUT),
            define("U", "m n", apply("exp", B), Role.OUTPUT),
            define("T", "n m", apply("transpose", A), Role.OUTPUT),
        ],
    )


def test_sibling_definitions_are_paired() -> None:
    source = siblings_program()
    assert sibling_pairs(source) == (("E", "L"),)
    graph = run(source)
    pair = Map("m", Map("n", Pair(apply("exp", A), apply("log", A))))
    assert contains(graph, graph.roots["E"], Component(0, pair))
    assert contains(graph, graph.roots["L"], Component(1, pair))
    assert len(graph.classes[graph.roots["U"]].nodes) == 1
    kept = RuleSet(tuple(r for r in SHIPPED.rules if r.name != "fuse_siblings"), SHIPPED.table)
    alone = run(source, kept)
    assert len(alone.classes[alone.roots["E"]].nodes) == 1


@pytest.mark.parametrize("count", [2, 3, 4])
def test_equal_siblings_are_paired_once(count: int) -> None:
    """Definitions of one value are one class, a sibling of itself: pairs of it with itself must come to an end."""
    twins = [define(f"E{number}", "m n", apply("exp", A), Role.OUTPUT) for number in range(count)]
    others = [define(name, "m n", apply(name, A), Role.OUTPUT) for name in ("sin", "cos")]
    source = program("p", indices(m=64, n=64), [tensor("A", "m n", Role.INPUT)], [*twins, *others, *twins_of(twins)])
    graph = run(source)
    assert graph.report.stopped_by == "saturated"
    assert graph.report.nodes < 120


def twins_of(definitions: list[Definition]) -> list[Definition]:
    """The same values under other names."""
    return [replace(d, tensor=replace(d.tensor, name=f"{d.tensor.name}_again")) for d in definitions]


def test_a_chain_has_no_siblings() -> None:
    assert sibling_pairs(programs.attention()) == ()
    assert sibling_pairs(programs.rmsnorm_swiglu()) == (("A", "C"),)


# --- what the representation makes identities


def test_one_list_with_two_consumers_is_one_term() -> None:
    """Rule 8 of the paper, duplication, is no decision: the shared scale moves out of each consumer by itself."""
    scaled = define("P", "m n", apply("row_scale", A, read("v", "m")))
    source = program(
        "p",
        indices(m=64, n=64),
        [tensor("A", "m n", Role.INPUT), tensor("B", "m n", Role.INPUT), tensor("v", "m", Role.INPUT)],
        [
            scaled,
            define("Y", "m", total("n", apply("row_sum", read("P", "m", "n"))), Role.OUTPUT),
            define("Z", "m n", apply("multiply", read("P", "m", "n"), B), Role.OUTPUT),
        ],
    )
    graph = run(source)
    scale = read("v", "m")
    assert contains(graph, graph.roots["Y"], Map("m", apply("row_scale", total("n", apply("row_sum", A)), scale)))
    assert contains(graph, graph.roots["Z"], Map("m", Map("n", apply("row_scale", apply("multiply", A, B), scale))))


def test_consecutive_elementwise_definitions_become_one_expression() -> None:
    """Rule 9: fusing the maps is all that there is to do."""
    names = [f"T{number}" for number in range(5)]
    definitions = [
        define(name, "m n", apply("exp", read(names[position - 1], "m", "n") if position else A), Role.BUFFER)
        for position, name in enumerate(names)
    ]
    source = program("p", indices(m=64, n=64), [tensor("A", "m n", Role.INPUT)], definitions)
    term: Term = A
    for _ in names:
        term = apply("exp", term)
    graph = run(source)
    assert contains(graph, graph.roots[names[-1]], Map("m", Map("n", term)))


def test_extending_a_map_is_fusing_it() -> None:
    """Rule 6: the list over m is made again for every n."""
    source = program(
        "p",
        indices(m=64, n=64),
        [tensor("A", "m n", Role.INPUT), tensor("v", "m", Role.INPUT)],
        [
            define("u", "m", apply("exp", read("v", "m"))),
            define("Y", "m n", apply("row_scale", A, read("u", "m")), Role.OUTPUT),
        ],
    )
    graph = run(source)
    assert contains(graph, graph.roots["Y"], Map("m", Map("n", apply("row_scale", A, apply("exp", read("v", "m"))))))


def test_every_monoid_has_an_identity() -> None:
    """Rule 7: no accumulator needs its first element."""
    for monoid in SHIPPED.table.monoids.values():
        assert len(monoid.identity) == len(monoid.state)


# --- determinism


def signature(graph: FrozenGraph) -> dict[str, int]:
    """A number for each root that depends on the terms it represents and not on numbers of classes."""
    colours = dict.fromkeys(graph.classes, 0)
    for _ in range(len(graph.classes)):
        colours = {
            number: hash(
                frozenset((node.head, tuple(colours[child] for child in node.children)) for node in found.nodes)
            )
            for number, found in graph.classes.items()
        }
    return {name: colours[number] for name, number in graph.roots.items()}


MAKERS = [programs.attention, programs.layernorm_matmul, programs.rmsnorm_swiglu]


@pytest.mark.parametrize("make", MAKERS, ids=["attention", "layernorm", "swiglu"])
def test_same_input_same_graph(make) -> None:  # type: ignore[no-untyped-def]
    assert run(make()) == run(make())


@pytest.mark.parametrize("make", MAKERS, ids=["attention", "layernorm", "swiglu"])
@pytest.mark.parametrize("fast_math", [False, True])
def test_names_and_order_of_rules_do_not_matter(make, fast_math: bool) -> None:  # type: ignore[no-untyped-def]
    usual = run(make(), fast_math=fast_math)
    shuffled: list[Rule] = list(SHIPPED.rules)
    random.Random(3).shuffle(shuffled)
    renamed = tuple(replace(rule, name=f"r{number}") for number, rule in enumerate(shuffled))
    other = run(make(), RuleSet(renamed, SHIPPED.table), fast_math=fast_math)
    assert signature(other) == signature(usual)
    assert (other.report.nodes, other.report.classes) == (usual.report.nodes, usual.report.classes)
    assert signature(run(make(), RuleSet(renamed[1:], SHIPPED.table), fast_math=fast_math)).keys() == usual.roots.keys()


def test_apply_is_spelled_for_every_operator() -> None:
    """An operator with an index attribute survives the way through the engine."""
    spread = Apply("row_spread", (read("v", "m"),), ("n",))
    graph = run(single(apply("add", A, spread)))
    assert contains(graph, graph.roots["Y"], Map("m", Map("n", apply("add", A, spread))))
