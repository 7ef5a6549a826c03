"""The verdict on a fused result, above all where entries are not finite."""

from __future__ import annotations

import json
import math
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from bbrewrite.core.elements import Element
from bbrewrite.core.programs import Role, Tensor
from bbrewrite.verify.compare import OutputComparison, compare_output, compare_outputs
from tests.cli.conftest import Command

_INF, _NAN = math.inf, math.nan


def _judge(
    fused: list[float],
    unfused: list[float],
    reference: list[float],
    element: Element = Element.F32,
    nan: bool = False,
) -> OutputComparison:
    stored = element.numpy_type
    return compare_output("O", element, np.array(fused, stored), np.array(unfused, stored), np.array(reference), nan)


def test_error_is_relative_to_the_largest_entry_of_the_reference() -> None:
    found = _judge([1.0, 4.5], [1.0, 4.0], [1.0, 4.0])
    assert found.error == pytest.approx(0.125)
    assert not found.ok


def test_error_is_absolute_where_the_reference_is_zero() -> None:
    assert _judge([0.5], [0.0], [0.0]).error == 0.5


def test_eight_times_the_unfused_error_and_an_allowance_are_right() -> None:
    assert _judge([1.0079], [1.001], [1.0]).ok
    assert not _judge([1.0082], [1.001], [1.0]).ok
    assert _judge([1.000009], [1.0], [1.0]).ok
    assert not _judge([1.00002], [1.0], [1.0]).ok
    assert _judge([1.0019], [1.0], [1.0], Element.F16).ok
    assert not _judge([1.003], [1.0], [1.0], Element.F16).ok


def test_it_is_said_where_the_unfused_program_is_no_measure() -> None:
    found = _judge([7.0], [1e30], [1.0])
    assert found.ok
    assert found.remarks == ("O unfused departs from float64 by more than its largest value, so it allows anything",)
    assert not _judge([1.5], [1.5], [1.0]).remarks


def test_equal_infinities_and_nans_agree() -> None:
    found = _judge([_INF, -_INF, _NAN, 1], [_INF, -_INF, _NAN, 1], [_INF, -_INF, _NAN, 1])
    assert found.ok
    assert found.error == 0
    assert not found.remarks


@pytest.mark.parametrize(
    ("fused", "reference"),
    [(_NAN, 1.0), (_INF, 1.0), (-_INF, _INF), (_NAN, _INF), (0.0, _INF), (0.0, -_INF)],
)
def test_an_entry_that_differs_in_kind_is_a_mismatch(fused: float, reference: float) -> None:
    found = _judge([1, fused], [1, reference], [1, reference])
    assert not found.ok
    assert found.error == _INF
    assert "wrong at 1 entry (first [1])" in found.remarks[0]


def test_fused_finite_where_unfused_overflows_is_said_and_right() -> None:
    found = _judge([0, 1], [_NAN, _NAN], [0, 1])
    assert found.ok
    assert found.error == 0
    assert "finite at 2 entries" in found.remarks[0]


def test_avoided_overflow_is_still_compared() -> None:
    assert not _judge([0, 1.5], [_NAN, _NAN], [0, 1]).ok


def test_a_reference_that_overflows_too_is_no_mismatch_unless_the_inputs_hold_nan() -> None:
    assert _judge([0, 1], [_NAN, _NAN], [_NAN, _NAN], Element.F64).ok
    assert not _judge([0, 1], [_NAN, _NAN], [_NAN, _NAN], Element.F64, nan=True).ok


def test_a_fault_that_fused_and_unfused_share_is_said() -> None:
    found = _judge([_NAN, 1], [_NAN, 1], [2, 1], Element.F16)
    assert found.ok
    assert "fused and unfused alike" in found.remarks[0]


def test_a_reference_too_large_for_the_declared_type_is_an_infinity() -> None:
    found = _judge([_INF], [_INF], [1e30], Element.F16)
    assert found.ok
    assert not found.remarks


def test_integers_are_exact() -> None:
    assert _judge([2, 3], [2, 3], [2, 3], Element.I32).ok
    assert not _judge([2, 4], [2, 3], [2, 3], Element.I32).ok


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("element", [e for e in Element if e not in (Element.INDEX, Element.NUMBER, Element.BOOL)])
def test_whatever_bits_there_are_no_warning_is_printed(element: Element) -> None:
    """A result that is garbage is compared like any other, though most of its bits are no number that it could be."""
    random = np.random.default_rng(0)
    kind = element.numpy_type
    garbage = random.integers(0, 256, (2, 4096, kind.itemsize), np.uint8).view(kind)[..., 0]
    signalling = {2: 0x7F81, 4: 0x7F800001, 8: 0x7FF0000000000001}[kind.itemsize]
    garbage[:, 7] = np.array(signalling, f"u{kind.itemsize}").view(kind)
    reference = random.integers(0, 256, (4096, 8), np.uint8).view(np.float64)[:, 0]
    found = compare_outputs({"O": element}, *({"O": values} for values in (*garbage, reference)), False)
    assert len(found.outputs) == 1


