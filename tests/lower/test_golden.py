"""Lowered programs, word for word: what `bbrewrite lower` prints. Every one parses back to itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from bbrewrite.core.printing import print_block_program
from bbrewrite.core.spans import Source
from bbrewrite.lang.programs import parse_program
from bbrewrite.lower.lowering import lower
from tests.array_programs import TABLE, program

GOLDEN = Path(__file__).parent / "golden"
CASES = sorted(path.stem for path in GOLDEN.glob("*.bb"))


@pytest.mark.parametrize("case", CASES)
def test_lowers_to_the_golden_text(case: str) -> None:
    lowered = lower(program((GOLDEN / f"{case}.bb").read_text()), TABLE)
    text = print_block_program(lowered, TABLE)
    assert text == (GOLDEN / f"{case}.lowered").read_text(), text
    assert parse_program(Source(case, text), TABLE) == lowered
