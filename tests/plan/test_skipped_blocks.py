"""The share of blocks that masks hide, where it depends on arrays: counted block by block."""

from __future__ import annotations

import numpy as np
import pytest

from bbrewrite.plan.masks.skipped_blocks import skipped_blocks
from tests.plan.masked_programs import masked_program
from tests.plan.pipelines import plan_text, shipped_rules

_BLOCK = 4


def _share(condition: str, arrays: dict[str, np.ndarray], m: int = 16, n: int = 16) -> float | None:
    plan = plan_text(masked_program("softmax", condition), shipped_rules(), block=_BLOCK, m=m, n=n)
    return skipped_blocks(plan.plan.kernels, plan.extents, arrays)


def _hidden(visible: np.ndarray) -> float:
    """The share of blocks without a visible entry; the last ones may be partial."""
    rows, columns = (range(0, extent, _BLOCK) for extent in visible.shape)
    seen = [visible[row : row + _BLOCK, column : column + _BLOCK].any() for row in rows for column in columns]
    return 1 - float(np.mean(seen))


def _documents(*lengths: int) -> np.ndarray:
    return np.repeat(np.arange(len(lengths)), lengths).astype(np.int32)


@pytest.mark.parametrize("lengths", [(16,), (8, 8), (4, 4, 4, 4), (3, 5, 7, 1), (1,) * 16, (13, 3)])
@pytest.mark.parametrize("is_causal", [False, True])
def test_blocks_without_a_common_document_are_counted(lengths: tuple[int, ...], is_causal: bool) -> None:
    documents = _documents(*lengths)
    visible = documents[:, None] == documents[None, :]
    if is_causal:
        visible &= np.tri(16, dtype=bool)
    condition = "(D[m] == F[n] and n <= m)" if is_causal else "D[m] == F[n]"
    assert _share(condition, {"D": documents, "F": documents}) == pytest.approx(_hidden(visible))


def test_partial_blocks_count_as_blocks() -> None:
    rows, columns = _documents(5, 5), _documents(5, 9)
    assert _share("D[m] == F[n]", {"D": rows, "F": columns}, m=10, n=14) == pytest.approx(
        _hidden(rows[:, None] == columns[None, :])
    )


def test_lengths_bound_each_row() -> None:
    lengths = np.array([3] * 4 + [9] * 4 + [0] * 4 + [16] * 4, np.int32)
    assert _share("n < L[m]", {"L": lengths}) == pytest.approx(_hidden(np.arange(16)[None, :] < lengths[:, None]))


@pytest.mark.parametrize("condition", ["n <= m", "n < p"])
def test_what_follows_from_extents_or_is_not_given_is_not_counted_here(condition: str) -> None:
    assert _share(condition, {}) is None


def test_over_nothing_there_is_no_share() -> None:
    assert _share("D[m] == F[n]", {"D": _documents(4), "F": _documents()}, m=4, n=0) is None
