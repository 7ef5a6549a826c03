"""Derivations: complete, made of true instances, sufficient, checked, short and the same on every run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bbrewrite.cli.derivations import CheckedDerivations
from bbrewrite.core.terms import Apply, Number
from bbrewrite.explain.checking import StepChecker
from bbrewrite.fusion import fuse
from bbrewrite.request import make_request, read_program
from tests.explain.derivations import check_derivations, explain, verdicts, with_sides_changed
from tests.lower.random_programs import programs
from tests.plan.pipelines import NO_RULES, rules_from, shipped_rules

ROOT = Path(__file__).parents[2]
IN_PARTS = ("decoder", "decoder_layer")
EXAMPLES = sorted({path.stem for path in (ROOT / "examples").glob("*.bb")} - set(IN_PARTS))

# Far more than any example needs: a derivation that wanders would exceed it.
LONGEST = 40


def example(name: str) -> str:
    return (ROOT / "examples" / f"{name}.bb").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name: str) -> None:
    explained = explain(example(name), shipped_rules())
    found = check_derivations(explained, shipped_rules())
    assert 0 < len(found) <= LONGEST
    assert all(step.forward for step, _ in found)
    assert all(verdict.agrees for _, verdict in found)


@pytest.mark.slow  # every step of four derivations is checked
def test_programs_planned_in_parts_are_derived_class_by_class() -> None:
    rules = shipped_rules()
    fusion = fuse(make_request(read_program(ROOT / "examples/decoder_layer.bb", rules.table), rules, threads=2))
    assert len(fusion.classes) > 1
    assert all(CheckedDerivations(part, lambda _: None).is_right for part in fusion.classes)


def test_attention_in_its_steps() -> None:
    explained = explain(example("attention"), shipped_rules())
    (derivation,) = explained.derivations
    order = [step.rule.name for step in derivation.steps if step.rule.name != "fuse_consecutive_maps"]
    assert order == [
        "swap_scale_and_dot",
        "hoist_scale_out_of_sum",
        "rebase_exponential",
        "swap_scale_and_dot",
        "online_rescaled_sum",
        "divide_by_scalar",
        "swap_scale_and_row_sum",
        "online_rescaled_sum",
    ]
    hoist = next(step for step in derivation.steps if step.rule.name == "hoist_scale_out_of_sum")
    assert (hoist.definition, hoist.loops) == ("O", ("map m", "map l"))


SIBLINGS = """program p
index m = 6, n = 10, k = 4
input X[m, k] : f32
weight V[k, n], W[k, n] : f32
A[m, n] = sum[k](X[m, k] * V[k, n])
B[m, n] = sum[k](X[m, k] * W[k, n])
output Y[m, n] = A[m, n] * B[m, n]
output Z[m] = sum[n](A[m, n])
"""
SCALARS = """program p
index m = 6, n = 10
input A[m, n], lam : f32
t = sum[m, n](A[m, n] * lam)
output Y[m, n] = A[m, n] * t / lam
output z = t + lam
"""
PAIRS_IN_LOOPS = """program p
index b = 3, m = 20
input X[b, m] : f32
output P[b, m] = X[b, m] * 2
output Q[b, m] = X[b, m] - 3
"""


@pytest.mark.parametrize("text", [SIBLINGS, SCALARS, PAIRS_IN_LOOPS], ids=["siblings", "scalars", "pairs_in_loops"])
def test_several_outputs(text: str) -> None:
    explained = explain(text, shipped_rules())
    assert len(explained.derivations) == 2
    check_derivations(explained, shipped_rules())
    said = [(s.rule.name, s.before, s.after) for d in explained.derivations for s in d.steps]
    assert len(said) == len(set(said))


def test_without_rules_nothing_happens() -> None:
    explained = explain(example("attention"), NO_RULES)
    assert [(d.complete, d.steps) for d in explained.derivations] == [(True, ())]


ONE_LINE = """program p
index m = 6, n = 10
input A[m, n], B[m, n] : f32
output Y[m, n] = {}
"""


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ("recip(x) * recip(y)  <=>  recip(x * y)", "recip(A[m, n]) * recip(B[m, n])"),
        ("recip(x * y)  <=>  recip(x) * recip(y)", "recip(A[m, n]) * recip(B[m, n])"),
    ],
)
def test_rules_that_go_both_ways(rule: str, value: str) -> None:
    rules = rules_from(f"rule r\n    {rule}\n")
    explained = explain(ONE_LINE.format(value), rules)
    check_derivations(explained, rules)
    (derivation,) = explained.derivations
    assert [step.rule.name for step in derivation.steps] == ["r"]
    assert isinstance(derivation.steps[0].before, Apply)
    assert derivation.steps[0].before.operator == "multiply"


def test_conditions_on_extents_choose_the_sizes_of_the_check() -> None:
    rules = rules_from(
        "rule r\n    reduce(sum, i, x) / size(i)  =>  reduce(sum, i, x / size(i))\n    where size(i) > 5\n"
    )
    text = "program p\nindex m = 6, n = 10\nblock n = 1\ninput A[m, n] : f32\noutput Y[m] = mean[n](A[m, n])\n"
    explained = explain(text, rules)
    assert all(verdict.agrees for _, verdict in verdicts(explained, rules))


def test_a_wrong_rule_is_found_out() -> None:
    rules = rules_from("rule wrong\n    exp(x)  =>  x\n")
    explained = explain(ONE_LINE.format("exp(A[m, n])"), rules)
    (found,) = verdicts(explained, rules)
    assert found[0].rule.name == "wrong"
    assert found[1].differs
    assert found[1].sizes is not None
    assert set(found[1].sizes) == {"m", "n"}


@pytest.mark.parametrize("name", ["attention", "rmsnorm_swiglu"])
def test_the_check_sees_every_operator(name: str) -> None:
    """A step whose right side is a little too large is found out, whatever its rule."""
    explained = explain(example(name), shipped_rules())
    checker = StepChecker(explained.program, explained.indices, shipped_rules().table)
    blocks = [s for d in explained.derivations for s in d.steps if isinstance(s.after, Apply)]
    assert len(blocks) > 3
    for step in blocks:
        wrong = Apply("multiply", (step.after, Number(1.001)))
        assert checker.check(with_sides_changed(step, wrong)).differs


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(programs(), st.booleans())
def test_random_programs(text: str, fast_math: bool) -> None:
    check_derivations(explain(f"program test\n{text}\n", shipped_rules(), fast_math, block=2), shipped_rules())


def test_the_same_on_every_run() -> None:
    command = [sys.executable, "-m", "bbrewrite.cli.main", "fuse", "rules", "examples/layernorm_matmul.bb", "--explain"]
    texts = {
        subprocess.run(
            command, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1
