"""Functions of generated loops on infinities, NaN and numbers of every magnitude, as a program sees them."""

from __future__ import annotations

import numpy as np
import pytest

from bbrewrite.core.spans import Source
from bbrewrite.fusion import fuse
from bbrewrite.lang.programs import parse_program
from bbrewrite.pipeline import prepare_cpp
from bbrewrite.request import make_request
from bbrewrite.rules.load import parse_rules

FUNCTIONS = ("exp", "tanh", "sin", "cos", "sigmoid", "log", "log1p", "expm1")


@pytest.fixture(scope="module")
def found() -> tuple[np.ndarray, dict[str, np.ndarray]]:
    magnitudes = np.ldexp(1.37, np.arange(-149, 128)).astype(np.float32)
    x = np.concatenate([magnitudes, -magnitudes, np.float32([0.0, np.inf, -np.inf, np.nan])])
    outputs = "\n".join(f"output {name}_of[m] = {name}(x[m])" for name in (*FUNCTIONS, "erf"))
    rules = parse_rules([])
    text = f"program f\nindex m = {len(x)}\ninput x[m] : f32\n{outputs}\n"
    program = parse_program(Source("f.bb", text), rules.table)
    prepared = prepare_cpp(fuse(make_request(program, rules)), {"x": x})
    return x, prepared.unfused()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_agree_with_float64(name: str, found: tuple[np.ndarray, dict[str, np.ndarray]]) -> None:
    x, outputs = found
    y = x.astype(np.float64)
    with np.errstate(all="ignore"):
        exact = 1 / (1 + np.exp(-y)) if name == "sigmoid" else getattr(np, name)(y)
        np.testing.assert_allclose(outputs[f"{name}_of"], exact.astype(np.float32), rtol=4e-7, atol=2.0**-126)


def test_nan_and_infinity_pass_through_erf(found: tuple[np.ndarray, dict[str, np.ndarray]]) -> None:
    x, outputs = found
    np.testing.assert_array_equal(np.isnan(outputs["erf_of"]), np.isnan(x))
    np.testing.assert_array_equal(outputs["erf_of"][np.isinf(x)], np.sign(x[np.isinf(x)]))
