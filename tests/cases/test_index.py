"""Which test holds each case of the public record that this directory is made from, or why a case has none.

A case is named as in that record: A attention, B normalisation, C fusion elsewhere, E rules and the e-graph, F wishes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

_TESTS = Path(__file__).parents[1]

# Each place is a file and a text in it: the name of a test, of a case, or of what makes cases.
_HELD: dict[str, tuple[tuple[str, str], ...]] = {
    "A01 a row without visible keys": (
        ("cases/test_attention.py", "hidden_row_library"),
        ("cases/test_attention.py", "hidden_row_by_hand"),
    ),
    "A03 merging partial results without keys": (
        ("cases/test_attention.py", "merged_{parts}_visible"),
        ("rules/test_monoids.py", "test_identity_is_two_sided"),
    ),
    "A05 causal with unequal lengths": (
        ("cases/test_attention.py", "causal_from_top_left"),
        ("cases/test_attention.py", "causal_from_bottom_right"),
        ("cases/test_attention.py", "causal_with_more_queries"),
    ),
    "A10 a scale through softmax where the product overflows": (
        ("cases/test_attention.py", "test_an_overflow_that_fusion_avoids_is_said_and_not_called_wrong"),
    ),
    "A11 logits of f16 that overflow before scaling": (
        ("cases/test_attention.py", "test_an_overflow_that_fusion_avoids_is_said_and_not_called_wrong"),
    ),
    "A12 padded keys": (("cases/test_attention.py", "test_padding_of_blocks_is_never_counted"),),
    "A15 a mask with holes": (
        ("cases/test_attention.py", '"holes"'),
        ("cases/test_attention.py", "documents_in_any_order"),
    ),
    "A17 another scale": (("cases/test_attention.py", "scale_negative"),),
    "B02 neighbours at 40000": (
        ("cases/test_normalisation.py", "neighbours_then_product"),
        ("codegen/test_large_means.py", "def test_"),
    ),
    "B04 squares in f16": (("cases/test_normalisation.py", "squares_in_f16_then_product"),),
    "B06 eps inside or outside the root": (("cases/test_normalisation.py", "eps_inside_and_outside_the_root"),),
    "B10 partial variances of unequal size": (("cases/test_normalisation.py", "_ragged(9, 4)"),),
    "C02 a tensor read backwards": (("cases/test_fusion.py", "read_backwards_beside_an_output"),),
    "C04 a reduction over several indices": (("cases/test_fusion.py", "odd_products_of_extents"),),
    "C06 one tensor many times": (("cases/test_fusion.py", "one_tensor_many_times"),),
    "C08 exponentials joined and separate": (
        ("cases/test_fusion.py", "test_separate_exponentials_are_one_or_what_ieee_gives"),
        ("fuzz/data/sound.rules", "exp(a) * exp(b)  =>  exp(a + b)"),
    ),
    "C09 multiplying by zero": (
        ("cases/test_fusion.py", "zero_times_what_is_not_finite"),
        ("cases/test_fusion.py", "infinities_in_hidden_operands"),
        ("fuzz/data/sound.rules", "x * 0  =>  0"),
    ),
    "C11 NaN through maxima": (("cases/test_fusion.py", "nan_through_maxima"), ("cases/test_fusion.py", '"clamped"')),
    "C14 reductions over nothing": (("cases/test_fusion.py", "test_reductions_over_nothing"),),
    "C16 a product and a sum with unequal blocks": (("cases/test_fusion.py", "_blocks(m: int, k: int, n: int)"),),
    "E02 an unbound name": (("cases/test_rule_language.py", "test_e02_wherever_the_name_stands"),),
    "E07 why a rule did not fire": (("cases/test_rule_language.py", "test_e07_every_kind_of_condition"),),
    "E09 inner loops of nests that differ": (("cases/test_rule_language.py", "test_e09_inner_loops"),),
    "E11 names that have a meaning": (("cases/test_rule_language.py", "test_e11_names_that_have_a_meaning_already"),),
    "E13 what does not exist": (("cases/test_rule_language.py", "test_e13_what_does_not_exist"),),
    "F01 weights changed after softmax": (("cases/test_wishes.py", "squared_weights"),),
    "F03 a bias of each call": (
        ("cases/test_wishes.py", "test_a_bias_is_an_input_and_neither_it_nor_open_extents_rebuild"),
    ),
    "F04 other widths of values": (("cases/test_wishes.py", "_widths(d: int, l: int)"),),
    "F08 norms with products, adapters, normalised heads, experts": (
        ("cases/test_wishes.py", "rms_norm_and_product"),
        ("cases/test_wishes.py", "low_rank_adapter"),
        ("cases/test_wishes.py", "normalised_grouped_heads"),
        ("cases/test_wishes.py", "mixture_of_experts"),
    ),
    "F11 plain odd reductions": (("cases/test_wishes.py", "_row_sums(m: int, n: int)"),),
    "F12 the same bits twice": (("cases/test_wishes.py", "test_the_same_bits_twice"),),
}
# What a case asks beside that, and why no test of values holds it.
_WITHOUT = {
    "A01": "nothing is imported from ONNX, so there is no `Attention` operator with a meaning of its own",
    "F08": "that the kernel is not slower is measured by `benchmarks.compare`, since tests do not time",
    "F12": "bits under other thread counts may differ, as docs/language.md says",
}


@pytest.mark.parametrize("case", _HELD)
def test_the_test_of_a_case_is_there(case: str) -> None:
    for file, text in _HELD[case]:
        assert text in _TESTS.joinpath(file).read_text(encoding="utf-8"), f"{file} lacks {text}"


def test_what_no_test_holds_is_part_of_a_case() -> None:
    assert set(_WITHOUT) <= {case.split()[0] for case in _HELD}
