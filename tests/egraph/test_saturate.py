"""Saturation: scopes, fusion of edges, phases, limits, the canary, and what the representation makes identities."""

from __future__ import annotations

import pytest

from bbrewrite.core.addresses import index_address, make_address
from bbrewrite.core.indices import Index, IndexTable
from bbrewrite.core.programs import Role
from bbrewrite.core.terms import Apply, At, Cast, Map, Number, Size, Term
from bbrewrite.egraph.canary import UnsoundRules
from bbrewrite.egraph.engine import Limits
from bbrewrite.rules.rules import RuleSet
from tests.egraph.saturation import SHIPPED, A, B, rules, run, single
from tests.egraph.search import buffered_edges, contains
from tests.programs import apply, define, indices, program, read, tensor, total


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
    assert 40 < by_nodes.nodes <= 50
    assert ["rounds of rules" in by_rounds.notes[0], "e-nodes" in by_nodes.notes[0]] == [True, True]
    assert run(single(apply("exp", A)), rules(GROWING.replace("exp(x + 1)", "exp(x)"))).report.notes == ()


EXPLODING = """\
rule swap
    x + y  =>  y + x
rule group
    (x + y) + z  =>  x + (y + z)
rule ungroup
    x + (y + z)  =>  (x + y) + z
"""


@pytest.mark.parametrize("terms", [6, 9, 12, 16])
def test_rules_that_explode_stop_near_the_limit(terms: int) -> None:
    """One round may multiply the graph, so none is begun that would go far beyond the limit."""
    total_of_all = A
    for number in range(terms):
        total_of_all = apply("add", total_of_all, apply("multiply", A, float(number + 2)))
    report = run(single(total_of_all, "m n"), rules(EXPLODING), Limits(nodes=400)).report
    assert report.stopped_by == "nodes"
    assert report.nodes < 1200
    assert "the plan is the best of the forms found so far" in report.notes[0]


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


def test_apply_is_spelled_for_every_operator() -> None:
    """An operator with an index attribute survives the way through the engine."""
    spread = Apply("row_spread", (read("v", "m"),), ("n",))
    graph = run(single(apply("add", A, spread)))
    assert contains(graph, graph.roots["Y"], Map("m", Map("n", apply("add", A, spread))))
