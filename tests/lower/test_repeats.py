"""Repeats written out: names, weights at positions, and what conditions on the index leave."""

from __future__ import annotations

import numpy as np
import pytest

from bbrewrite.core.addresses import Address
from bbrewrite.core.arrays import ArrayProgram, Element
from bbrewrite.core.operators import builtin_table
from bbrewrite.core.spans import Source
from bbrewrite.lang.diagnostics import InputError
from bbrewrite.lang.programs import parse_program
from bbrewrite.lower.repeats import expand_repeats
from bbrewrite.verify.exact import evaluate_exactly

TABLE = builtin_table()
PROGRAM = """\
program p
index layer = 3, m = 4, n = 2
input  X[m] : f32, Z[m, n] : f32
weight v[layer], w : f32
repeat layer
    carry H[m] = X[m]
    next H[m] = H[m] + {value}
output Y[m] = H[m]
"""


def expanded(value: str) -> ArrayProgram:
    program = parse_program(Source("p.bb", PROGRAM.format(value=value)), TABLE)
    assert isinstance(program, ArrayProgram)
    return expand_repeats(program)


def steps(value: str) -> list[str]:
    """What each iteration adds, printed as Python."""
    return [repr(definition.expression) for definition in expanded(value).definitions if "H_" in definition.tensor.name]


def test_every_iteration_has_names_and_weights_of_its_own() -> None:
    program = expanded("v[layer]")
    assert [definition.tensor.name for definition in program.definitions] == ["H_0", "H_1", "H_2", "Y"]
    for number, text in enumerate(steps("v[layer]")):
        assert repr(Element("v", (Address((), (), number),))) in text


@pytest.mark.parametrize(
    ("condition", "chosen"),
    [
        ("layer == 1", [False, True, False]),
        ("layer != 1 or m < 2", [True, None, True]),
        ("layer > 0 and m < 2", [False, None, None]),
        ("not (layer - 1 >= 1)", [True, True, False]),
        ("layer / 2 == 0.5", [False, True, False]),
        ("m == 1", [None, None, None]),
    ],
)
def test_conditions_on_the_index_are_settled(condition: str, chosen: list[bool | None]) -> None:
    for text, truth in zip(steps(f"where({condition}, w, v[layer])"), chosen, strict=True):
        assert ("where" in text) is (truth is None)
        assert ("'w'" in text) is (truth is not False)
        assert ("'v'" in text) is (truth is not True)


@pytest.mark.parametrize(
    "value",
    [
        "where(layer == 1, 2, layer + 1)",
        "where(layer == 1 and m < 2, v[layer], where(layer == 2, w, 0))",
        "sum[n](where(layer == 0, w, Z[m, n]))",
        "sum[n](softmax[n](where(layer == 2, 1, Z[m, n])) * Z[m, n])",
    ],
)
def test_meaning(value: str) -> None:
    """As the same sums written by hand for each layer."""
    draw = np.random.default_rng(0)
    arrays = {name: draw.random(shape) for name, shape in {"X": 4, "Z": (4, 2), "v": 3, "w": ()}.items()}
    extents = {"layer": 3, "m": 4, "n": 2}
    found = evaluate_exactly(expanded(value), arrays, extents, TABLE)["Y"]
    expected = arrays["X"]
    for number in range(3):
        text = PROGRAM.format(value=value).split("repeat")[0]
        # A condition on an input's value is settled by nothing.
        body = value.replace("v[layer]", f"v[{number}]").replace("layer", "number")
        text += f"input number : f32\noutput Y[m] = {body}\n"
        one = parse_program(Source("p.bb", text), TABLE)
        expected = expected + evaluate_exactly(one, {**arrays, "number": np.float64(number)}, extents, TABLE)["Y"]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_how_often_to_repeat_must_be_known() -> None:
    text = PROGRAM.format(value="1").replace("layer = 3", "layer")
    program = parse_program(Source("p.bb", text), TABLE)
    assert isinstance(program, ArrayProgram)
    with pytest.raises(InputError, match="how often to repeat is open"):
        expand_repeats(program)
