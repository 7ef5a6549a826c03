"""The checks of the suite that mutants have to be caught by, as functions without arguments."""

from __future__ import annotations

import numpy as np

from bbrewrite.core.operators import builtin_table
from bbrewrite.core.programs import Assumption
from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.runtime.module import compile_programs
from tests.array_programs import draw_inputs, extents_of, program, reference
from tests.codegen.kernel_cases import arrays_for, matmul
from tests.egraph import saturation, test_conditions, test_inline, test_programs, test_saturate, test_soundness
from tests.egraph.test_soundness import PROGRAMS
from tests.lower import test_meaning
from tests.plan import test_scope
from tests.plan.pipelines import plan_text, shipped_rules
from tests.programs import apply, read, total


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
    test_saturate.test_hoisting_asks_for_free_indices(apply("row_max", saturation.A), False)


def many_indices_have_masks() -> None:
    test_saturate.test_masks_hold_more_indices_than_a_machine_word()


def constness_is_proved() -> None:
    test_conditions.test_constness(apply("multiply", saturation.W, saturation.A), False)
    test_conditions.test_constness(apply("exp", saturation.W), True)


def free_indices_are_the_fewest() -> None:
    test_saturate.test_scope_trap()


def new_vectors_are_no_scalars() -> None:
    """A vector that a rule has made is none, whatever operator made it."""
    text = "rule make\n    row_sum(x) => row_sum(x * 1)\nrule r\n    exp(x) => x + 0\n    where x is scalar\n"
    source = saturation.single(total("n", apply("exp", apply("row_sum", saturation.A))), "m")
    assert not saturation.run(source, saturation.rules(text)).report.rules_applied["r"]


def sums_need_not_be_nonzero() -> None:
    source = saturation.single(
        total("n", apply("log", apply("row_sum", saturation.A))), "m", assumptions=(Assumption("nonzero", "A"),)
    )
    assert not saturation.fires(saturation.rules(saturation.LOG.format("nonzero")), source)


def scalars_are_proved() -> None:
    test_conditions.test_scalars(apply("exp", saturation.A), False)
    test_conditions.test_scalars(saturation.A, False)
    test_conditions.test_scalars(apply("exp", read("s")), True)


def facts_are_proved() -> None:
    a, b = saturation.A, saturation.B
    test_conditions.test_facts_are_proved_or_the_rule_does_not_fire("positive", apply("multiply", a, a), False)
    test_conditions.test_facts_are_proved_or_the_rule_does_not_fire("nonnegative", apply("multiply", a, b), False)
    test_conditions.test_facts_are_proved_or_the_rule_does_not_fire("nonnegative", apply("power", a, 3), False)
    shifted = apply("row_shift", apply("exp", a), read("v", "m"))
    test_conditions.test_facts_are_proved_or_the_rule_does_not_fire("nonnegative", shifted, False)


def inlining_does_not_capture() -> None:
    test_inline.test_bound_indices_are_renamed_where_they_would_capture()


def addresses_follow_a_renaming() -> None:
    test_inline.test_addresses_in_a_renamed_body_follow()


def plans_keep_to_scope() -> None:
    test_scope.test_plans_keep_to_scope()


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
