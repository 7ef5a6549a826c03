"""A fault of syntax in one item hides no fault of another, whichever item it is and however it is broken."""

from __future__ import annotations

from itertools import pairwise

import pytest

from bbrewrite.core.spans import Source
from bbrewrite.lang.diagnostics import Diagnostic, InputError
from bbrewrite.rules.load import parse_rules

GOOD = """\
# A function of the user's own.
op cap(x, c) = c * tanh(x / c)

monoid largest
    state    s
    identity -inf
    element  x => x
    combine  a, b => maximum(a, b)

rule cap_of_cap "A cap holds twice"
    cap(cap(x, c), c)  =>  cap(x, c)

rule largest_is_max "The same by another name"
    reduce(largest, i, x)  =>  reduce(max, i, x)
"""
# What stands in a file of its own, and what is wrong with it.
ITEMS = {
    "rule meaning\n    row_scale(a, c)  =>  row_scale(a, d)\n": "unbound-name",
    "rule kind\n    row_max(dot(a, b))  =>  dot(a, row_max(b))\n": "kind",
    "op half(x) = y / 2\n": "unbound-name",
    "rule no_operator\n    dot(row_scale(a, c) b)  =>  b\n": "syntax",
    "rule no_right_side\n    exp(x)  =>\n": "syntax",
    "rule no_body\n": "syntax",
    "op open(x = x\n": "syntax",
    "rule odd_character\n    exp(x)  =>  x ; x\n": "syntax",
    "@phase lower\nrule no_brackets\n    exp(x)  =>  x\n": "syntax",
    "rule not_indented\nexp(x)  =>  x\n": "syntax",
    "monoid unfinished\n    state s\n    identity\n": "syntax",
}


def faults(text: str) -> list[Diagnostic]:
    try:
        parse_rules([Source("r.rules", text)])
    except InputError as error:
        return list(error.diagnostics)
    return []


def told(found: list[Diagnostic]) -> list[tuple[str, str]]:
    # What is missing at the end of a line is missing at the end of the file where it is the last.
    return [(fault.code, fault.message.replace("the file ends", "the line ends")) for fault in found]


@pytest.mark.parametrize(("first", "second"), list(pairwise([*ITEMS, *ITEMS][: len(ITEMS) + 1])))
def test_two_items_at_fault_are_both_told_as_they_are_alone(first: str, second: str) -> None:
    alone = [told(faults(item)) for item in (first, second)]
    assert [code for found in alone for code, _ in found] == [ITEMS[first], ITEMS[second]]
    together = faults(first + "\n" + GOOD + "\n" + second)
    assert told(together) == [*alone[0], *alone[1]]
    last = first.count("\n") + GOOD.count("\n") + 2
    assert [fault.span.line > last for fault in together if fault.span] == [False, True]


def test_what_a_broken_declaration_is_used_in_is_not_reported() -> None:
    text = GOOD.replace("tanh(x / c)", "tanh(x / c") + "\nrule other\n    row_scale(a, c)  =>  d\n"
    alone = told(faults(text[: text.index("\nrule cap_of_cap")]))
    assert told(faults(text)) == [*alone, ("unbound-name", "`d` is not on the left side")]


def test_a_misspelt_keyword_costs_its_own_item_alone() -> None:
    text = "rule a\n    exp(x)  =>  y\nruel b\n    log(x)  =>  y\nrule c\n    tanh(x)  =>  y\n"
    assert [(fault.code, fault.span.line) for fault in faults(text) if fault.span] == [
        ("unbound-name", 2),
        ("syntax", 3),
        ("unbound-name", 6),
    ]
