"""Block sizes far beyond the extents: cut with a note, or refused where local memory cannot hold them."""

from __future__ import annotations

from pathlib import Path

import pytest

from bbrewrite.block_sizes import ALWAYS_ALLOWED, cut_to_extents
from bbrewrite.core.indices import Index, IndexTable
from tests.cli.conftest import Command, bbrewrite, rules  # noqa: F401  fixtures

_HUGE = 10**14
_AT_ARRAY_LEVEL = """\
program sums
index m = 7, n = 5
{blocks}
input X[m, n] : f32
output Y[m] = sum[n](X[m, n])
"""
_AT_BLOCK_LEVEL = """\
block program sums
index m = 7 by {block}, n = 5 by 4
input X[m, n] : f32
output Y = map m: reduce sum n: row_sum(X[m, n])
"""
_WIDE_LOCAL_BLOCK = """\
block program wide
index m = 10000000 by {block}, n = m by {block}, d = 1 by 1
input X[m, d], Y[n, d] : f32
output Z = map m: reduce sum n: row_sum(exp(reduce sum d: dot(X[m, d], Y[n, d])))
"""


def test_only_blocks_beyond_an_extent_are_cut() -> None:
    indices = IndexTable.of(
        [
            Index("open"),
            Index("small", block=ALWAYS_ALLOWED, block_is_fixed=True),
            Index("large", block=1000, block_is_fixed=True),
            Index("other", same_as="large", block=1001, block_is_fixed=True),
            Index("none", block=65, block_is_fixed=True),
        ]
    )
    found, notes = cut_to_extents(indices, {"open": 5, "small": 3, "large": 1000, "none": 0})
    assert [index.block for index in found] == [None, ALWAYS_ALLOWED, 1000, 1000, ALWAYS_ALLOWED]
    assert all(index.block_is_fixed for index in found if index.block)
    assert notes == (
        "other has blocks of 1000, not 1001: its extent is 1000",
        "none has blocks of 64, not 65: its extent is 0",
    )


@pytest.mark.parametrize("target", ["cpp", "numpy"])
@pytest.mark.parametrize(
    ("program", "options"),
    [
        (_AT_ARRAY_LEVEL.format(blocks=""), ["--block", f"m={_HUGE}"]),
        (_AT_ARRAY_LEVEL.format(blocks=f"block m = {_HUGE}, n = 2"), []),
        (_AT_BLOCK_LEVEL.format(block=_HUGE), []),
        (_AT_BLOCK_LEVEL.format(block=4), ["--block", f"m={_HUGE}"]),
    ],
)
def test_wherever_a_huge_block_is_given(
    bbrewrite: Command,  # noqa: F811
    rules: Path,  # noqa: F811
    target: str,
    program: str,
    options: list[str],
) -> None:
    Path("p.bb").write_text(program, encoding="utf-8")
    found = bbrewrite("run", rules, "p.bb", "--target", target, *options)
    assert found.exit_code == 0, found.output
    assert f"note: m has blocks of 64, not {_HUGE}: its extent is 7" in found.stdout.replace("\n", " ")


@pytest.mark.parametrize("target", ["cpp", "numpy"])
def test_local_blocks_beyond_memory_are_refused(bbrewrite: Command, rules: Path, target: str) -> None:  # noqa: F811
    Path("p.bb").write_text(_WIDE_LOCAL_BLOCK.format(block=10**7), encoding="utf-8")
    found = bbrewrite("run", rules, "p.bb", "--target", target, "--threads", "2")
    assert found.exit_code == 2, found.output
    assert "2 threads need about" in found.stderr
    assert "give smaller block sizes" in found.stderr
    assert bbrewrite("fuse", rules, "p.bb").exit_code == 0, "a plan alone needs no memory"
