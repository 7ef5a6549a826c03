"""Wrapped block programs: as wide as asked where brackets allow, and the same program."""

from __future__ import annotations

from bbrewrite.cli.wrapping import wrapped


def test_a_long_line_breaks_at_the_commas_of_its_longest_bracket() -> None:
    line = "output O = map m: row_scale(reduce sum n: dot(E[m, n], transpose(V[n, l])), where(c[m] == 0, 0, 1)) + x(1)"
    assert wrapped(line, 60) == (
        "output O = map m: row_scale(\n"
        "  reduce sum n: dot(E[m, n], transpose(V[n, l])),\n"
        "  where(c[m] == 0, 0, 1)\n"
        ") + x(1)"
    )


def test_inner_brackets_break_too_where_they_are_still_too_long() -> None:
    assert wrapped("x = f(g(aaaaaaaaaa, bbbbbbbbbb), c)", 20) == (
        "x = f(\n  g(\n    aaaaaaaaaa,\n    bbbbbbbbbb\n  ),\n  c\n)"
    )


def test_short_lines_and_lines_without_brackets_stay() -> None:
    text = "index m = 64 by 64\n" + "x" * 100
    assert wrapped(text, 30) == text


def test_only_line_breaks_and_spaces_change() -> None:
    line = "x = f((a + b) * g(h(1, 2), 3), k[m, n], [1, 2])"
    assert wrapped(line, 10).replace("\n", "").replace(" ", "") == line.replace(" ", "")
