"""A small program to tune."""

from __future__ import annotations

from bbrewrite.core.spans import Source
from bbrewrite.lang.programs import parse_program
from bbrewrite.request import Request, make_request
from tests.plan.pipelines import shipped_rules

RULES = shipped_rules()
TEXT = """\
program scores
index m = 100, n = 90, d = 16
input Q[m, d], K[n, d] : f32
S[m, n] = sum[d](Q[m, d] * K[n, d])
output P[m, n] = softmax[n](S[m, n])
"""


def request(text: str = TEXT, tuned: bool = True, **sizes: int) -> Request:
    """What the stages start from, with other sizes than the program's."""
    return make_request(parse_program(Source("p", text), RULES.table), RULES, sizes, threads=2, tuned=tuned)
