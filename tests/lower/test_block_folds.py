"""Warnings of values that depend on block sizes: there where another size gives another value, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bbrewrite.core.indices import IndexTable
from bbrewrite.core.programs import BlockProgram
from bbrewrite.core.spans import Source
from bbrewrite.interpret.block_programs import run_block_program
from bbrewrite.lang.programs import parse_program
from bbrewrite.lower.block_folds import block_size_warnings
from tests.plan.headline import HEADLINE
from tests.plan.pipelines import plan_text, shipped_rules

HEAD = "block program p\nindex b = 2, m = 6 by 2, n = 6 by 2\ninput X[m, n], Y[m, n], c[b, n] : f32\noutput Z = "
EXTENTS = {"b": 2, "m": 6, "n": 6}
# With the operator that is named, and the index.
DEPENDENT = [
    ("map b: map n: sum_of(c[b, n])", "sum_of", "n"),
    ("map m: map n: row_scale(X[m, n], row_max(X[m, n]))", "row_max", "n"),
    ("map m: map n: col_shift(X[m, n], col_sum(X[m, n]))", "col_sum", "m"),
    ("map m: reduce sum n: row_max(X[m, n])", "row_max", "n"),
    ("reduce max n: reduce max m: max_of(row_sum(X[m, n]))", "row_sum", "n"),
    ("map b: map n: c[b, n] * (reduce sum m: sum_of(row_max(X[m, n])))", "row_max", "n"),
]
INDEPENDENT = [
    "map b: reduce sum n: sum_of(c[b, n])",
    "map m: reduce max n: row_max(X[m, n])",
    "map m: map n: row_scale(X[m, n], reduce sum n: row_sum(X[m, n]))",
    "map m: map n: X[m, n] * c[0, 0]",
    "reduce sum n: reduce sum m: sum_of(row_sum(X[m, n] * Y[m, n]))",
]


def _parsed(body: str) -> BlockProgram:
    parsed = parse_program(Source("p.bb", f"{HEAD}{body}\n"), shipped_rules().table)
    assert isinstance(parsed, BlockProgram)
    return parsed


def _values(program: BlockProgram, block: int) -> np.ndarray:
    generator = np.random.default_rng(0)
    arrays = {
        tensor.name: generator.standard_normal([EXTENTS[name] for name in tensor.indices]).astype(np.float32)
        for tensor in program.inputs
    }
    cut = [index if index.block is None else replace(index, block=block) for index in program.indices]
    return run_block_program(replace(program, indices=IndexTable.of(cut)), arrays, EXTENTS, shipped_rules().table)["Z"]


@pytest.mark.parametrize(("body", "operator", "index"), DEPENDENT)
def test_a_value_that_depends_on_a_block_size_is_told(body: str, operator: str, index: str) -> None:
    parsed = _parsed(body)
    (warning,) = block_size_warnings(parsed, shipped_rules().table)
    assert f"depends on the block size of {index}: `{operator}`" in warning.message
    assert warning.span is not None
    assert warning.span.source.line(4)[warning.span.column - 1 :].startswith(operator)
    assert not np.allclose(_values(parsed, 2), _values(parsed, 3))


@pytest.mark.parametrize("body", INDEPENDENT)
def test_other_values_are_not(body: str) -> None:
    parsed = _parsed(body)
    assert not block_size_warnings(parsed, shipped_rules().table)
    np.testing.assert_allclose(_values(parsed, 2), _values(parsed, 3), rtol=1e-5)


def test_a_block_that_spans_its_index_is_no_fault() -> None:
    parsed = _parsed("map m: map n: row_scale(X[m, n], row_max(X[m, n]))")
    whole = IndexTable.of([replace(index, block=6) if index.name == "n" else index for index in parsed.indices])
    assert not block_size_warnings(replace(parsed, indices=whole), shipped_rules().table)


@pytest.mark.parametrize("text", HEADLINE.values())
def test_what_rules_make_is_not(text: str) -> None:
    planned = plan_text(text, shipped_rules())
    assert not block_size_warnings(planned.plan.fused, planned.table)
