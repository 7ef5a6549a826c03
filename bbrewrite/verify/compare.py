"""Is a fused result right? Judges outputs against the float64 reference and the unfused program's own error.

Entry by entry there are two questions. Where values are finite, how far are they from the reference; where they
are not (an infinity, or NaN), do both agree on what they are. A place where only one side is finite is never
passed over: it is a mismatch, unless the unfused program has the same fault there (then it comes from the
declared type) or fusion avoided an overflow; both are said in a remark. Integers that the unfused program makes too
large are set apart in the same way. How values are computed is not here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bbrewrite.core.elements import Element
from bbrewrite.core.programs import Tensor
from bbrewrite.verify.overflow import Overflow, first_overflow
from bbrewrite.verify.rounding import rounded, widened

type Array = npt.NDArray[Any]

# What rounding may add beyond the unfused program's own error, relative to the largest entry.
ALLOWANCES: Mapping[Element, float] = {
    Element.BOOL: 0.0,
    Element.I32: 0.0,
    Element.BF16: 2e-2,
    Element.F16: 2e-3,
    Element.F32: 1e-5,
    Element.F64: 1e-10,
}
# Where operands of products are rounded to tf32, which has as many bits of fraction as f16.
TF32_ALLOWANCES: Mapping[Element, float] = {**ALLOWANCES, Element.F32: ALLOWANCES[Element.F16]}
_UNFUSED_ERRORS_ALLOWED = 8.0

_FINITE, _PLUS_INFINITY, _MINUS_INFINITY, _NAN = range(4)


@dataclass(frozen=True)
class OutputComparison:
    """One output's verdict.

    `error` is max|fused - reference| / max|reference| (absolute where the reference is 0), infinite where a
    non-finite entry is a mismatch; `unfused_error` the same of the unfused program, over its finite entries;
    `bound` the largest error that is right. `remarks` are sentences on entries that are not finite, or too large
    for an integer; these count for neither error.
    """

    output: str
    error: float
    unfused_error: float
    bound: float
    remarks: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.error <= self.bound


@dataclass(frozen=True)
class Comparison:
    """The verdict on all outputs of a run."""

    outputs: tuple[OutputComparison, ...]

    @property
    def ok(self) -> bool:
        return all(output.ok for output in self.outputs)

    @property
    def max_rel_err(self) -> float:
        return max((output.error for output in self.outputs), default=0.0)


def hold_nan(arrays: Iterable[Array]) -> bool:
    """Whether any entry of some arrays is NaN."""
    return any(bool(np.isnan(widened(array)).any()) for array in arrays)


def compare_outputs(
    elements: Mapping[str, Element],
    fused: Mapping[str, Array],
    unfused: Mapping[str, Array],
    reference: Mapping[str, Array],
    inputs_hold_nan: bool,
    allowances: Mapping[Element, float] = ALLOWANCES,
    definitions: Iterable[Tensor] = (),
) -> Comparison:
    """Compares every output named in `elements` (output name to declared type); see `compare_output`.

    `reference` may have other lists of the program too: `definitions`, in the order in which they are computed.
    """
    is_finite = all(bool(np.isfinite(widened(unfused[name])).all()) for name in elements)
    overflow = None if is_finite else first_overflow(definitions, reference)

    def compared(name: str, element: Element) -> OutputComparison:
        arrays = fused[name], unfused[name], reference[name]
        return compare_output(name, element, *arrays, inputs_hold_nan, allowances, overflow)

    return Comparison(tuple(compared(name, element) for name, element in elements.items()))


def compare_output(
    output: str,
    element: Element,
    fused: Array,
    unfused: Array,
    reference: Array,
    inputs_hold_nan: bool,
    allowances: Mapping[Element, float] = ALLOWANCES,
    overflow: Overflow | None = None,
) -> OutputComparison:
    """Judges one output, stored as `element`, against the float64 `reference`; all three have one shape.

    With `inputs_hold_nan` a NaN of the reference is a meaning that the program was given, so a finite value in
    its place is a mismatch; else it comes from an overflow that fusion is free to avoid. `allowances` are what rounding
    may add to the unfused program's error, and `overflow` is the list to which infinities are due that only its type
    explains. Where there are some, nothing tells the unfused program's error, but that its lists have that type.
    """
    y, base, exact = map(widened, (fused, unfused, reference))
    # A finite value that the declared type cannot hold is an infinity there, and rightly so.
    expected_kind = _kinds(exact if not element.is_float else rounded(exact, element))
    kind, base_kind = _kinds(y), _kinds(base)

    differs = kind != expected_kind
    # Where the unfused program misses the reference too, the declared type is at fault, not fusion.
    excused = base_kind != expected_kind
    if not inputs_hold_nan:
        excused |= (expected_kind == _NAN) & (kind == _FINITE)
    mismatched = differs & ~excused
    avoided = (kind == _FINITE) & (base_kind != _FINITE) & ~mismatched
    inherited = differs & excused & ~avoided

    overflows = _overflows(element, base, exact)
    error = _relative_error(y, exact, ~differs & (kind == _FINITE) & ~overflows)
    unfused_error = _relative_error(base, exact, (base_kind == expected_kind) & (base_kind == _FINITE) & ~overflows)
    inner = overflow if overflow is not None and overflow.name != output and element.is_float else None
    cause = element if inner is None else inner.element
    # An integer wraps around, a list that is named holds an infinity; otherwise a float may also have become 0.
    left = "overflows" if inner is not None or not element.is_float else "overflows or underflows"
    where = "" if inner is None else f" in {inner.name}, which can be declared {inner.wider}"
    remarks = [
        _remark(mismatched, f"{output} is wrong at {{}}: fused and reference differ in NaN, infinity or being finite"),
        _remark(
            avoided,
            f"{output} is finite at {{}} where the unfused program is not: fusion avoids an overflow of {cause}{where}",
        ),
        _remark(
            inherited | (overflows & (y != exact)),
            f"{output} departs from float64 at {{}}, fused and unfused alike: {cause} {left}{where}",
        ),
    ]
    if unfused_error >= 1:
        remarks.append(f"{output} unfused departs from float64 by more than its largest value, so it allows anything")
    excusable = allowances[overflow.element] if overflow is not None and bool(excused.any()) else 0.0
    return OutputComparison(
        output,
        float("inf") if mismatched.any() else error,
        unfused_error,
        _UNFUSED_ERRORS_ALLOWED * unfused_error + max(allowances[element], excusable),
        tuple(remark for remark in remarks if remark),
    )


def _overflows(element: Element, base: Array, exact: Array) -> npt.NDArray[np.bool_]:
    """Where the unfused program has left the range of integers: it wraps around, and no number of fused is right there.

    Other departures of integers, of those that floats were rounded to, are errors like any other.
    """
    if element is not Element.I32:
        return np.zeros(exact.shape, np.bool_)
    limits = np.iinfo(np.int32)
    with np.errstate(invalid="ignore"):
        far = np.abs(base - exact) > limits.max
    return (exact < limits.min) | (exact > limits.max) | far


def _kinds(values: Array) -> npt.NDArray[np.int8]:
    """One of the four kinds for every entry; a NaN equals nothing, so only its own kind agrees with it."""
    kinds = np.full(values.shape, _FINITE, dtype=np.int8)
    kinds[np.isposinf(values)] = _PLUS_INFINITY
    kinds[np.isneginf(values)] = _MINUS_INFINITY
    kinds[np.isnan(values)] = _NAN
    return kinds


def _relative_error(values: Array, reference: Array, where: npt.NDArray[np.bool_]) -> float:
    if not where.any():
        return 0.0
    difference = float(np.abs(values[where] - reference[where]).max())
    scale = float(np.abs(reference[np.isfinite(reference)]).max())
    return difference / scale if scale else difference


def _remark(where: npt.NDArray[np.bool_], sentence: str) -> str:
    """The sentence with the number of entries and the first of them, "" where there is none."""
    count = int(where.sum())
    if not count:
        return ""
    first = ", ".join(str(position) for position in np.argwhere(where)[0])
    entries = "1 entry" if count == 1 else f"{count} entries"
    return sentence.format(f"{entries} (first [{first}])" if first else entries)
