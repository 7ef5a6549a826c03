"""What the report of a large program says: nothing that is true of one of its candidates alone."""

from __future__ import annotations

from bbrewrite.candidates.cover import Bounds
from tests.candidates.test_cover import fused
from tests.plan.headline import RMSNORM_SWIGLU

NOT_FUSED = "{one}[n] = tanh({x}[n])\noutput {other}[n] = {one}[size(n) - 1 - n] * 2\n"
FUSED = "{one}[n] = tanh({x}[n])\noutput {other}[n] = {one}[n] * 2\n"
HEADER = "program islands\nindex n = 7\ninput X[n], Z[n] : f32\n"


def notes(*islands: str) -> tuple[str, ...]:
    """Of a program of two islands, each one candidate."""
    names = ({"x": "X", "one": "A", "other": "B"}, {"x": "Z", "one": "C", "other": "D"})
    text = HEADER + "".join(island.format(**own) for island, own in zip(islands, names, strict=True))
    fusion = fused(text, Bounds(2, 14))
    assert len(fusion.cover) == 2
    return fusion.notes


def test_where_one_candidate_was_not_fused_others_were() -> None:
    assert not any("nothing was fused" in note for note in notes(NOT_FUSED, FUSED))


def test_where_no_candidate_was_fused_it_is_said_once() -> None:
    (note,) = notes(NOT_FUSED, NOT_FUSED)
    assert note.startswith("nothing was fused: ")
    assert "0.0161 ms" in note


def test_what_is_stored_in_a_candidate_is_told_with_what_the_candidate_makes() -> None:
    text = RMSNORM_SWIGLU.replace("m = 128", "m = 1000, n = 7").replace("input  X[m, d]", "input  X[m, d], Z[n]")
    island = FUSED.format(x="Z", one="C", other="D")
    fusion = fused(text + island, Bounds(5, 14))
    assert len(fusion.cover) == 2
    (note,) = (note for note in fusion.notes if " stored: " in note)
    assert note.startswith("G stored: what makes Y takes ")


def test_what_a_candidate_loads_again_is_told_under_the_names_of_the_program() -> None:
    text = RMSNORM_SWIGLU.replace("m = 128", "m = 128, n = 7").replace("input  X[m, d]", "input  U[m, d], Z[n]")
    text = text.replace("X[m, d]", "U[m, d]").replace("output Y[", "output Result[")
    fusion = fused(text + FUSED.format(x="Z", one="C", other="D"), Bounds(5, 14))
    assert len(fusion.cover) == 2
    (note,) = (note for note in fusion.notes if " loads " in note)
    assert note.startswith("kernel Result loads U ")
    assert "; with its blocks kept, the kernel would need " in note
