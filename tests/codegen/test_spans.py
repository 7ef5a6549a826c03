"""Masked blocks are worked on from where to where a row is seen, and mean what they mean without that."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from random import Random
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from bbrewrite.codegen import bounds
from bbrewrite.codegen.cpp.program import print_programs
from bbrewrite.codegen.passes.spans import _SpanFinder
from bbrewrite.verify.reference import evaluate
from tests.array_programs import draw_inputs
from tests.built import built
from tests.mutation.mutants import plant
from tests.plan.pipelines import Planned, plan_text, shipped_rules

type Arrays = dict[str, np.ndarray[Any, Any]]

# Forms of programs with a mask: C is the condition, and blocks are of BLOCK rows and columns.
_HEAD = """\
program test
index m = {m}, n = {n}, d = 5, l = 3
block m = {block}, n = {columns}
input Q[m, d], K[n, d], V[n, l] : {element}
input D[m], F[n], L[m], p : i32
S[m, n] = sum[d](Q[m, d] * K[n, d])
"""
FORMS = {
    "attention": "output O[m, l] = sum[n](softmax[n](where({c}, 3 * tanh(S[m, n] / 3), -inf)) * V[n, l])",
    "added": "output O[m, l] = sum[n](softmax[n](S[m, n] + where({c}, 0, -inf)) * V[n, l])",
    "product": "output O[m, l] = sum[n](where({c}, S[m, n], 0) * V[n, l])",
    "hidden where true": "output O[m, l] = sum[n](softmax[n](where({c}, -inf, S[m, n])) * V[n, l])",
    "sum and maximum": "output O[m] = sum[n](where({c}, S[m, n] * S[m, n], 0)) + max[n](where({c}, S[m, n], -inf))",
    "seen by others": (
        "output O[m, l] = sum[n](softmax[n](where({c}, S[m, n], -inf)) * V[n, l]) + sum[n](S[m, n] * V[n, l])"
    ),
    "numbers": "output O[m] = sum[n](where({c}, 3, 0)) + sum[n](where({c}, 1, 0) * F[n])",
    "other value": "output O[m, l] = sum[n](where({c}, S[m, n], 2) * V[n, l])",
    "other extreme": "output O[m] = max[n](where({c}, S[m, n], 99))",
    "two masks": "output O[m, l] = sum[n]((where({c}, S[m, n], 0) + where(n < 3, S[m, n], 0)) * V[n, l])",
}
CAUSAL, WINDOW = "n <= m", "(n <= m and m - n < 20)"
SINK = "((n <= m and m - n < 9) or n < 4)"
DOCUMENTS, LENGTHS = "(D[m] == F[n] and n <= m)", "n < L[m]"
SIZES = ((70, 90), (1, 7), (33, 33), (64, 96), (100, 31))


def masked(form: str, condition: str, block: int = 32, columns: int = 48, element: str = "f32") -> Planned:
    text = _HEAD + FORMS[form].replace("{c}", condition) + "\n"
    return plan_text(text.format(m=70, n=90, block=block, columns=columns, element=element), shipped_rules())


def agree(plans: list[Planned], sizes: tuple[tuple[int, int], ...] = SIZES) -> None:
    """Generated code says what the reference says, for every extent."""
    compiled = built([plan.plan.kernels for plan in plans], shipped_rules().table)
    for plan, program in zip(plans, compiled, strict=True):
        for m, n in sizes:
            extents = {**plan.extents, "m": m, "n": n}
            arrays = arrays_of(plan, extents, m)
            expected = evaluate(plan.array, arrays, extents, plan.table)["O"]
            found = program.run(arrays, extents, 2)["O"]
            np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


def arrays_of(plan: Planned, extents: Mapping[str, int], seed: int) -> Arrays:
    arrays = draw_inputs(plan.array, extents, seed)
    positions = np.sort(np.random.default_rng(seed).integers(0, 5, extents["m"] + extents["n"])).astype(np.int32)
    lengths = np.random.default_rng(seed + 1).integers(-2, extents["n"] + 3, extents["m"]).astype(np.int32)
    given = {"D": positions[: extents["m"]], "F": positions[: extents["n"]], "L": lengths}
    return {name: given.get(name, array) for name, array in arrays.items()}


def linear_conditions(random: Random) -> Iterator[str]:
    """Comparisons of linear forms of positions, now and then joined or negated."""
    while True:
        a, b, c = random.randint(-2, 2), random.choice((-2, -1, 1, 2)), random.randint(-60, 60)
        text = f"{a} * m + {b} * n + {c} {random.choice(('<', '<=', '>', '>=', '==', '!='))} 0"
        if random.random() < 0.5:
            text = f"({text} {random.choice(('and', 'or'))} {next(linear_conditions(random))})"
        yield f"(not {text})" if random.random() < 0.2 else text


def test_masked_programs_mean_what_the_reference_says() -> None:
    random = linear_conditions(Random(99))
    agree(
        [
            masked("attention", WINDOW),
            masked("added", CAUSAL, 16, 32),
            masked("sum and maximum", SINK, 32, 80),
            masked("seen by others", DOCUMENTS, 20, 30),
            masked("two masks", LENGTHS, 7, 100),
            masked("other value", "n > m"),
            masked("numbers", CAUSAL),
            masked("hidden where true", next(random)),
            masked("product", "floor(m / 49) == floor(n / 49)"),
            masked("attention", next(random), 13, 64),
        ]
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_random_conditions_mean_what_the_reference_says(seed: int) -> None:
    random = Random(seed)
    conditions = linear_conditions(random)
    agree(
        [
            masked(form, next(conditions), random.randint(1, 70), random.randint(1, 100), random.choice(("f32", "f64")))
            for form in FORMS
        ]
    )


def steps_of(plan: Planned) -> set[str]:
    """The functions of `bb_spans.hpp` that generated code calls."""
    text = print_programs([plan.plan.kernels], shipped_rules().table).text
    return set(re.findall(r"bb::(dot_wanted|dot_terms|fill_outside|span_begin)", text))


def test_both_products_of_attention_keep_to_the_spans() -> None:
    assert steps_of(masked("attention", CAUSAL)) == {"dot_wanted", "dot_terms", "fill_outside", "span_begin"}


def test_a_block_that_others_read_is_made_whole() -> None:
    assert steps_of(masked("seen by others", CAUSAL)) == {"dot_terms", "fill_outside", "span_begin"}


def test_hidden_entries_that_count_are_not_left_out() -> None:
    assert steps_of(masked("other value", CAUSAL)) == {"dot_wanted", "fill_outside", "span_begin"}
    assert not steps_of(masked("other extreme", CAUSAL))


def test_what_is_hidden_may_be_infinite() -> None:
    plan = masked("attention", WINDOW)
    (program,) = built([plan.plan.kernels], shipped_rules().table)
    arrays = arrays_of(plan, plan.extents, 0)
    clean = program.run(arrays, plan.extents, 1)["O"]
    arrays["K"][80:] = np.inf  # position 80 is seen by none of 70 rows
    arrays["V"][80:] = np.nan
    np.testing.assert_array_equal(program.run(arrays, plan.extents, 1)["O"], clean)


# Planted faults: what a block shows is one element short, or is taken for more than it is.

FAULTS: list[tuple[str, str, tuple[ModuleType | type, str, str, str]]] = [
    ("product", CAUSAL, (bounds, "write_spans", "{end} : 0", "{end} - 1 : 0")),
    ("product", WINDOW, (bounds.BoundsPrinter, "_from", "- {start}", "- {start} + 1")),
    ("product", CAUSAL, (bounds, "write_spans", "!({hidden})", "true")),
    ("product", CAUSAL, (_SpanFinder, "_is_read_by_others", "not in limited", "in limited")),
    ("seen by others", CAUSAL, (_SpanFinder, "_apply", "and not self._is_read_by_others(name, limited)", "")),
    ("other extreme", CAUSAL, (_SpanFinder, "_hidden_value", "if entries.value == identity", "if True")),
    (
        "other value",
        CAUSAL,
        (_SpanFinder, "_without_terms", "isinstance(self._product_entries(step, known), Constant)", "True"),
    ),
    ("two masks", CAUSAL, (_SpanFinder, "_settled", "term.children[0] in hidden", "True")),
]


@pytest.mark.parametrize(
    ("form", "condition", "fault"), FAULTS, ids=[f"{fault[1]}-{number}" for number, (*_, fault) in enumerate(FAULTS)]
)
def test_a_planted_fault_is_caught(
    form: str, condition: str, fault: tuple[ModuleType | type, str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch, *fault)
    with pytest.raises((AssertionError, KeyError)):
        agree([masked(form, condition)], ((70, 90),))
