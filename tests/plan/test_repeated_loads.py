"""What the report says of repeated loads is what going through the loops of the planned kernels loads."""

from __future__ import annotations

import re
from collections import Counter
from math import prod

import pytest

from bbrewrite.core.terms import Read, walk
from bbrewrite.plan.kernel import Barrier, Kernel, Loop, Merge, Statement, walk_statements
from bbrewrite.plan.repeated_loads import MOST_TOLD, NAMED_FROM, TOLD_FROM
from bbrewrite.units import byte_count
from tests.plan.headline import HEADLINE
from tests.plan.pipelines import NO_RULES, Planned, plan_text, shipped_rules

NOTE = re.compile(r"kernel (\w+) loads (.+?) (\S+) times(?: each)?, (.+?) in all: (.*)")
MERGE = re.compile(
    r"kernel (\w+) moves (.+?) to merge what (\d+) processors accumulate, which share out the loop over (\w+)"
)
MASKED = re.compile(r"loads K and V (\S+) times each, .* for each of (\d+) blocks of m, as far as masks let it be seen")
F32 = 4


class Counted:
    """The bytes that a kernel loads of each tensor, counted block by block."""

    def __init__(self, planned: Planned, kernel: Kernel) -> None:
        self._kernel = kernel
        self._threads = planned.threads
        self._extents = {
            i.name: kernel.indices.with_extents(planned.extents).extent(i.name) or 0 for i in kernel.indices
        }
        self.loaded: Counter[str] = Counter()
        self.merged = 0
        self._cells(kernel.grid, {})
        self.sizes = {
            t.name: prod(map(self._extents.__getitem__, t.indices)) * t.element.size_bytes for t in kernel.reads
        }

    def _starts(self, index: str) -> range:
        return range(0, self._extents[index], self._kernel.indices[index].block or 1)

    def _cells(self, grid: tuple[str, ...], at: dict[str, int]) -> None:
        if not grid:
            self._body(self._kernel.body, at, self._threads if self._kernel.is_split else 1)
            return
        for start in self._starts(grid[0]):
            self._cells(grid[1:], {**at, grid[0]: start})

    def _body(self, body: tuple[Statement, ...], at: dict[str, int], processors: int) -> None:
        seen: set[Read] = set()
        for statement in body:
            if isinstance(statement, Loop):
                for start in self._starts(statement.index):
                    self._body(statement.body, {**at, statement.index: start}, 1 if statement.shared else processors)
            elif isinstance(statement, Merge):
                self.merged += self._threads * processors * self._entries(statement.source.type.axes, at) * F32
            elif not isinstance(statement, Barrier):
                reads = {term for term in walk(statement.expression) if isinstance(term, Read)} - seen
                seen |= reads
                for read in reads:
                    (tensor,) = (tensor for tensor in self._kernel.reads if tensor.name == read.tensor)
                    moved = self._entries(tuple(tensor.indices), at) * tensor.element.size_bytes
                    self.loaded[tensor.name] += moved * processors

    def _entries(self, axes: tuple[str, ...], at: dict[str, int]) -> int:
        return prod(
            min(self._kernel.indices[i].block or 1, self._extents[i] - at[i]) if i in at else self._extents[i]
            for i in axes
        )


CASES = [(threads, rows) for threads in (1, 2, 16) for rows in (16, 128, 1000)]


