"""Rules that cannot match in a program: leaving them out of its engine changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from bbrewrite.core.spans import Source
from bbrewrite.egraph import saturate
from bbrewrite.egraph.compile import compile_rules, engine_text
from bbrewrite.egraph.masks import Masks
from bbrewrite.egraph.possible import possible_rules
from bbrewrite.egraph.vocabulary import Constructor
from bbrewrite.lang.programs import parse_program
from bbrewrite.request import lowered
from tests.egraph.saturation import SHIPPED, rules, run

EXAMPLES = Path(__file__).parents[2] / "examples"
# Together they have all kinds of leaves, both kinds of casts, pairs, positions, masks and reads at expressions.
PROGRAMS = ("attention", "rmsnorm_qkv", "softcap_window_attention", "batch_norm_relu", "row_moments")
CHAIN = """rule first
    relu(x)  =>  tanh(x)
rule second
    tanh(x)  =>  exp(x)
    where positive(log(x))
rule third
    exp(x)  <=>  sigmoid(x)
"""


def possible(constructors: str, text: str = CHAIN) -> set[str]:
    given = {Constructor(name, (), 1) for name in constructors.split()}
    found, _ = possible_rules(compile_rules(rules(text).rules, Masks.for_count(4)), given)
    return {rule.name for rule in found}


@pytest.mark.parametrize(
    ("constructors", "expected"),
    [
        ("op-relu", {"first"}),  # no logarithm is there for the second rule's condition
        ("op-relu op-log", {"first", "second", "third", "third <="}),  # each makes what the next one needs
        ("op-sigmoid", {"third", "third <="}),
        ("op-log", set[str]()),
    ],
)
def test_what_a_rule_needs_may_be_made_by_another(constructors: str, expected: set[str]) -> None:
    assert possible(constructors) == expected


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_graph_is_that_of_all_rules(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (EXAMPLES / f"{name}.bb").read_text(encoding="utf-8")
    blocks = lowered(parse_program(Source(name, text), SHIPPED.table), SHIPPED.table)
    found = run(blocks)
    monkeypatch.setattr(saturate, "possible_text", engine_text)
    assert run(blocks) == found
