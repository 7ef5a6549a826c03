"""`let` of block programs: names for shared terms, which print and parse back to the program without them."""

from __future__ import annotations

import pytest

from bbrewrite.core.printing import print_block_program, print_shared_program
from bbrewrite.core.spans import Source
from bbrewrite.lang.diagnostics import InputError
from bbrewrite.lang.programs import parse_program
from bbrewrite.request import lowered
from tests.plan.headline import HEADLINE
from tests.plan.pipelines import plan_text, shipped_rules

MASKED = """\
program masked
index m = 30, n = 40, d = 8
input Q[m, d], K[n, d] : f32
S[m, n] = where(n <= m + 3, sum[d](Q[m, d] * K[n, d]), -inf)
output P[m, n] = softmax[n](S[m, n]) * (n + 1)
"""


@pytest.mark.parametrize("text", [*HEADLINE.values(), MASKED])
def test_shared_terms_print_once_and_parse_back(text: str) -> None:
    planned = plan_text(text, shipped_rules())
    shared = print_shared_program(planned.plan.fused, planned.table)
    assert "\nlet t1 = " in shared
    again = parse_program(Source("again", shared), planned.table)
    assert print_block_program(again, planned.table) == print_block_program(planned.plan.fused, planned.table)
    assert again.definitions == planned.plan.fused.definitions


STORED_BETWEEN = """\
program stored_between
index m = 30, n = 40, d = 8
input Q[m, d], K[n, d] : f32
output S[m, n] = sum[d](Q[m, d] * K[n, d])
output T[m, n] = exp(S[m, n] * 2 + 1) + sin(S[m, n] * 2 + 1) * cos(exp(S[m, n] * 2 + 1))
"""


def test_a_shared_term_stands_behind_the_definitions_that_it_reads() -> None:
    planned = plan_text(STORED_BETWEEN, shipped_rules())
    unfused = lowered(parse_program(Source("stored", STORED_BETWEEN), planned.table), planned.table)
    shared = print_shared_program(unfused, planned.table)
    assert shared.index("S = map") < shared.index("let t")
    assert parse_program(Source("again", shared), planned.table).definitions == unfused.definitions


HEAD = "block program p\nindex m = 4 by 4, n = 4 by 4\ninput A[m, n] : f32\n"
BAD = {
    "let s = A[m, n] + 1\noutput O = map m: s": "no loop around this runs over `n`",
    "let s = row_sum(row_sum(A[m, n]))\noutput O = map m: map n: A[m, n]": "row_sum",
    "let A = 2\noutput O = map m: map n: A[m, n]": "A",
    "let s = t + 1\noutput O = map m: map n: A[m, n] + s": "`t`",
}


@pytest.mark.parametrize("body", BAD)
def test_faults_of_let_are_told(body: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_program(Source("bad", f"{HEAD}{body}\n"), shipped_rules().table)
    (fault, *_) = caught.value.diagnostics
    assert BAD[body] in fault.message


def test_let_in_an_array_program_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        parse_program(Source("bad", "program p\nlet s = 1\noutput y = 2\n"), shipped_rules().table)
    assert "belongs to block programs" in caught.value.diagnostics[0].message