@pytest.mark.parametrize(("threads", "rows"), CASES)
@pytest.mark.parametrize("name", HEADLINE)
def test_all_that_matters_is_told_with_its_count(name: str, threads: int, rows: int) -> None:
    for rules in (shipped_rules(), NO_RULES):
        planned = plan_text(HEADLINE[name], rules, threads=threads, m=rows)
        counted = {kernel.name: Counted(planned, kernel) for kernel in planned.plan.kernels.kernels}
        told: set[tuple[str, str]] = set()
        for note in planned.repeated:
            match = NOTE.fullmatch(note)
            if match is None:
                merge = MERGE.fullmatch(note)
                assert merge is not None, note
                kernel, total, processors, _ = merge.groups()
                assert (total, int(processors)) == (byte_count(counted[kernel].merged), threads)
                continue
            kernel, names, times, total, _ = match.groups()
            found, tensors = counted[kernel], re.split(", | and ", names)
            told |= {(kernel, tensor) for tensor in tensors}
            assert byte_count(sum(found.loaded[tensor] for tensor in tensors)) == total
            for tensor in tensors:
                assert found.loaded[tensor] / found.sizes[tensor] == pytest.approx(float(times), rel=0.05)
        if len(planned.repeated) < MOST_TOLD:
            least = TOLD_FROM * planned.plan.global_bytes
            repeated = [
                (kernel, tensor)
                for kernel, found in counted.items()
                for tensor, total in found.loaded.items()
                if total - found.sizes[tensor] >= max(least, NAMED_FROM * max(found.loaded.values()))
            ]
            assert told >= set(repeated)


def told(text: str, threads: int = 2, **sizes: int) -> str:
    return "\n".join(plan_text(text, shipped_rules(), threads=threads, **sizes).repeated)


PRODUCT = "program product\nindex m = 2048, k = 1024, n = 1024\ninput X[m, k] : f32\nweight W[k, n] : f32\n"
PRODUCT += "output Y[m, n] = sum[k](X[m, k] * W[k, n])\n"
HEADS = """\
program heads
index h = 8, g = 2, m = 512, n = 512, d = 64
input Q[h, m, d], K[g, n, d] : f32
output S[h, m] = max[n](sum[d](Q[h, m, d] * K[h / 4, n, d]))
"""


def test_weights_are_loaded_for_each_block_of_rows() -> None:
    assert re.search(r"^kernel Y loads W (\d+) times, .*: for each of \1 blocks of m$", told(PRODUCT), re.MULTILINE)


def test_what_is_loaded_for_each_value_of_an_index_is_no_block_of_it() -> None:
    text = "program heads\nindex h = 8, m = 512, d = 512, c = 64\ninput X[m, d] : f32\nweight W[h, d, c] : f32\n"
    note = told(text + "output Q[h, m, c] = sum[d](X[m, d] * W[h, d, c])\n")
    assert re.search(r"loads X 8 times, 8\.0 MiB in all: for each of 8 values of h$", note, re.MULTILINE)


def test_what_addresses_share_is_told_with_the_address() -> None:
    assert re.search(r"loads K \d+ times, .*4 times through `K\[h / 4, n, d\]`", told(HEADS))


def test_what_masks_hide_does_not_count() -> None:
    text = "program causal\nindex m = 4096, n = m, d = 64\ninput Q[m, d], K[n, d], V[n, d] : f32\n"
    text += "S[m, n] = where(n <= m, sum[d](Q[m, d] * K[n, d]), -inf)\nP[m, n] = softmax[n](S[m, n])\n"
    ((times, blocks),) = MASKED.findall(told(text + "output O[m, d] = sum[n](P[m, n] * V[n, d])\n"))
    assert float(times) == pytest.approx((int(blocks) + 1) / 2, rel=0.05)


def test_merged_accumulators_are_told_where_they_matter() -> None:
    text, rules = HEADLINE["rmsnorm_swiglu"], shipped_rules()
    few_rows, more = (plan_text(text, rules, threads=16, m=16), plan_text(text, rules, threads=2, m=128))
    for planned in (few_rows, more):
        assert any(
            isinstance(s, Merge) for kernel in planned.plan.kernels.kernels for s in walk_statements(kernel.body)
        )
    assert [match.group(4) for note in few_rows.repeated if (match := MERGE.fullmatch(note))] == ["d"]
    assert not any(MERGE.fullmatch(note) for note in more.repeated)


def test_what_is_loaded_once_is_not_told() -> None:
    text = "program rows\nindex m = 5000, n = 1000\ninput X[m, n], b[n] : f32\n"
    assert told(text + "output Y[m, n] = softmax[n](X[m, n] + b[n])\n") == ""