def test_empty_and_scalar_outputs() -> None:
    assert _judge([], [], []).ok
    scalar = np.array(2.0, np.float32)
    assert compare_output("loss", Element.F32, scalar, scalar, np.array(2.0), False).ok
    wrong = compare_output("loss", Element.F32, np.array(_NAN), scalar, np.array(2.0), False)
    assert "wrong at 1 entry:" in wrong.remarks[0]


def test_a_program_is_as_wrong_as_its_worst_output() -> None:
    good, bad = np.array([1.0]), np.array([3.0])
    both = compare_outputs(
        {"A": Element.F64, "B": Element.F64},
        {"A": good, "B": bad},
        {"A": good, "B": good},
        {"A": good, "B": good},
        False,
    )
    assert not both.ok
    assert both.max_rel_err == 2.0


def test_what_left_the_range_of_floats_either_way_is_told_so() -> None:
    """log(exp(-90)) in f32: what underflowed to 0 shows as an infinity."""
    found = _judge([1, -_INF], [1, -_INF], [1, -90], Element.F32)
    assert found.ok
    assert "f32 overflows or underflows" in found.remarks[0]


def test_integers_that_overflow_are_told_and_set_apart() -> None:
    found = _judge([1, -2147483648], [1, -2147483648], [1, 2147483648], Element.I32)
    assert found.ok
    assert found.error == found.unfused_error == 0
    assert "1 entry (first [1])" in found.remarks[0]
    assert "i32 overflows" in found.remarks[0]


@pytest.mark.parametrize("fused", [[1, 7, 5], [1, 2, 5 - 2**31]])
def test_an_overflow_elsewhere_excuses_no_wrong_integer(fused: list[float]) -> None:
    found = _judge(fused, [-(2**31), 2, 5], [2**31, 2, 5], Element.I32)
    assert not found.ok


def test_integers_whose_sum_came_back_into_range_are_compared() -> None:
    found = _judge([3, 4], [3, 4], [3, 4], Element.I32)
    assert found.ok
    assert not found.remarks


@pytest.mark.parametrize(("element", "wider"), [(Element.F16, "f32"), (Element.F32, "f64")])
def test_the_list_that_its_type_cannot_hold_is_named(element: Element, wider: str) -> None:
    def judged(fused: float, unfused: float) -> OutputComparison:
        largest = float(ml_dtypes.finfo(element.numpy_type).max)
        definitions = [Tensor(name, (), e, Role.BUFFER) for name, e in (("A", element), ("B", element), ("Y", element))]
        reference = {"A": np.array(largest), "B": np.array(4 * largest), "Y": np.array(2.0)}
        outputs = {"Y": np.array(fused)}, {"Y": np.array(unfused)}
        (found,) = compare_outputs({"Y": element}, *outputs, reference, False, definitions=definitions).outputs
        return found

    avoided, shared = judged(2.0, _INF), judged(_INF, _INF)
    assert avoided.ok
    assert shared.ok
    assert f"avoids an overflow of {element} in B, which can be declared {wider}" in avoided.remarks[0]
    assert f"{element} overflows in B, which can be declared {wider}" in shared.remarks[0]


def test_where_a_list_overflows_its_type_says_how_exact_the_program_is() -> None:
    definitions = [Tensor("B", (), Element.F16, Role.BUFFER), Tensor("Y", (), Element.F32, Role.OUTPUT)]

    def judged(fused: float, unfused: float) -> bool:
        reference = {"B": np.array(1e6), "Y": np.array(2.0)}
        outputs = {"Y": np.array(fused)}, {"Y": np.array(unfused)}
        return compare_outputs({"Y": Element.F32}, *outputs, reference, False, definitions=definitions).ok

    assert judged(2.002, _INF)
    assert not judged(2.002, 2.0)
    assert not judged(2.01, _INF)


def test_a_run_names_the_list_that_overflows(bbrewrite: Command, rules: Path) -> None:
    Path("overflow.bb").write_text(
        "program overflow\nindex m = 8, k = 4\ninput X[m, k] : f16\n"
        "A[m, k] = abs(X[m, k]) + 1\nB[m, k] = A[m, k] * 100000\noutput Y[m] : f32 = sum[k](B[m, k])\n"
    )
    result = bbrewrite("run", rules, "overflow.bb", "--target", "numpy", "--json")
    assert result.exit_code == 0, result.output
    (remark,) = json.loads(result.stdout)["remarks"]
    assert remark.endswith("fusion avoids an overflow of f16 in B, which can be declared f32")
