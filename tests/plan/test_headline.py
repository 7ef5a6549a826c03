"""What must come out of planning for the three programs of the paper: kernels, buffers, traffic and loops."""

from __future__ import annotations

import re
from math import ceil

import numpy as np
import pytest

from bbrewrite.core.terms import Apply, Reduce, walk
from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.plan.kernel import Kernel, Let, Loop, Statement, Store, Update, walk_statements
from bbrewrite.plan.printing import print_kernel_program
from bbrewrite.plan.target import TOLERANCE
from bbrewrite.verify.reference import evaluate
from tests.array_programs import draw_inputs
from tests.plan.headline import ATTENTION, HEADLINE, LAYERNORM_MATMUL, RMSNORM_SWIGLU, SMALL
from tests.plan.pipelines import NO_RULES, Planned, plan_text, rules_from, shipped_rules, shipped_texts
from tests.plan.processes import printed_in_processes

F32 = 4


def only_kernel(planned: Planned) -> Kernel:
    (kernel,) = planned.plan.kernels.kernels
    assert planned.plan.kernels.buffers == ()
    return kernel


def loops_over(body: tuple[Statement, ...], index: str) -> list[Loop]:
    return [loop for loop in walk_statements(body) if isinstance(loop, Loop) and loop.index == index]


def products(body: tuple[Statement, ...]) -> int:
    """How many different products a nest computes, each statement counted by itself."""
    expressions = [s.expression for s in walk_statements(body) if isinstance(s, Let | Update | Store)]
    found = [term for expression in expressions for term in walk(expression)]
    return sum(isinstance(term, Apply) and term.operator == "dot" for term in found)


def blocks_of(planned: Planned, kernel: Kernel, index: str) -> int:
    block = kernel.indices[index].block
    assert block is not None
    return ceil(planned.extents[index] / block)


def check_small(name: str, planned: Planned) -> None:
    arrays = draw_inputs(planned.array, planned.extents)
    expected = evaluate(planned.array, arrays, planned.extents, planned.table)
    found = run_kernels(planned.plan.kernels, arrays, planned.extents, planned.table)
    for tensor in planned.block.outputs:
        scale = np.abs(expected[tensor.name]).max()
        np.testing.assert_allclose(found[tensor.name], expected[tensor.name], rtol=0, atol=1e-5 * scale, err_msg=name)


def test_attention_is_one_kernel_with_one_loop_over_keys() -> None:
    planned = plan_text(ATTENTION, shipped_rules())
    kernel = only_kernel(planned)
    m, n, d, width = 4096, 4096, 64, 64
    queries = blocks_of(planned, kernel, "m")
    assert "m" in kernel.grid
    assert planned.plan.global_bytes <= F32 * (m * d + m * width + queries * (n * d + n * width))
    (loop,) = loops_over(kernel.body, "n")
    updated = {s.target.name for s in loop.body if isinstance(s, Update)}
    assert len(updated) == 3, "maximum, denominator and output"
    assert products(kernel.body) == 2, "the scores are computed once"


def test_layernorm_matmul_is_one_kernel() -> None:
    planned = plan_text(LAYERNORM_MATMUL, shipped_rules())
    kernel = only_kernel(planned)
    m, k, n = 512, 1024, 1024
    rows, columns = blocks_of(planned, kernel, "m"), blocks_of(planned, kernel, "n")
    assert planned.plan.global_bytes <= F32 * (2 * columns * m * k + rows * k * n + m * n)
    assert products(kernel.body) == 1


def test_rmsnorm_swiglu_is_one_kernel_with_one_loop_over_the_hidden_dimension() -> None:
    planned = plan_text(RMSNORM_SWIGLU, shipped_rules())
    kernel = only_kernel(planned)
    (hidden,) = loops_over(kernel.body, "f")
    (model,) = loops_over(hidden.body, "d")
    assert products(model.body) == 2, "both products in one loop over the model dimension"
    assert products(hidden.body) == 3
    m, d, f, e = 128, 1024, 2816, 1024
    rows = 1  # how often a block of m loads X and g; more than once only where the plan says that they do not fit
    if any(unkept.tensor == "X" for unkept in planned.plan.unkept):
        rows += blocks_of(planned, kernel, "f")
    # Processors that share the reduction load X each, and read each other's accumulators.
    processors, merged = (2, 2 * 2 * m * e) if kernel.is_split else (1, 0)
    weights = blocks_of(planned, kernel, "m") * (processors * rows * d + 2 * d * f + f * e)
    assert planned.plan.global_bytes <= F32 * (processors * rows * m * d + m * e + weights + merged)
    accumulated = [s.target for s in walk_statements(hidden.body) if isinstance(s, Update) and s.target.list_indices]
    assert [block.list_indices for block in accumulated] == [("e",)], "a local row of accumulators"


