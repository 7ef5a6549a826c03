"""Drawn and given arrays: what is accepted, what is refused, and in which words."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from bbrewrite.core.addresses import index_address
from bbrewrite.core.arrays import ArrayDefinition, ArrayProgram, Call, Fold
from bbrewrite.core.arrays import Element as ElementOf
from bbrewrite.core.elements import Element
from bbrewrite.core.indices import Index, IndexTable
from bbrewrite.core.operators import builtin_table
from bbrewrite.core.programs import Assumption, Role, Tensor
from bbrewrite.core.spans import Source
from bbrewrite.inputs import draw_inputs, load_array, load_arrays, resolve_extents
from bbrewrite.lang.diagnostics import InputError
from bbrewrite.lang.programs import parse_program
from bbrewrite.request import make_request
from bbrewrite.rules.rules import RuleSet
from tests.cli.conftest import Command


def _read(tensor: str, *indices: str) -> ElementOf:
    return ElementOf(tensor, tuple(index_address(index) for index in indices))


def _program(assumptions: tuple[Assumption, ...] = (), element: Element = Element.F32) -> ArrayProgram:
    """Y[m, n] = sum[k](X[m, k] * W[k, n]), with m open, k = 400, n = k."""
    product = Fold("sum", ("k",), Call("multiply", (_read("X", "m", "k"), _read("W", "k", "n"))))
    return ArrayProgram(
        "linear",
        IndexTable.of([Index("m"), Index("k", 400), Index("n", same_as="k")]),
        (Tensor("X", ("m", "k"), element, Role.INPUT), Tensor("W", ("k", "n"), element, Role.WEIGHT)),
        assumptions,
        (ArrayDefinition(Tensor("Y", ("m", "n"), element, Role.OUTPUT), product),),
    )


def _saved(directory: Path, array: object, name: str = "x.npy") -> Path:
    path = directory / name
    np.save(path, np.asarray(array), allow_pickle=True)
    return path


def test_weights_are_divided_by_the_root_of_their_contracted_extent() -> None:
    arrays = draw_inputs(_program(), {"m": 50, "k": 400}, 0, {})
    assert arrays["X"].shape == (50, 400)
    assert arrays["W"].dtype == np.float32
    assert np.std(arrays["X"]) == pytest.approx(1, abs=0.05)
    assert np.std(arrays["W"]) == pytest.approx(1 / 20, rel=0.05)


def test_draws_depend_on_the_seed_and_not_on_other_arrays(tmp_path: Path) -> None:
    program, extents = _program(), {"m": 3, "k": 400}
    first, again, other = (draw_inputs(program, extents, seed, {}) for seed in (7, 7, 8))
    assert np.array_equal(first["W"], again["W"])
    assert not np.array_equal(first["W"], other["W"])
    given = load_arrays(program, {"X": _saved(tmp_path, np.zeros((3, 400), np.float32))})
    assert np.array_equal(draw_inputs(program, extents, 7, given)["W"], first["W"])


@pytest.mark.parametrize("element", list(Element))
def test_every_stored_type_can_be_drawn(element: Element) -> None:
    if element is Element.INDEX:
        return
    values = draw_inputs(_program(element=element), {"m": 30, "k": 400}, 0, {})["X"]
    assert values.dtype == element.numpy_type
    if element is Element.I32:
        assert set(np.unique(values)) == set(range(10))
    if element is Element.BOOL:
        assert 0.4 < values.mean() < 0.6


@pytest.mark.parametrize(
    ("fact", "holds"),
    [("positive", lambda x: x > 0), ("nonnegative", lambda x: x >= 0), ("nonzero", lambda x: x != 0)],
)
def test_assumed_facts_hold_of_drawn_arrays_and_are_checked_of_given_ones(fact, holds, tmp_path: Path) -> None:
    program = _program((Assumption(fact, "X"),), Element.I32)
    assert holds(draw_inputs(program, {"m": 30, "k": 400}, 0, {})["X"]).all()
    bad = np.ones((2, 400), np.int32)
    bad[1, 5] = 0 if fact != "nonnegative" else -1
    given = load_arrays(program, {"X": _saved(tmp_path, bad)})
    with pytest.raises(InputError, match=rf"assumes {fact}\(X\), but \[1, 5\] is"):
        draw_inputs(program, {"m": 2, "k": 400}, 0, given)


def test_nan_is_neither_positive_nor_finite(tmp_path: Path) -> None:
    bad = np.ones((1, 400), np.float32)
    bad[0, 0] = np.nan
    path = _saved(tmp_path, bad)
    for fact in ("positive", "finite"):
        program = _program((Assumption(fact, "X"),))
        with pytest.raises(InputError, match="is nan"):
            draw_inputs(program, {"m": 1, "k": 400}, 0, load_arrays(program, {"X": path}))


@pytest.mark.parametrize(
    ("element", "array"),
    [
        (Element.F32, np.array([1.5, 2.5], np.float64)),
        (Element.F32, np.array([1.5, 2.5], np.float16)),
        (Element.F32, np.array([1, 2], np.int64)),
        (Element.F16, np.array([1.5, np.inf], np.float32)),
        (Element.F64, np.array([1.5, 2.5], ">f8")),
        (Element.BF16, np.array([1.5, 2.5], ml_dtypes.bfloat16)),
        (Element.BF16, np.array([1.5, 2.5], np.float32)),
        (Element.I32, np.array([1, 2], np.uint8)),
        (Element.BOOL, np.array([True, False])),
    ],
)
def test_arrays_of_a_suitable_type_are_converted(element: Element, array: np.ndarray, tmp_path: Path) -> None:
    loaded = load_array(Tensor("x", ("m",), element, Role.INPUT), _saved(tmp_path, array)).values
    assert loaded.dtype == element.numpy_type
    assert np.array_equal(loaded.astype(np.float64), array.astype(np.float64))


@pytest.mark.parametrize(
    ("element", "array", "told"),
    [
        (Element.F32, np.array([0.1, np.nan], np.float64), "float64"),
        (Element.F16, np.array([0.1], np.float32), "float32"),
        (Element.F32, np.array([0.1], ">f8"), "float64"),
        (Element.F64, np.array([1], np.longdouble) / 3, np.dtype(np.longdouble).name),
        (Element.BF16, np.array([0.1], np.float16), "float16"),
        (Element.BF16, np.array([0.1], ml_dtypes.bfloat16), ""),
        (Element.F32, np.array([0.5, np.inf, np.nan], np.float64), ""),
        (Element.F32, np.array([0.1], np.float32), ""),
        (Element.F32, np.array([3], np.int64), ""),
        (Element.F64, np.array([0.1, np.nan], np.float16), ""),
    ],
)
def test_a_request_tells_what_was_rounded(element: Element, array: np.ndarray, told: str, tmp_path: Path) -> None:
    path = _saved(tmp_path, array)
    assert load_array(Tensor("x", ("m",), element, Role.INPUT), path).rounded_from == told
    table = builtin_table()
    text = f"program p\nindex m\ninput x[m] : {element}\noutput y[m] = x[m]\n"
    notes = make_request(parse_program(Source("p.bb", text), table), RuleSet((), table), inputs={"x": path}).notes
    assert [note for note in notes if "rounded" in note] == (
        [f"--input x={path}: rounded from {told} to {element}"] if told else []
    )


def test_a_column_major_array_keeps_its_meaning(tmp_path: Path) -> None:
    array = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    loaded = load_array(Tensor("x", ("m", "n"), Element.F32, Role.INPUT), _saved(tmp_path, array)).values
    assert loaded.flags.c_contiguous
    assert np.array_equal(loaded, array)


def test_a_scalar_has_shape_of_no_axes(tmp_path: Path) -> None:
    loaded = load_array(Tensor("x", (), Element.F32, Role.INPUT), _saved(tmp_path, np.float32(3)))
    assert loaded.values.shape == ()


@pytest.mark.parametrize(
    ("element", "array", "message"),
    [
        (Element.F32, np.zeros((2, 2)), "1 axis, the array has shape"),
        (Element.F32, np.array([1j]), "complex128; the tensor, of type f32, needs a float type"),
        (Element.F32, np.array(["a"]), "needs a float type"),
        (Element.F32, np.array([True]), "needs a float type"),
        (Element.F32, np.array([2**24 + 1]), "an integer of the array is not a value of f32"),
        (Element.F32, np.array([1e300]), "too large for f32"),
        (Element.F16, np.array([70000.0]), "too large for f16"),
        (Element.I32, np.array([1.0]), "needs an integer type"),
        (Element.I32, np.array([2**31]), "not a value of i32"),
        (Element.I32, np.array([2**64 - 1], np.uint64), "not a value of i32"),
        (Element.BOOL, np.array([1], np.uint8), "needs bool"),
        (Element.F32, np.array([None]), "not a .npy file of numbers"),
    ],
)
def test_unsuitable_arrays_are_refused(element: Element, array: np.ndarray, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        load_array(Tensor("x", ("m",), element, Role.INPUT), _saved(tmp_path, array))


def test_files_that_are_no_arrays_are_refused(tmp_path: Path) -> None:
    tensor = Tensor("x", ("m",), Element.F32, Role.INPUT)
    whole = _saved(tmp_path, np.zeros(100)).read_bytes()
    contents = {
        "empty": b"",
        "text": b"1, 2, 3\n",
        "truncated": whole[:300],
        "no-header": whole[:20],
        "bad-header": whole[:10] + b"(" * 20 + whole[30:],
        "not-a-shape": whole.replace(b"(100,)", b"(9e9,)"),
        "pickle": b"\x80\x04N.",
        "zip": b"PK\x03\x04 no archive",
    }
    for name, data in contents.items():
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(InputError, match=r"not a \.npy file"):
            load_array(tensor, path)
    np.savez(tmp_path / "two.npz", a=np.zeros(1), b=np.zeros(1))
    for path, message in (
        (tmp_path / "two.npz", "several arrays"),
        (tmp_path, "cannot be read: Is a directory"),
        (tmp_path / "none.npy", "no such file"),
    ):
        with pytest.raises(InputError, match=message):
            load_array(tensor, path)


def test_an_absurd_shape_in_a_header_is_refused(tmp_path: Path) -> None:
    whole = _saved(tmp_path, np.zeros(100)).read_bytes()
    path = tmp_path / "absurd.npy"
    path.write_bytes(whole.replace(b"(100,), }", b"(10000000000000000,), }")[: len(whole)])
    with pytest.raises(InputError):
        load_array(Tensor("x", ("m",), Element.F32, Role.INPUT), path)


def test_an_unknown_input_names_the_inputs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no input Y"):
        load_arrays(_program(), {"Y": tmp_path / "y.npy"})


def test_extents_come_from_options_then_arrays(tmp_path: Path) -> None:
    program = _program()
    given = load_arrays(program, {"X": _saved(tmp_path, np.zeros((5, 400)))})
    assert resolve_extents(program, {}, given) == {"m": 5, "k": 400}
    assert resolve_extents(program, {"m": 0, "k": 3}, {}) == {"m": 0, "k": 3}


def test_conflicting_extents_name_both_places(tmp_path: Path) -> None:
    program = _program()
    x = _saved(tmp_path, np.zeros((5, 300)), "x.npy")
    w = _saved(tmp_path, np.zeros((300, 20)), "w.npy")
    cases = [
        ({"m": 5}, {"X": x}, "k = 300, but the program declares k = 400\n  hint: .*--size k=300"),
        ({"m": 6, "k": 300}, {"X": x}, r"x.npy \(axis 0, shape \(5, 300\)\) gives m = 5, but --size m=6"),
        ({"k": 300}, {"X": x, "W": w}, r"n \(which has the extent of k\) = 20, but --size k=300"),
        (
            {},
            {},
            "open\n  hint: give --size m=..., or arrays by --input; from Python, sizes={'m': ...}",
        ),
        ({"q": 1}, {}, "the program has no index q"),
        ({"n": 1}, {}, "n has the extent of k\n  hint: give --size k="),
    ]
    for sizes, paths, message in cases:
        with pytest.raises(InputError, match=message):
            resolve_extents(program, sizes, load_arrays(program, paths))


def test_two_arrays_that_disagree_on_an_open_extent(tmp_path: Path) -> None:
    program = ArrayProgram(
        "two",
        IndexTable.of([Index("m")]),
        (Tensor("A", ("m",), Element.F32, Role.INPUT), Tensor("B", ("m",), Element.F32, Role.INPUT)),
        (),
        (),
    )
    paths = {"A": _saved(tmp_path, np.zeros(3), "a.npy"), "B": _saved(tmp_path, np.zeros(4), "b.npy")}
    with pytest.raises(InputError, match=r"B=.*b.npy .* gives m = 4, but --input A=.*a.npy .* gives m = 3"):
        resolve_extents(program, {}, load_arrays(program, paths))


def test_no_array_gives_an_extent_that_no_input_has(bbrewrite: Command, rules: Path) -> None:
    Path("p.bb").write_text("program p\nindex m = 4, n\ninput X[m] : f32\noutput Y[m, n] = X[m] + n\n")
    result = bbrewrite("run", rules, "p.bb", "--target", "numpy")
    assert result.exit_code == 2
    assert "hint: give --size n=...; from Python" in result.stderr
    assert bbrewrite("run", rules, "p.bb", "--target", "numpy", "--size", "n=3").exit_code == 0
