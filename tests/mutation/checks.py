"""The checks of the suite that mutants have to be caught by, as functions without arguments."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bbrewrite.core.addresses import index_address
from bbrewrite.core.indices import Index, IndexTable
from bbrewrite.core.operators import builtin_table
from bbrewrite.core.programs import Assumption, Role
from bbrewrite.core.terms import At, Component, Loaded, Map, Reduce, Term, walk
from bbrewrite.egraph.view import EClass, ENode, FrozenGraph, SaturationReport
from bbrewrite.explain.matching import head_key
from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.plan.extract import extract
from bbrewrite.plan.term_costs import TermCosts
from bbrewrite.runtime.module import compile_programs
from tests.array_programs import draw_inputs, extents_of, program, reference
from tests.codegen.kernel_cases import arrays_for, matmul
from tests.egraph import test_inline, test_programs, test_saturate, test_soundness
from tests.egraph.test_soundness import PROGRAMS
from tests.lower import test_meaning
from tests.plan.pipelines import TARGET, plan_text, shipped_rules
from tests.programs import apply, read, tensor, total


def classes_have_one_value() -> None:
    for name in ("attention", "layernorm", "logsumexp", "another name for the keys"):
        source, table, arrays = test_soundness.lowered(PROGRAMS[name])
        test_soundness.check_classes(source, table, arrays, False)


def headline_programs_fuse() -> None:
    for _, make, output, fused, _ in test_programs.CASES[:1] + test_programs.CASES[3:]:
        test_programs.test_fused_form_is_in_the_class_of_the_output(make, output, fused)


def free_indices_are_seen_through_edges() -> None:
    test_saturate.test_free_indices_see_through_a_fused_edge()


def hoisting_asks_for_free_indices() -> None:
    test_saturate.test_hoisting_asks_for_free_indices(apply("row_max", test_saturate.A), False)


def many_indices_have_masks() -> None:
    test_saturate.test_masks_hold_more_indices_than_a_machine_word()


def constness_is_proved() -> None:
    test_saturate.test_constness(apply("multiply", test_saturate.W, test_saturate.A), False)
    test_saturate.test_constness(apply("exp", test_saturate.W), True)


def free_indices_are_the_fewest() -> None:
    test_saturate.test_scope_trap()


def new_vectors_are_no_scalars() -> None:
    """A vector that a rule has made is none, whatever operator made it."""
    text = "rule make\n    row_sum(x) => row_sum(x * 1)\nrule r\n    exp(x) => x + 0\n    where x is scalar\n"
    source = test_saturate.single(total("n", apply("exp", apply("row_sum", test_saturate.A))), "m")
    assert not test_saturate.run(source, test_saturate.rules(text)).report.rules_applied["r"]


def sums_need_not_be_nonzero() -> None:
    source = test_saturate.single(
        total("n", apply("log", apply("row_sum", test_saturate.A))), "m", assumptions=(Assumption("nonzero", "A"),)
    )
    assert not test_saturate.fires(test_saturate.rules(test_saturate.LOG.format("nonzero")), source)


def scalars_are_proved() -> None:
    test_saturate.test_scalars(apply("exp", test_saturate.A), False)
    test_saturate.test_scalars(test_saturate.A, False)
    test_saturate.test_scalars(apply("exp", read("s")), True)


def facts_are_proved() -> None:
    a, b = test_saturate.A, test_saturate.B
    test_saturate.test_facts_are_proved_or_the_rule_does_not_fire("positive", apply("multiply", a, a), False)
    test_saturate.test_facts_are_proved_or_the_rule_does_not_fire("nonnegative", apply("multiply", a, b), False)
    test_saturate.test_facts_are_proved_or_the_rule_does_not_fire("nonnegative", apply("power", a, 3), False)
    shifted = apply("row_shift", apply("exp", a), read("v", "m"))
    test_saturate.test_facts_are_proved_or_the_rule_does_not_fire("nonnegative", shifted, False)


def inlining_does_not_capture() -> None:
    test_inline.test_bound_indices_are_renamed_where_they_would_capture()


def addresses_follow_a_renaming() -> None:
    test_inline.test_addresses_in_a_renamed_body_follow()


def plans_keep_to_scope() -> None:
    """A class holds a cheap term that mentions k and a dear one that does not: outside k's loop only this one will do.

    Once as a block of the output, once as a list that a loop over k reads: neither an output nor a list in global
    memory may mention an index of a loop around it.
    """
    dear = total("n", apply("row_sum", read("A", "m", "n")))
    cheap = read("B", "k", "m")
    _check_scope({"root": Map("m", dear)}, {dear: cheap})
    stored = Map("m", dear)
    inside = Reduce("sum", "k", (At(stored, index_address("m")),))
    _check_scope({"root": Map("m", inside)}, {stored: Map("m", cheap)})


def _check_scope(roots: Mapping[str, Term], equal: Mapping[Term, Term]) -> None:
    numbers: dict[Term, int] = {}
    classes: dict[int, EClass] = {}

    def number(term: Term) -> int:
        if term not in numbers:
            node = _node(term)
            numbers[term] = len(numbers)
            members = [node]
            if term in equal:
                members.insert(0, _node(equal[term]))
            classes[numbers[term]] = EClass(tuple(members), term.free)
        return numbers[term]

    def _node(term: Term) -> ENode:
        return ENode(head_key(term), tuple(number(child) for child in term.children))

    found = {name: number(term) for name, term in roots.items()}
    graph = FrozenGraph(classes, found, SaturationReport(0, 0, 0, "saturated", {}))
    table = IndexTable.of([Index("m", 256, None, 64), Index("n", 4096, None, 64), Index("k", 2)])
    tensors = {t.name: t for t in (tensor("A", "m n", Role.INPUT), tensor("B", "k m", Role.INPUT))}
    closed = True
    plans = extract(graph, ("root",), TermCosts(builtin_table(), table, tensors, TARGET)).plans
    for plan in plans:
        for node in walk(plan.roots["root"]):
            if isinstance(node, At | Loaded | Component) and not isinstance(node.children[0], At | Component):
                closed = closed and not node.children[0].free
        closed = closed and not plan.roots["root"].free
    assert plans, "there is a plan that keeps to its scope"
    assert closed, "a plan uses a term outside the loop of an index that it mentions"


def values_are_those_worked_out_by_hand() -> None:
    text = "index m = 1, n = 3\ninput A[m, n] : f32\noutput Y[m] = max[n](A[m, n])\noutput Z[m] = sum[n](A[m, n])"
    test_meaning.both(text, {"A": [[-3, -1, -2]]}, {"Y": [-1], "Z": [-6]})


def plans_mean_what_the_reference_says() -> None:
    """The executor of plans against the array-level reference, which shares scalar functions and no block operator."""
    for name in ("attention", "layernorm", "swiglu", "softmax down the columns", "squared weights"):
        text = PROGRAMS[name]
        parsed = program(text)
        extents = extents_of(parsed)
        arrays = draw_inputs(parsed, extents)
        planned = plan_text(f"program p\n{text.strip()}\n", shipped_rules())
        found = run_kernels(planned.plan.kernels, arrays, extents, planned.table)
        for output, values in found.items():
            expected = reference(text, arrays)[output]
            np.testing.assert_allclose(values, expected, rtol=1e-8, atol=1e-8)


def generated_products_agree() -> None:
    """A compiled matrix product of ragged blocks against the executor of kernels."""
    case = matmul()
    (compiled,) = compile_programs([case], builtin_table())
    extents = {"m": 9, "n": 35, "k": 13}
    arrays = arrays_for(case, extents, 0)
    expected = run_kernels(case, arrays, extents, builtin_table())["C"]
    np.testing.assert_allclose(compiled.run(arrays, extents, 1)["C"], expected, rtol=1e-4, atol=1e-4)
