"""Runs programs with known results in every form: the reference, and unfused and fused kernels in NumPy and C++.

The kernels of all cases of a file are compiled as one library, since starting a compiler costs more than a small
kernel, and quickly, since cases are many. What the cases are is said in the files that use this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.runtime.library import CompiledProgram
from bbrewrite.verify.reference import evaluate
from tests.array_programs import draw_inputs
from tests.built import built
from tests.plan.pipelines import NO_RULES, Planned, plan_text, shipped_rules

FORMS = ("reference", "unfused numpy", "fused numpy", "unfused cpp", "fused cpp")

type Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """A program, inputs (those not given are drawn), and what must come out, NaN where NaN is right.

    `kernels` is the number of kernels of the fused form, where it matters. Extents of 0 are not for this class: the
    branch that gives fused code the unfused meaning there belongs to whole programs, which `bbrewrite.compile` makes.
    """

    name: str
    text: str
    inputs: Mapping[str, Any]
    expected: Mapping[str, Any]
    kernels: int | None = None
    tolerance: float = 1e-5
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])

    def planned(self, form: str) -> Planned:
        """The plan of a form; the reference needs none, and gets the unfused one."""
        rules = shipped_rules() if form.startswith("fused") else NO_RULES
        lines = [f"program {self.name}", *(line.strip() for line in self.text.strip().splitlines())]
        return plan_text("\n".join(lines) + "\n", rules, **self.sizes)


class Cases:
    """Cases of one file, planned once and compiled together."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self.by_name = {case.name: case for case in cases}
        assert len(self.by_name) == len(cases), "names of cases differ"
        self.planned = cache(lambda name, fused: self.by_name[name].planned("fused" if fused else "unfused"))
        self._compiled = cache(self._compile)

    def parametrize(self) -> pytest.MarkDecorator:
        """Marks a test of `name` and `form`."""
        pairs = [(name, form) for name in self.by_name for form in FORMS]
        return pytest.mark.parametrize(("name", "form"), pairs)

    def check(self, name: str, form: str) -> None:
        """Asserts that a case gives in a form what it must."""
        case = self.by_name[name]
        found = self.run(name, form, case.inputs, {})
        for output, expected in case.expected.items():
            shown = np.asarray(found[output], np.float64)
            wanted = np.broadcast_to(np.asarray(expected, np.float64), shown.shape)
            np.testing.assert_allclose(shown, wanted, case.tolerance, case.tolerance, err_msg=f"{output}, {form}")
        if case.kernels is not None and form == "fused numpy":
            assert len(self.planned(name, True).plan.kernels.kernels) == case.kernels

    def run(self, name: str, form: str, inputs: Mapping[str, Any], extents: Mapping[str, int]) -> Mapping[str, Array]:
        """The outputs of a case's program in a form, for inputs and extents that may be others than the case's."""
        fused = form.startswith("fused")
        planned = self.planned(name, fused)
        sizes = {**planned.extents, **extents}
        arrays = draw_inputs(planned.array, sizes)
        for tensor in planned.array.inputs:
            if tensor.name in inputs:
                arrays[tensor.name] = np.array(inputs[tensor.name], order="C").astype(tensor.element.numpy_type)
        with np.errstate(all="ignore"):
            if form == "reference":
                return evaluate(planned.array, arrays, sizes, planned.table)
            if form.endswith("numpy"):
                return run_kernels(planned.plan.kernels, arrays, sizes, planned.table)
        return self._compiled()[name, fused].run(arrays, sizes, 2)

    def _compile(self) -> dict[tuple[str, bool], CompiledProgram]:
        keys = [(name, fused) for name in self.by_name for fused in (False, True)]
        programs = [
            replace(self.planned(name, fused).plan.kernels, name=f"{name}_{'fused' if fused else 'unfused'}")
            for name, fused in keys
        ]
        return dict(zip(keys, built(programs, shipped_rules().table), strict=True))