@pytest.mark.parametrize("name", HEADLINE)
def test_plan_is_no_costlier_than_the_unfused_one(name: str) -> None:
    assert (
        plan_text(HEADLINE[name], shipped_rules()).plan.seconds
        <= (1 + TOLERANCE) * plan_text(HEADLINE[name], NO_RULES).plan.seconds
    )


@pytest.mark.parametrize("name", HEADLINE)
def test_without_rules_every_definition_is_a_kernel(name: str) -> None:
    planned = plan_text(HEADLINE[name], NO_RULES)
    names = [tensor.name for kernel in planned.plan.kernels.kernels for tensor in kernel.writes]
    assert names == [definition.tensor.name for definition in planned.block.definitions]


@pytest.mark.parametrize("name", HEADLINE)
@pytest.mark.parametrize("size", [None, 1])
def test_plans_are_right_at_ragged_sizes(name: str, size: int | None) -> None:
    sizes = SMALL[name] if size is None else {**SMALL[name], "m": 1}
    check_small(name, plan_text(HEADLINE[name], shipped_rules(), **sizes))
    check_small(name, plan_text(HEADLINE[name], NO_RULES, **sizes))


def without_rule(texts: dict[str, str], name: str) -> list[str]:
    """The rule files with one rule deleted, its heading and its body."""
    pattern = re.compile(rf"^rule {name}\b.*?(?=^\S|\Z)", re.MULTILINE | re.DOTALL)
    changed = [pattern.sub("", text) for text in texts.values()]
    assert changed != list(texts.values()), name
    return changed


NEEDED = [
    ("attention", "fuse_consecutive_maps"),
    ("attention", "swap_scale_and_dot"),
    ("attention", "hoist_scale_out_of_sum"),
    ("attention", "swap_scale_and_row_sum"),
    ("attention", "rebase_exponential"),
    ("attention", "online_rescaled_sum"),
    ("layernorm_matmul", "fuse_consecutive_maps"),
    ("rmsnorm_swiglu", "fuse_consecutive_maps"),
]


@pytest.mark.parametrize(("name", "rule"), NEEDED)
def test_removing_a_needed_rule_changes_the_plan_and_not_the_result(name: str, rule: str) -> None:
    fewer = rules_from(*without_rule(shipped_texts(), rule))
    whole = plan_text(HEADLINE[name], shipped_rules())
    reduced = plan_text(HEADLINE[name], fewer)
    assert print_kernel_program(reduced.plan.kernels, reduced.table) != print_kernel_program(
        whole.plan.kernels, whole.table
    )
    check_small(name, plan_text(HEADLINE[name], fewer, **SMALL[name]))


def renamed_and_reordered(texts: dict[str, str]) -> list[str]:
    """Every rule under another name, and the rules of each file in reverse order."""
    changed = []
    for text in reversed(texts.values()):
        blocks = re.split(r"^(?=@|rule |op |monoid )", text, flags=re.MULTILINE)
        merged: list[str] = []
        for block in blocks:
            if merged and merged[-1].startswith("@"):
                merged[-1] += block
            else:
                merged.append(block)
        rules = [block for block in merged[1:] if re.search(r"^rule ", block, re.MULTILINE)]
        others = [block for block in merged[1:] if block not in rules]
        renamed = [re.sub(r"^rule (\w+)", r"rule zz_\1", block, flags=re.MULTILINE) for block in reversed(rules)]
        changed.append("\n".join([merged[0], *others, *renamed]))
    return changed


@pytest.mark.parametrize("name", HEADLINE)
def test_names_and_order_of_rules_change_nothing(name: str) -> None:
    other = rules_from(*renamed_and_reordered(shipped_texts()))
    assert len(other.rules) == len(shipped_rules().rules)
    ours, theirs = plan_text(HEADLINE[name], shipped_rules()), plan_text(HEADLINE[name], other)
    assert print_kernel_program(ours.plan.kernels, ours.table) == print_kernel_program(
        theirs.plan.kernels, theirs.table
    )


