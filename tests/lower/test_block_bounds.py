"""Reads of block programs that leave their list, as far as extents tell."""

from __future__ import annotations

import pytest

from bbrewrite.core.operators import builtin_table
from bbrewrite.core.programs import BlockProgram
from bbrewrite.core.spans import Source
from bbrewrite.lang.diagnostics import InputError
from bbrewrite.lang.programs import parse_program
from bbrewrite.lower.block_bounds import check_block_bounds
from bbrewrite.lower.bounds import check_bounds
from bbrewrite.lower.lowering import lower
from tests.array_programs import TABLE, extents_of, program
from tests.lower.test_bounds import HEAD as ARRAY_HEAD
from tests.lower.test_bounds import SOUND as ARRAY_SOUND
from tests.lower.test_bounds import UNSOUND as ARRAY_UNSOUND

HEAD = "block program p\nindex m = 8 by 4, n = 6 by 4, i = 8\ninput X[m, n], v[i] : f32\ninput b : bool\n"
SOUND = [
    "map m: map n: where(m < size(m) - 1, X[m + 1, n], 0)",
    "map m: map n: where(n == 0, X[m, n], X[m, n - 1])",
    "map m: map n: X[size(m) - 1 - m, n / 2]",
    "map i: where(i > 0, v[i - 1], 0)",
    "map i: where(b, v[i + 1], 0)",  # data decides
    "map m: map n: (map m: map n: X[m, n])[m / 2, n]",
]
UNSOUND = [
    ("map m: map n: X[m + 1, n]", "X is read at m + 1 = 8 at m = 7, but size(m) is 8", "X[m + 1"),
    ("map m: map n: X[m, n] + X[m, n - 1]", "X is read at n - 1 = -1 at n = 0, but size(n) is 6", "X[m, n - 1"),
    ("map m: map n: where(m > 0, X[m + 1, n], 0)", "X is read at m + 1 = 8 at m = 7", "X[m + 1"),
    ("map i: v[i] * v[8]", "v is read at 8, but size(i) is 8", "v[8]"),
    ("map m: reduce sum n: row_sum(X[m, 2 * n])", "X is read at 2 * n = 10 at n = 5, but size(n) is 6", "X[m, 2"),
    (
        "map m: map n: (map m: map n: X[m, n])[m + 1, n]",
        "a list over m is read at m + 1 = 8 at m = 7",
        "map m: map n: X[m, n])[m + 1",
    ),
]


def _checked(body: str) -> None:
    parsed = parse_program(Source("p.bb", f"{HEAD}output Y = {body}\n"), builtin_table())
    assert isinstance(parsed, BlockProgram)
    check_block_bounds(parsed, {"m": 8, "n": 6, "i": 8}, builtin_table())


@pytest.mark.parametrize("body", SOUND)
def test_guarded_and_inner_reads_pass(body: str) -> None:
    _checked(body)


@pytest.mark.parametrize(("body", "message", "place"), UNSOUND)
def test_reads_that_leave_are_reported_with_their_place(body: str, message: str, place: str) -> None:
    with pytest.raises(InputError) as caught:
        _checked(body)
    (fault,) = caught.value.diagnostics
    assert message in fault.message
    assert fault.span is not None
    assert str(fault.span).startswith("p.bb:5:")
    assert fault.span.source.line(5)[fault.span.column - 1 :].startswith(place)


@pytest.mark.parametrize("definition", [*ARRAY_SOUND, *(definition for definition, _ in ARRAY_UNSOUND)])
def test_both_levels_find_the_same_faults(definition: str) -> None:
    parsed = program(f"{ARRAY_HEAD}output {definition}")
    extents = extents_of(parsed)

    def told(check: object, *arguments: object) -> set[str]:
        assert callable(check)
        try:
            check(*arguments)
        except InputError as error:
            # Lowering gives an index that is bound again another name.
            return {fault.message.replace("m1", "m") for fault in error.diagnostics}
        return set()

    assert told(check_block_bounds, lower(parsed, TABLE), extents, TABLE) == told(check_bounds, parsed, extents, TABLE)
