"""States whose first element is a product: where it is stored straight away, and that results keep their bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from bbrewrite.codegen.passes.flatten import flatten
from bbrewrite.codegen.steps import FirstOrLater, walk_steps
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.spans import Source
from bbrewrite.core.terms import Number
from bbrewrite.fusion import fuse
from bbrewrite.lang.programs import parse_program
from bbrewrite.plan.kernel import KernelProgram, Let, Loop, Statement, Update
from bbrewrite.request import make_request
from bbrewrite.resources import resource_directory
from bbrewrite.rules.load import load_rules
from tests.built import built

TEXT = """\
program attention
index m = 40, n = 64, d = 16, l = 24
input Q[m, d], K[n, d], V[n, l] : f32
S[m, n] = sum[d](Q[m, d] * K[n, d])
{mask}output Y[m, l] = sum[n](softmax[n]({score}) * V[n, l])
"""
PLAIN = TEXT.format(mask="", score="S[m, n]")
CAUSAL = TEXT.format(mask="C[m, n] = where(n <= m, S[m, n], -inf)\n", score="C[m, n]")


@cache
def _table() -> OperatorTable:
    return load_rules(resource_directory("rules")).table


@cache
def _fused(text: str) -> KernelProgram:
    rules = load_rules(resource_directory("rules"))
    request = make_request(parse_program(Source("a.bb", text), rules.table), rules, blocks={"m": 16, "n": 16})
    return fuse(request).fused.kernels


def _changed(program: KernelProgram, change: Callable[[Statement], Statement]) -> KernelProgram:
    def body(statements: tuple[Statement, ...]) -> tuple[Statement, ...]:
        return tuple(replace(one, body=body(one.body)) if isinstance(one, Loop) else change(one) for one in statements)

    return replace(program, kernels=tuple(replace(one, body=body(one.body)) for one in program.kernels))


def _unmarked(statement: Statement) -> Statement:
    return replace(statement, combines=None) if isinstance(statement, Update) else statement


def _from_one(statement: Statement) -> Statement:
    from_zero = isinstance(statement, Let) and statement.expression == Number(0.0)
    return replace(statement, expression=Number(1.0)) if from_zero else statement


def _stored_first(program: KernelProgram) -> int:
    steps = [step for kernel in program.kernels for step in walk_steps(flatten(kernel, _table()).steps)]
    return sum(isinstance(step, FirstOrLater) for step in steps)


@pytest.mark.parametrize(
    ("program", "count"),
    [
        (lambda: _fused(PLAIN), 1),
        (lambda: _fused(CAUSAL), 0),  # a narrowed loop may begin with any block
        (lambda: _changed(_fused(PLAIN), _unmarked), 0),
        (lambda: _changed(_fused(PLAIN), _from_one), 0),
    ],
)
def test_the_first_product_is_stored_where_it_is_combined_with_an_identity(
    program: Callable[[], KernelProgram], count: int
) -> None:
    assert _stored_first(program()) == count


def test_results_keep_their_bits() -> None:
    marked, unmarked = built([_fused(PLAIN), _changed(_fused(PLAIN), _unmarked)], _table())
    random = np.random.default_rng(0)
    for n, scale in ((1, 1), (15, 1), (16, 1), (17, 1e4), (64, 1), (70, 1e4)):
        extents = {"m": 21, "n": n, "d": 16, "l": 24}
        arrays = {
            name: random.standard_normal((rows, columns)).astype(np.float32)
            for name, rows, columns in (("Q", 21, 16), ("K", n, 16), ("V", n, 24))
        }
        arrays["Q"] *= scale
        arrays["Q"][3] = np.nan
        arrays["K"][0, 0] = -np.inf  # half of the rows see no first key, the others see nothing else
        found = marked.run(arrays, extents, 2)["Y"]
        np.testing.assert_array_equal(found, unmarked.run(arrays, extents, 2)["Y"])
        assert np.isnan(found[3]).all()