def test_the_plan_is_the_same_in_every_process() -> None:
    script = (
        "from tests.plan.headline import HEADLINE\n"
        "from tests.plan.pipelines import plan_text, shipped_rules\n"
        "from bbrewrite.plan.printing import print_kernel_program\n"
        "for text in HEADLINE.values():\n"
        "    planned = plan_text(text, shipped_rules())\n"
        "    print(print_kernel_program(planned.plan.kernels, planned.table))\n"
    )
    assert len(printed_in_processes(script)) == 1


def test_two_readings_of_one_list_share_a_buffer() -> None:
    text = """\
program self_attention
index s = 60, t = s, d = 24, c = 24
input X[s, c] : f32
weight W[c, d] : f32
H[s, d] = sum[c](X[s, c] * W[c, d])
S[s, t] = sum[d](H[s, d] * H[t, d])
output O[s, d] = sum[t](softmax[t](S[s, t]) * H[t, d])
"""
    unfused = plan_text(text, NO_RULES)
    assert [tensor.name for tensor in unfused.plan.kernels.buffers].count("H") == 1
    assert len(unfused.plan.kernels.kernels) == len(unfused.block.definitions)
    check_small("self_attention", unfused)
    check_small("self_attention", plan_text(text, shipped_rules()))


def test_a_term_that_mentions_an_index_out_of_scope_is_never_used() -> None:
    # M does not depend on k, so at(map(k, M), k) is equal to M; outside k's loop it is no program.
    text = """\
program trap
index m = 9, k = 5
input A[m, k] : f32
M[m] = sum[k](A[m, k])
B[m, k] = M[m]
output O[m] = sum[k](B[m, k]) + M[m]
output P[m] = M[m] * 2
"""
    for rules in (NO_RULES, shipped_rules()):
        planned = plan_text(text, rules)
        for kernel in planned.plan.kernels.kernels:
            for output in kernel.writes:
                assert set(output.indices) <= {"m", "k"}
        check_small("trap", planned)


def test_inner_binders_of_the_same_name_are_not_captured() -> None:
    text = """\
program capture
index m = 6, n = 7
input A[m, n] : f32
R[m] = sum[n](A[m, n])
T[m, n] = A[m, n] / (1 + abs(R[m]))
output O[m] = sum[n](T[m, n] * sum[m](A[m, n]))
"""
    for rules in (NO_RULES, shipped_rules()):
        check_small("capture", plan_text(text, rules))


@pytest.mark.parametrize("guarded", [True, False])
def test_online_softmax_is_safe_for_large_logits_and_hidden_rows(guarded: bool) -> None:
    softmax = "softmax[n](S[m, n])"
    by_hand = "exp(S[m, n] - max[n](S[m, n])) / sum[n](exp(S[m, n] - max[n](S[m, n])))"
    text = f"""\
program masked
index m = 40, n = 150, l = 8
input S0[m, n], V[n, l] : f32, H[m, n] : bool
S[m, n] = where(H[m, n], S0[m, n], -inf)
P[m, n] = {softmax if guarded else by_hand}
output O[m, l] = sum[n](P[m, n] * V[n, l])
"""
    planned = plan_text(text, shipped_rules())
    generator = np.random.default_rng(0)
    visible = generator.integers(0, 2, (40, 150)).astype(bool)
    visible[3] = False
    visible[5, :100] = False
    arrays = {
        "S0": (generator.standard_normal((40, 150)) * 1e4).astype(np.float32),
        "V": generator.standard_normal((150, 8)).astype(np.float32),
        "H": visible,
    }
    expected = evaluate(planned.array, arrays, planned.extents, planned.table)["O"]
    found = run_kernels(planned.plan.kernels, arrays, planned.extents, planned.table)["O"]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert np.isnan(found[3]).all() != guarded
    assert any(isinstance(s, Update) for kernel in planned.plan.kernels.kernels for s in walk_statements(kernel.body))
    assert not any(
        isinstance(term, Reduce)
        for k in planned.plan.kernels.kernels
        for s in walk_statements(k.body)
        if isinstance(s, Let | Update | Store)
        for term in walk(s.expression)
    )
